"""Steps of events on disk: what each reads, what stays when one is interrupted, and how a run joins them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import cramjam
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from ottla.health.samples import encode
from ottla.spark.errors import OttlaSparkError
from ottla.spark.pipeline import observations
from ottla.spark.pipeline.archive import Archive, Step
from ottla.spark.pipeline.event_decoder import EVENT_COLUMNS
from ottla.spark.pipeline.ingest import EventFiles, Positions, describe_events
from ottla.spark.pipeline.observations import FilePart, ObservationFiles, read_positions
from tests.unit.spark.pipeline.cluster_files import NOON, ClusterFiles, busy_day
from tests.unit.spark.pipeline.steps import opened, read

MINUTE = 60_000
Identity = tuple[Any, ...]


def events(path: Path) -> list[Identity]:
    """Which events are below a directory."""
    names = ["cluster", "topic", "partition", "offset", "observer", "seq", "ts"]
    files = [str(file) for file in path.rglob("*.parquet")]
    rows = ds.dataset(files).to_table(columns=names).to_pylist() if files else []
    return sorted(tuple(map(str, row.values())) for row in rows)


def numbers(archive: Archive) -> list[int]:
    return [each.number for each in archive.after(-1)]


# --- steps ------------------------------------------------------------------------------------------------------------


def test_each_step_has_what_is_new_and_says_how_far_it_came(tmp_path: Path):
    path, out = tmp_path / "cluster", tmp_path / "out"
    with ClusterFiles(path) as made:
        busy_day(made, minutes=1)
    first = read(path, out)
    assert numbers(first) == [0]
    with ClusterFiles(path) as made:
        made.commit(NOON + 2 * MINUTE, "billing", 99)
    archive = read(path, out)
    assert numbers(archive) == [0, 1]
    assert archive.last is not None
    expected = {"records": 0, "commits": 1, "samples": 0, "ends": 0}
    assert (archive.last.rows, archive.last.from_ms) == (expected, NOON + 2 * MINUTE)
    assert numbers(read(path, out)) == [0, 1], "nothing is new"
    whole = read(path, tmp_path / "other")
    assert events(archive.path) == events(whole.path)
    assert archive.positions == whole.positions


def test_topics_that_appear_later_are_read_from_their_beginning(tmp_path: Path):
    path, out = tmp_path / "cluster", tmp_path / "out"
    with ClusterFiles(path) as made:
        made.commit(NOON, "billing", 1)
    read(path, out)
    with ClusterFiles(path) as made:
        made.share(NOON + 1, "risk", [(0, 0, 2, 1)], start=0)
        made.quorum(NOON + 2, epoch=1)
    archive = read(path, out)
    assert archive.last is not None
    assert archive.last.rows == {"records": 1, "commits": 0, "samples": 1, "ends": 0}


def test_names_of_topics_are_kept(tmp_path: Path):
    archive = Archive(tmp_path)
    for number, names in enumerate(({"1": "orders"}, {"1": "orders", "2": "payments"}, {})):
        work = tmp_path / f"work-{number}"
        work.mkdir()
        archive.add(EventFiles(work, {}, None, None, 0), Positions(), names, 0)
    assert [each.topic_names for each in archive.after(-1)] == [{"1": "orders"}, {"2": "payments"}, {}]
    assert opened(tmp_path).topic_names == {"1": "orders", "2": "payments"}


def add_steps(archive: Archive, out: Path, times: list[tuple[int, int]]) -> None:
    """Steps with one record and one sample each, between these times."""
    for from_ms, to_ms in times:
        work = out / "work"
        work.mkdir(parents=True)
        files = EventFiles(work, {"records": 1, "samples": 1}, from_ms, to_ms, 1)
        archive.add(files, Positions({"t": {"0": to_ms}}, {"d/a": observations.FilePosition("a", to_ms)}), {}, 10**9)


def test_totals_and_positions_are_those_of_all_steps(tmp_path: Path):
    archive = Archive(tmp_path)
    add_steps(archive, tmp_path, [(5, 9), (3, 8), (10, 20)])
    for each in (archive, opened(tmp_path)):
        assert each.describe()[1:] == ({"records": 3, "commits": 0, "samples": 3, "ends": 0}, 3, 20, 3, None, 0)
        assert each.positions == Positions({"t": {"0": 20}}, {"d/a": observations.FilePosition("a", 20)})
        assert [step.offsets for step in each.after(-1)] == [None, None, {"t": {"0": 20}}], "older ones are on disk"


def test_steps_by_number_and_time(tmp_path: Path):
    archive = Archive(tmp_path)
    add_steps(archive, tmp_path, [(0, 9), (10, 19), (5, 12), (20, 29)])
    assert [each.number for each in archive.after(1)] == [2, 3]
    assert archive.before(0) is None
    assert archive.before(2) == archive.after(0)[0]
    assert [each.number for each in archive.since(12)] == [1, 2, 3]
    assert [each.number for each in archive.since(13)] == [1, 3], "the third step is late"
    assert archive.since(30) == []


def test_an_archive_of_an_earlier_version_is_refused(tmp_path: Path):
    step = tmp_path / "events" / "input=records" / "step=a"
    step.mkdir(parents=True)
    pq.write_table(pa.table({name: pa.nulls(1) for name in EVENT_COLUMNS}), step / "part.parquet")
    with pytest.raises(OttlaSparkError, match="events was written by an earlier version of ottla"):
        Archive(tmp_path).open()


# --- late rows --------------------------------------------------------------------------------------------------------


def test_rows_that_are_too_late_for_a_window_wait_apart(tmp_path: Path):
    path, out = tmp_path / "cluster", tmp_path / "out"
    with ClusterFiles(path) as made:
        made.quorum(NOON + 60 * MINUTE, epoch=1)
    read(path, out)
    with ClusterFiles(path) as made:
        made.quorum(NOON + 30 * MINUTE, epoch=1, observer="two")
        made.quorum(NOON + 55 * MINUTE, epoch=1, observer="two")
        made.rebalance(NOON, "billing", 1, "one")
    archive = read(path, out)
    assert archive.last is not None
    assert (archive.last.late, archive.last.rows["samples"], archive.last.rows["records"]) == (1, 1, 4)
    assert archive.last.newest_ms == NOON + 60 * MINUTE
    assert archive.late == 1
    late = ds.dataset(out / "late_quorum_lag", partitioning="hive").to_table().to_pylist()
    assert [row["ts"] for row in late] == [NOON + 30 * MINUTE]


# --- interruptions ----------------------------------------------------------------------------------------------------


class KilledError(BaseException):
    """The process ends here: nothing after this is done."""


@contextmanager
def killed_at(call: int, patch: pytest.MonkeyPatch) -> Iterator[Callable[[], bool]]:
    """Ends the process before its nth change of the disk. Gives whether that happened."""
    left = call

    def wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
        def change(*args: Any, **kwargs: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                raise KilledError
            return function(*args, **kwargs)

        return change

    with patch.context() as m:
        for owner, name in ((Path, "rename"), (Path, "write_bytes"), (pq, "write_table"), (pq, "ParquetWriter")):
            m.setattr(owner, name, wrapped(getattr(owner, name)))
        yield lambda: left < 0


def test_a_step_that_is_killed_anywhere_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    early, path = tmp_path / "early", tmp_path / "cluster"
    for directory, minutes in ((early, 1), (path, 3)):
        with ClusterFiles(directory) as made:
            busy_day(made, minutes=minutes)
            if minutes > 1:
                made.quorum(NOON - 60 * MINUTE, epoch=1, observer="late")
    expected = tmp_path / "expected"
    read(early, expected)
    shutil.copytree(path, early, dirs_exist_ok=True)
    read(early, expected)
    for call in range(100):
        out = tmp_path / f"out-{call}"
        shutil.copytree(expected / "events" / "step=00000000", out / "events" / "step=00000000")
        with killed_at(call, monkeypatch) as was_killed:
            with suppress(KilledError):
                read(early, out)
            if not was_killed():
                break
        archive = read(early, out)
        assert events(archive.path) == events(expected / "events")
        assert events(out / "late_quorum_lag") == events(expected / "late_quorum_lag")
    assert call > 5, "there is more than one way to be killed"


def joined_by_run(archive: Archive, out: Path, rows: list[int]) -> None:
    """What a run does at its end."""
    path = out / ".work-run" / "all" / "input=samples"
    path.mkdir(parents=True)
    pq.write_table(pa.table({"ts": rows, "dropped": [0] * len(rows)}), path / "part.parquet")
    archive.compact(describe_events(path.parent), Positions())


def test_a_run_joins_the_steps_and_following_goes_on_after_them(tmp_path: Path):
    path, out = tmp_path / "cluster", tmp_path / "out"
    for minute in range(3):
        with ClusterFiles(path) as made:
            made.quorum(NOON + minute * MINUTE, epoch=1)
        archive = read(path, out)
    positions, names = archive.positions, archive.topic_names
    (out / "late_quorum_lag").mkdir()
    joined_by_run(archive, out, [1, 2])
    for each in (archive, opened(out)):
        assert (numbers(each), each.positions, each.topic_names) == ([3], positions, names)
    assert not (out / "late_quorum_lag").exists()
    with ClusterFiles(path) as made:
        made.quorum(NOON + 3 * MINUTE, epoch=1)
    archive = read(path, out)
    assert numbers(archive) == [3, 4]
    assert archive.last is not None
    assert archive.last.rows["samples"] == 1


def test_steps_that_were_joined_are_removed_at_the_next_opening(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path, out = tmp_path / "cluster", tmp_path / "out"
    with ClusterFiles(path) as made:
        made.quorum(NOON, epoch=1)
    archive = read(path, out)

    def killed(_: Path) -> None:
        raise KilledError

    with monkeypatch.context() as m:
        m.setattr("ottla.spark.pipeline.archive.shutil.rmtree", killed)
        with pytest.raises(KilledError):
            joined_by_run(archive, out, [1])
    assert (out / "events" / "step=00000000").exists()
    assert numbers(opened(out)) == [1]
    assert not (out / "events" / "step=00000000").exists()


@pytest.mark.parametrize(("stored", "told", "expected"), [(7, 9, 9), (9, 7, 9)])
def test_whoever_has_read_more_says_where_to_go_on(tmp_path: Path, stored: int, told: int, expected: int):
    def offsets(number: int) -> dict[str, Any]:
        return {"__ottla": {"ids": {"t": "id"}, "v": 1}, "t": {"0": number}}

    archive = Archive(tmp_path)
    work = tmp_path / "work"
    (work / "input=samples").mkdir(parents=True)
    nothing = EventFiles(work, {"samples": 0}, None, None, 0)
    archive.add(nothing, Positions(offsets(stored)), {}, 0)
    (tmp_path / "again").mkdir()
    archive.compact(nothing._replace(path=tmp_path / "again"), Positions(offsets(told)))
    assert archive.positions.offsets == offsets(expected)


# --- files of observers -----------------------------------------------------------------------------------------------


class Observer:
    """Writes samples to files, as `ottla observe --to DIR` does."""

    def __init__(self, directory: Path, name: str = "aaaa") -> None:
        self._directory = directory / "kind=quorum" / "date=2024-10-04"
        self._directory.mkdir(parents=True, exist_ok=True)
        self._cluster = ClusterFiles(directory.parent / f"unused-{name}")
        self._name = name
        self._file = self._directory / f"{name}-000000000001.jsonl.zst.part"
        self._seq = 0

    def frame(self, ts: int) -> bytes:
        self._seq += 1
        sample = self._cluster.make_sample(ts, "quorum", "q", observer=self._name, leader=1)
        return bytes(cramjam.zstd.compress(encode(sample) + b"\n"))

    def write(self, data: bytes) -> None:
        with self._file.open("ab") as file:
            file.write(data)

    def finish(self) -> None:
        self._file.rename(self._file.with_name(self._file.name.removesuffix(".part")))
        self._file = self._directory / f"{self._name}-{self._seq + 1:012d}.jsonl.zst.part"


def test_files_that_grow_are_read_frame_by_frame(tmp_path: Path):
    out, observer = tmp_path / "out", Observer(tmp_path / "seen")
    whole, next_frame = observer.frame(NOON), observer.frame(NOON + 1)
    observer.write(whole + next_frame[:7])
    taken = []

    def step() -> int:
        archive = read(None, out, tmp_path / "seen")
        taken.append(numbers(archive)[-1])
        assert archive.last is not None
        return archive.last.rows["samples"]

    assert step() == 1
    assert step() == 1
    assert taken == [0, 0], "half a frame is nothing new"
    observer.write(next_frame[7:])
    observer.finish()
    assert (step(), taken[-1]) == (1, 1)
    observer.write(observer.frame(NOON + 2))
    observer.finish()
    other = Observer(tmp_path / "seen", "bbbb")
    other.write(other.frame(NOON + 3))
    assert (step(), taken[-1]) == (2, 2)
    assert len(set(events(out / "events"))) == 4


def test_directories_that_did_not_change_are_not_listed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    directory = tmp_path / "seen"
    for name in ("aaaa", "bbbb"):
        observer = Observer(directory, name)
        observer.write(observer.frame(NOON))
        observer.finish()
    monkeypatch.setattr(observations, "SETTLED_NS", -1)
    listed: list[str] = []
    scan = observations.os.scandir
    monkeypatch.setattr(observations.os, "scandir", lambda path: listed.append(path) or scan(path))
    files = ObservationFiles([str(directory), str(tmp_path / "not-yet")])
    parts = files.parts_after({})
    assert [(part.start, Path(part.path).name[:4]) for part in parts] == [(0, "aaaa"), (0, "bbbb")]
    assert files.parts_after(read_positions(parts)) == []
    assert len(listed) == 3, "the directory, that of the kind and that of the date, once each"


def test_what_a_step_has_found_and_could_not_read_is_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Nothing was archived, because the cluster did not answer then."""
    observer = Observer(tmp_path / "seen")
    observer.write(observer.frame(NOON))
    observer.finish()
    monkeypatch.setattr(observations, "SETTLED_NS", -1)
    files = ObservationFiles([str(tmp_path / "seen")])
    parts = files.parts_after({})
    assert len(parts) == 1
    assert files.parts_after({}) == parts
    assert files.parts_after(read_positions(parts)) == []


def test_a_position_is_that_of_the_newest_file():
    parts = [FilePart("d/a-1.jsonl.zst", 0, 5), FilePart("d/a-2.jsonl.zst", 0, 3), FilePart("d/b-1.jsonl.zst", 2, 9)]
    assert read_positions(parts) == {"d/a": ("a-2.jsonl.zst", 3), "d/b": ("b-1.jsonl.zst", 9)}


def test_a_step_is_read_as_it_was_written():
    import msgspec

    step = Step(number=3, rows={"samples": 1}, files={"d/a": observations.FilePosition("a-1", 5)})
    assert msgspec.json.decode(msgspec.json.encode(step), type=Step) == step
