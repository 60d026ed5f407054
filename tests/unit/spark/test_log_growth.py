"""A log that grows while a stream reads it: what was checked before is not read again, and the result is the same."""

import random
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from ottla.log.partition import Partition
from ottla.spark.log import storage
from ottla.spark.log.options import LogOptions
from ottla.spark.log.readers import LogStreamReader
from ottla.spark.log.view import CheckedEnd
from ottla.spark.options import read_options
from tests.unit.log.logs import NOW, open_partition, sized_batch
from tests.unit.spark.log_directories import (
    append,
    end_transaction,
    filled,
    flip,
    in_transaction,
    new_directory,
    read_offsets,
    segment_file,
    tasks,
    view_of,
)

STEPS = 200
STEP_BATCHES = 5
BATCH_BYTES = 1000


class CountedReads:
    """Counts the bytes that are read from files."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.bytes = 0
        self._read = storage.os.preadv
        monkeypatch.setattr(storage.os, "preadv", self._counted)

    def _counted(self, descriptor: int, buffers: list[memoryview], position: int) -> int:
        count = self._read(descriptor, buffers, position)
        self.bytes += count
        return count

    def since(self, before: int) -> int:
        return self.bytes - before


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_a_step_reads_as_much_as_it_did_at_the_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, isolation: str
):
    log = filled(tmp_path, batches=STEP_BATCHES, close=False, segment_bytes=10**8)
    given = {"path": str(tmp_path), "startingoffsets": "earliest", "isolation": isolation}
    reader = LogStreamReader(read_options(LogOptions, given))
    offset = reader.initialOffset()
    reads = CountedReads(monkeypatch)
    costs: list[int] = []
    found: list[int] = []
    for _ in range(STEPS):
        append(log, STEP_BATCHES)
        before = reads.bytes
        end = reader.latestOffset(offset, ReadAllAvailable())
        found += read_offsets(each.value for each in reader.partitions(offset, end))
        costs.append(reads.since(before))
        offset = end
    log.close()
    assert found == list(range(STEP_BATCHES * (STEPS + 1)))
    assert len(set(costs[1:])) == 1, "each step has as much that is new"
    assert costs[-1] < 6 * STEP_BATCHES * BATCH_BYTES, "headers, checksums, transactions and records of new batches"


def checked_by(path: Path, before: CheckedEnd | None, **rest: Any) -> CheckedEnd | None:
    return view_of(path, checked=before, **rest).checked_end(is_committed=True)


@pytest.mark.parametrize("seed", range(20))
def test_a_look_that_goes_on_sees_what_a_first_look_sees(tmp_path: Path, seed: int):
    chance = random.Random(seed)
    new_directory(tmp_path)
    log = open_partition(tmp_path / "orders-0", segment_bytes=chance.choice([2_000, 10**6]))
    sequences: dict[int, int] = {}
    checked: CheckedEnd | None = None
    stable = 0
    for _ in range(60):
        _grow(log, chance, sequences)
        if chance.random() < 0.5:
            continue
        fresh, next_look = view_of(tmp_path), view_of(tmp_path, checked=checked)
        assert next_look.valid_end[:2] == fresh.valid_end[:2]
        assert next_look.last_stable_offset == fresh.last_stable_offset
        until = fresh.last_stable_offset
        expected = read_offsets(tasks(fresh, stable, until, is_committed=True, is_growing=True), is_committed=True)
        found = tasks(next_look, stable, until, is_committed=True, is_growing=True)
        assert read_offsets(found, is_committed=True) == expected
        checked, stable = next_look.checked_end(is_committed=True), until
    log.close()


def _grow(log: Partition, chance: random.Random, sequences: dict[int, int]) -> None:
    """Plain records, records of a transaction, or the end of one. Each producer has one transaction; `sequences` are
    the numbers of those that are open."""
    what = chance.random()
    if what < 0.3:
        log.append_as_leader(sized_batch(chance.choice([150, 300]), timestamp=NOW), 0, NOW)
    elif what < 0.7 or not sequences:
        producer = chance.choice([*sequences, log.log_end_offset])
        count = chance.randrange(1, 4)
        in_transaction(log, producer, sequences.get(producer, 0), count=count)
        sequences[producer] = sequences.get(producer, 0) + count
    else:
        producer = chance.choice(sorted(sequences))
        end_transaction(log, producer, committed=chance.random() < 0.5)
        del sequences[producer]


def test_a_log_that_was_cut_and_has_grown_again_is_checked_anew(tmp_path: Path):
    log = filled(tmp_path, batches=6, close=False, segment_bytes=10**6)
    checked = checked_by(tmp_path, None)
    assert checked is not None
    log.close()
    file = segment_file(tmp_path, 0)
    whole = file.read_bytes()
    file.write_bytes(whole[: 3 * BATCH_BYTES])
    assert view_of(tmp_path, checked=checked).valid_end.offset == 3
    other = filled(tmp_path / "other", batches=9, close=False, segment_bytes=10**6)
    other.close()
    file.write_bytes(whole[: 3 * BATCH_BYTES] + segment_file(tmp_path / "other", 0).read_bytes()[3 * BATCH_BYTES :])
    flip(file, 4 * BATCH_BYTES + 500)
    assert view_of(tmp_path, checked=checked).valid_end.offset == 4, "what is there instead was never checked"


def test_a_batch_that_is_being_written_counts_when_it_is_whole(tmp_path: Path):
    filled(tmp_path, batches=6, segment_bytes=10**6)
    file = segment_file(tmp_path, 0)
    whole = file.read_bytes()
    file.write_bytes(whole[: 4 * BATCH_BYTES + 300])
    checked = checked_by(tmp_path, None, up_to="end")
    assert checked is not None
    assert checked.ends[-1].offset == 4
    file.write_bytes(whole[: 4 * BATCH_BYTES + 600] + bytes(900))
    checked = checked_by(tmp_path, checked, up_to="end")
    assert checked is not None
    assert checked.ends[-1].offset == 4
    file.write_bytes(whole)
    assert view_of(tmp_path, checked=checked, up_to="end").valid_end.offset == 6


def test_the_next_segment_is_checked_from_its_beginning(tmp_path: Path):
    log = filled(tmp_path, batches=2, close=False)
    checked: CheckedEnd | None = None
    for batches in range(3, 12):
        append(log, 1)
        checked = checked_by(tmp_path, checked)
        assert checked is not None
        assert checked.end_offset == batches
    log.close()
