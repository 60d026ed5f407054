"""The end offsets of logs over time, read as the logs grow."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.log.partition import Partition
from ottla.spark.pipeline import end_offsets
from ottla.spark.pipeline.end_offsets import STEP_MS, LogPosition, read_ends
from tests.unit.log.logs import open_partition, sized_batch

START = 1_000_000
SMALL = {"segment_bytes": 30_000, "index_interval_bytes": 900}
Points = list[tuple[int, int]]


def append(log: Partition, *times: int, size: int = 300) -> None:
    for ts in times:
        log.append_as_leader(sized_batch(size, timestamp=START + ts), 0, START)


def read(path: Path, known: dict[str, LogPosition]) -> Points:
    """The points that are new; the positions are moved."""
    batches, moved = read_ends("c", [(str(path), "orders", 0)], known)
    known |= moved
    return [
        (row["ts"] - START, row["offset"]) for batch in batches for row in batch.to_pylist() if row["type"] == "LogEnd"
    ]


def used(points: Points) -> Points:
    """The points that the table is made of: the last one of each second."""
    return sorted({ts // STEP_MS: (ts, end) for ts, end in sorted(points)}.values())


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Segment and position of each header that is read."""
    found: list[tuple[int, int]] = []

    class Counted(end_offsets.Segment):
        def headers(self, position: int = 0) -> Iterator[tuple[int, Any]]:
            for each in super().headers(position):
                found.append((self.base_offset, each[0]))
                yield each

    monkeypatch.setattr(end_offsets, "Segment", Counted)
    return found


def test_a_log_tells_where_it_ended_when(tmp_path: Path):
    log = open_partition(tmp_path / "orders-0")
    append(log, 0, 400, 900, 5_000, 4_000, 9_000)
    assert read(tmp_path / "orders-0", {}) == [(900, 3), (5_000, 5), (9_000, 6)]
    log.close()


def test_a_partition_that_is_gone_has_no_points(tmp_path: Path):
    assert read(tmp_path / "orders-0", {}) == []


@pytest.mark.parametrize("seed", range(10))
def test_however_a_log_is_cut_its_points_are_the_same(tmp_path: Path, seed: int):
    rng = random.Random(seed)
    path, known = tmp_path / "orders-0", dict[str, LogPosition]()
    log, now, points = open_partition(path, **SMALL), 0, Points()
    for _ in range(300):
        now += rng.choice((0, 10, 700, 3_000))
        append(log, now - rng.choice((0, 0, 0, 2_000)))
        if rng.random() < 0.1:
            points += read(path, known)
    points += read(path, known)
    log.close()
    assert len(list(path.glob("*.log"))) > 2
    assert used(points) == used(read(path, {}))


def test_only_what_is_new_is_read(tmp_path: Path, reads: list[tuple[int, int]]):
    path, known = tmp_path / "orders-0", dict[str, LogPosition]()
    log = open_partition(path, **SMALL)
    append(log, *range(0, 150_000, 1_000))
    assert len(read(path, known)) == len(reads) == 150
    seen = set(reads)
    reads.clear()
    assert (read(path, known), reads) == ([], [])
    append(log, *range(150_000, 180_000, 1_000))
    assert [end for _, end in read(path, known)] == list(range(151, 181))
    assert len(reads) == 30
    assert not seen & set(reads)
    log.close()


def test_of_much_that_is_new_the_time_index_is_read(
    tmp_path: Path, reads: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(end_offsets, "WALK_BYTES", 5_000)
    path, known = tmp_path / "orders-0", dict[str, LogPosition]()
    log = open_partition(path, **SMALL)
    append(log, *range(0, 10_000, 1_000))
    assert len(read(path, known)) == 10
    reads.clear()
    append(log, *range(10_000, 180_000, 1_000))
    log.close()
    points = read(path, known)
    assert points[-1] == (179_000, 180)
    assert all(end == 1 + ts // 1_000 and end > 10 for ts, end in points)
    assert 40 < len(points) < 100
    assert len(reads) < 10


def test_a_topic_that_was_made_anew_is_read_from_its_beginning(tmp_path: Path):
    path, known = tmp_path / "orders-0", dict[str, LogPosition]()
    log = open_partition(path)
    append(log, 0, 1_000, 2_000)
    read(path, known)
    log.close()
    shutil.rmtree(path)
    log = open_partition(path)
    append(log, 5_000)
    assert read(path, known) == [(5_000, 1)]
    log.close()


def test_what_retention_deletes_does_not_matter(tmp_path: Path):
    path, known = tmp_path / "orders-0", dict[str, LogPosition]()
    log = open_partition(path, **SMALL)
    append(log, *range(0, 150_000, 1_000))
    log.close()
    read(path, known)
    for file in path.glob("00000000000000000000.*"):
        file.unlink()
    assert read(path, known) == []
