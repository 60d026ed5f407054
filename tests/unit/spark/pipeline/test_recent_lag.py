"""The events of the last hours, from which lag is computed again: in few files, and each row is written seldom."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from ottla.spark.jobs.params import HOUR_MS
from ottla.spark.pipeline import recent_lag
from ottla.spark.pipeline.archive import Archive
from ottla.spark.pipeline.ingest import Positions, describe_events
from ottla.spark.pipeline.recent_lag import RecentEvents
from tests.unit.spark.pipeline.cluster_files import NOON

STEP_MS = 30_000
ROWS = 10
STEPS = 300


def add_step(archive: Archive, out: Path, start_ms: int) -> None:
    """Commits and samples of half a minute."""
    work = out / "work"
    times = [start_ms + number * 1_000 for number in range(ROWS)]
    for name, kind in (("commits", "OffsetCommit"), ("samples", "lag")):
        (work / f"input={name}").mkdir(parents=True)
        body = json.dumps({"group": "g", "topic": "orders", "partition": 0, "committed": 1})
        kinds = [kind] * (ROWS - 1) + ["other"]
        rows = pa.table({"ts": times, "type": kinds, "body": [body] * ROWS, "dropped": [0] * ROWS})
        pq.write_table(rows, work / f"input={name}" / "part-0.parquet")
    archive.add(describe_events(work), Positions(), {}, 10 * STEP_MS)


def times_in(files: list[Path], from_ms: int) -> list[int]:
    found = ds.dataset([str(each) for each in files]).to_table(filter=ds.field("ts") >= from_ms)
    return sorted(found["ts"].to_pylist())


def expected(steps: int, from_ms: int, every: int = 1) -> list[int]:
    starts = (NOON + step * STEP_MS for step in range(0, steps, every))
    return [ts for start in starts for ts in range(start, start + (ROWS - 1) * 1_000, 1_000) if ts >= from_ms]


def test_a_step_costs_what_is_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    archive = Archive(tmp_path)
    recent = RecentEvents(archive, tmp_path / "recent")
    written: list[int] = []
    write = recent_lag.write_files

    def counted(rows: recent_lag.Rows, path: Path, name: str) -> list[Path]:
        files = write(rows, path, name)
        written[-1] += sum(pq.read_metadata(file).num_rows for file in files)
        return files

    monkeypatch.setattr(recent_lag, "write_files", counted)
    for step in range(STEPS):
        start = NOON + step * STEP_MS
        add_step(archive, tmp_path, start)
        written.append(0)
        from_ms = start // HOUR_MS * HOUR_MS - HOUR_MS
        found = recent.write(from_ms)
        assert sum(map(len, found.values())) < 20
        if step % 37 == 0:
            assert {name: times_in(files, from_ms) for name, files in found.items()} == dict.fromkeys(
                ("samples", "commits"), expected(step + 1, from_ms)
            )
    first, last = sum(written[60:120]), sum(written[STEPS - 60 :])
    assert last < 1.5 * first
    assert last < 60 * 2 * ROWS * 10, "each row is written again a few times"
    kept = list((tmp_path / "recent").rglob("*.parquet"))
    assert sorted(kept) == sorted(file for files in found.values() for file in files), "old files are deleted"


def test_late_events_go_back_to_the_hour_before(tmp_path: Path):
    archive = Archive(tmp_path)
    recent = RecentEvents(archive, tmp_path / "recent")
    for step in range(0, STEPS, 20):
        add_step(archive, tmp_path, NOON + step * STEP_MS)
        recent.write(NOON + step * STEP_MS - HOUR_MS)
    from_ms = NOON + STEPS * STEP_MS - 2 * HOUR_MS
    assert times_in(recent.write(from_ms)["samples"], from_ms) == expected(STEPS, from_ms, 20)


def test_everything_from_the_beginning(tmp_path: Path):
    archive = Archive(tmp_path)
    recent = RecentEvents(archive, tmp_path / "recent")
    assert recent.write(0) == {}
    for step in range(3):
        add_step(archive, tmp_path, NOON + step * STEP_MS)
        assert times_in(recent.write(0)["commits"], 0) == expected(step + 1, 0)
    assert times_in(recent.write(NOON)["commits"], NOON) == expected(3, NOON)


def test_of_older_events_the_newest_are_kept_however_many_there_are(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(recent_lag, "FOLD_ROWS", 6)
    newest = recent_lag._Newest(["group"], "seq")
    for start in range(0, 12, 3):
        seq = list(range(start, start + 3))
        newest.add(pa.record_batch({"group": ["a", "b", "a"], "seq": seq}))
    assert not newest.is_empty
    found = pa.Table.from_batches(newest.newest()).to_pylist()
    assert sorted(found, key=str) == [{"group": "a", "seq": 11}, {"group": "b", "seq": 10}]
