"""The tables of a stream over steps, without a JVM: Python groups the rows and keeps the states, as Spark would.

A process is killed before each of its changes of the disk, and another goes on.
"""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ottla.spark.jobs.params import Params
from ottla.spark.jobs.quorum_fold import election_rows
from ottla.spark.jobs.stream_fold import Change, advance_fold
from ottla.spark.jobs.stream_history import FoldKey, HistoryRow
from ottla.spark.jobs.tables import TABLES
from ottla.spark.pipeline import table_changes
from ottla.spark.pipeline.archive import Archive
from ottla.spark.pipeline.event_lookup import metadata_table
from ottla.spark.pipeline.step_source import StepReader
from ottla.spark.pipeline.table_changes import STREAMED, changes_by_hour
from ottla.spark.pipeline.table_stream import TableStream
from ottla.spark.pipeline.tables import dataset_of, table_path
from ottla.spark.worker_files import write_files
from tests.unit.spark.pipeline.cluster_files import NOON, ClusterFiles, busy_day
from tests.unit.spark.pipeline.steps import read

PARAMS = Params(share_window_ms=10_000)
Tables = dict[str, list[dict[str, Any]]]


class Checkpoint:
    """What Spark keeps between two processes: the end of each batch before it runs, and the states after it."""

    def __init__(self) -> None:
        self.ends: list[dict[str, int]] = []
        self.states: list[dict[FoldKey, bytes]] = []


class Process:
    """A process of the pipeline, with Python in the place of Spark."""

    def __init__(self, out: Path, checkpoint: Checkpoint, params: Params = PARAMS) -> None:
        self._out = out
        self._params = params
        self._checkpoint = checkpoint
        archive = Archive(out)
        archive.open()
        self._reader = StepReader(out)
        self._stream = TableStream(archive, out, out / ".work-test", params)
        self._stream.know(metadata_table("", None, {}), params)

    def run(self) -> None:
        """Process what there is. A batch that was begun and not finished is repeated."""
        ends, states = self._checkpoint.ends, self._checkpoint.states
        if len(ends) == len(states):
            before = ends[-1] if ends else self._reader.initialOffset()
            latest = self._reader.latestOffset(before, self._reader.getDefaultReadLimit())
            if latest == before:
                return
            ends.append(latest)
        self._run_batch(len(ends) - 1)

    def _run_batch(self, batch_id: int) -> None:
        ends, states = self._checkpoint.ends, self._checkpoint.states
        start = ends[batch_id - 1] if batch_id else self._reader.initialOffset()
        rows: dict[FoldKey, list[HistoryRow]] = defaultdict(list)
        newest_ms = 0
        for partition in self._reader.partitions(start, ends[batch_id]):
            for batch in self._reader.read(partition):
                for cells in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                    rows[FoldKey._make(cells[:5])].append(HistoryRow._make(cells[5:-1]))
                    newest_ms = cells[-1]
        state = dict(states[-1]) if states else {}
        changes: list[Change] = []
        for key, history in rows.items():
            watermark_ms = newest_ms - self._params.lateness_ms
            state[key], found = advance_fold(key, state.get(key), history, watermark_ms, self._params)
            changes += found
        self._stream.apply(self._written(changes), batch_id)
        states.append(state)

    def _written(self, changes: list[Change]) -> Path:
        path = self._out / ".work-test" / "changes"
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True)
        if changes:
            columns = dict(zip(Change._fields, zip(*changes, strict=True), strict=True))
            types = {"table": pa.string(), "hour": pa.int64(), "key": pa.binary(), "body": pa.binary()}
            batch = pa.RecordBatch.from_pydict({name: pa.array(each, types[name]) for name, each in columns.items()})
            write_files(changes_by_hour([batch]), path, "part-0")
        return path


def tables_in(out: Path) -> Tables:
    found: Tables = {}
    for name in STREAMED:
        data = dataset_of(table_path(out, name))
        rows = [] if data is None else data.to_table().to_pylist()
        found[name] = sorted(rows, key=lambda row: [str(row[key]) for key in TABLES[name].key])
    return found


def grow(path: Path, minute: int) -> None:
    """A minute of a cluster. Some samples come late, and groups come and go."""
    start = NOON + minute * 60_000
    with ClusterFiles(path) as made:
        made._seq = minute * 1_000
        made.rebalance(start, "billing", 2 * minute + 1, f"member-{minute}")
        if minute % 2:
            made.rebalance(start + 1_000, f"group-{minute}", 1, "one")
        for second in range(0, 60, 10):
            ts = start + second * 1_000
            made.share(ts, "risk", [(second, second, 0 if minute % 2 else 2, 1 + minute)], start=0)
            made.quorum(ts - 15_000 * (second == 30), epoch=1 + minute // 2)
            made.sample(ts, "group", "sampled", group="sampled", type="consumer", state="Stable", group_epoch=minute)
            made.sample(ts - 20_000, "group", "sampled", group="sampled", type="consumer", state="Stable",
                        group_epoch=minute, observer="two")  # fmt: skip


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The same cluster, minute by minute."""
    path = tmp_path_factory.mktemp("growing")
    found = []
    for minute in range(4):
        grow(path / "now", minute)
        shutil.copytree(path / "now", path / str(minute))
        found.append(path / str(minute))
    return found


@pytest.fixture(scope="module")
def expected(clusters: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Tables:
    out = tmp_path_factory.mktemp("at-once")
    read(clusters[-1], out)
    Process(out, Checkpoint()).run()
    found = tables_in(out)
    assert {name for name, rows in found.items() if rows} == {*STREAMED} - {"task_movement"}
    return found


def test_steps_give_the_tables_of_one_step(clusters: list[Path], expected: Tables, tmp_path: Path):
    checkpoint = Checkpoint()
    for cluster in clusters:
        read(cluster, tmp_path)
        Process(tmp_path, checkpoint).run()
        Process(tmp_path, checkpoint).run()
    assert len(checkpoint.ends) == len(clusters)
    assert tables_in(tmp_path) == expected


class KilledError(BaseException):
    """The process ends here."""


@contextmanager
def killed_at(call: int, patch: pytest.MonkeyPatch) -> Iterator[Callable[[], bool]]:
    """Ends the process at its nth change of the disk, after it on odd numbers. Gives whether that happened."""
    left, is_after = divmod(call, 2)

    def wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
        def change(*args: Any, **kwargs: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0 and not is_after:
                raise KilledError
            done = function(*args, **kwargs)
            if left < 0:
                raise KilledError
            return done

        return change

    with patch.context() as m:
        for owner, name in ((Path, "rename"), (Path, "unlink"), (Path, "write_bytes"), (Path, "write_text")):
            m.setattr(owner, name, wrapped(getattr(owner, name)))
        m.setattr(table_changes.shutil, "rmtree", wrapped(shutil.rmtree))
        yield lambda: left < 0


@pytest.mark.parametrize("killed_batch", [0, 2])
def test_a_process_that_is_killed_anywhere_leaves_nothing_wrong(
    clusters: list[Path], expected: Tables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed_batch: int
):
    for call in range(0, 1_000, 7):
        out, checkpoint = tmp_path / f"out-{call}", Checkpoint()
        was_killed = True
        for number, cluster in enumerate(clusters):
            read(cluster, out)
            if number == killed_batch:
                with killed_at(call, monkeypatch) as is_killed:
                    with suppress(KilledError):
                        Process(out, checkpoint).run()
                    was_killed = is_killed()
            Process(out, checkpoint).run()
        assert tables_in(out) == expected
        shutil.rmtree(out)
        if not was_killed:
            break
    assert call > 20, "there are many ways to be killed"


def test_a_state_that_is_lost_is_made_from_the_archive(clusters: list[Path], expected: Tables, tmp_path: Path):
    checkpoint = Checkpoint()
    for cluster in clusters[:2]:
        read(cluster, tmp_path)
        Process(tmp_path, checkpoint).run()
    shutil.rmtree(tmp_path / "checkpoint")
    read(clusters[-1], tmp_path)
    Process(tmp_path, Checkpoint()).run()
    assert tables_in(tmp_path) == expected


def test_other_parameters_need_another_state(tmp_path: Path):
    with ClusterFiles(tmp_path / "cluster") as made:
        busy_day(made, minutes=1)
    archive = read(tmp_path / "cluster", tmp_path / "out")
    stream = TableStream(archive, tmp_path / "out", tmp_path, PARAMS)
    assert stream.fits(Params(share_window_ms=10_000, topic_names={"id": "t"}, share_limits={("c", ""): (5, 30_000)}))
    assert not stream.fits(Params(share_window_ms=60_000))
    assert not stream.fits(Params(share_window_ms=10_000, share_limits={("c", "g"): (3, 30_000)}))
    assert not stream.fits(Params(share_window_ms=10_000, thresholds={"epochs-climb.rises": 3}))


def test_elections_are_left_out_of_clusters_whose_quorum_was_sampled(tmp_path: Path):
    stream = TableStream(Archive(tmp_path), tmp_path, tmp_path / "work", PARAMS)
    rows = election_rows([("one", NOON, 1, 1), ("two", NOON, 2, 1)], PARAMS.quorum_window_ms)

    def clusters() -> list[str]:
        return [row["cluster"] for row in tables_in(tmp_path)["quorum_lag"]]

    stream.put_elections(rows, set())
    assert clusters() == ["one", "two"]
    stream.put_elections(rows, {"two"})
    assert clusters() == ["one"]
    more = election_rows([("one", NOON + 60_000, 2, 2), ("two", NOON + 60_000, 1, 2)], PARAMS.quorum_window_ms)
    stream.put_elections({**rows, **more}, {"two"})
    assert clusters() == ["one", "one"]
