"""Compaction, rule by rule, on real files."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from ottla.log import compaction
from ottla.log.cleaner import Cleanable, CompactionResult, cleanable, compact, due
from ottla.log.compaction import KeyMap
from ottla.log.errors import CorruptMessageError
from ottla.log.partition import Partition
from ottla.log.producer_state import Verification
from ottla.log.read import Isolation
from ottla.wire.batch import BatchBuilder, read_header, stamp
from tests.unit.log.logs import (
    NOW,
    TOPIC,
    all_batches,
    append_as_coordinator,
    marker,
    new_storage,
    offsets,
    open_partition,
)

DAY = 86_400_000
COMPACTED = frozenset(("compact",))


def keyed(*pairs: tuple[str, str | None], timestamp: int = NOW, **header: Any) -> bytearray:
    """A batch of keys and values; None is a tombstone."""
    builder = BatchBuilder()
    for key, value in pairs:
        builder.append(timestamp, key.encode(), None if value is None else value.encode())
    return bytearray(builder.build(**header))


def open_log(path: Path, **settings: Any) -> Partition:
    return open_partition(path, cleanup_policy=COMPACTED, **settings)


def append(partition: Partition, *batches: bytearray) -> None:
    for one in batches:
        producer_id = read_header(one).producer_id
        verified = Verification(partition.producers.verification_guard(producer_id) if producer_id >= 0 else None)
        append_as_coordinator(partition, one, 0, NOW, verification=verified)
    partition.update_high_watermark(partition.log_end_offset)


def roll(partition: Partition) -> None:
    partition.roll(NOW)


def clean(
    partition: Partition, first_dirty_offset: int | None = None, now_ms: int = NOW, **rest: Any
) -> CompactionResult:
    work = cleanable(partition, first_dirty_offset, now_ms)
    return run_to_end(compact(partition, work, now_ms, **rest))


def run_to_end(steps: Generator[None, None, CompactionResult]) -> CompactionResult:
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            result: CompactionResult = stop.value
            return result


def content(partition: Partition) -> list[tuple[int, str, str | None]]:
    return [
        (
            record.offset,
            bytes(record.key or b"").decode(),
            None if record.value is None else bytes(record.value).decode(),
        )
        for one in all_batches(partition)
        if not one.is_control
        for record in one.records()
    ]


def text(data: bytes | bytearray | memoryview | None) -> str | None:
    return None if data is None else bytes(data).decode()


def test_the_newest_record_of_each_key_stays_at_its_offset(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0")
    append(log, keyed(("a", "1"), ("b", "1")), keyed(("a", "2")), keyed(("c", "1"), ("b", "2")))
    roll(log)
    append(log, keyed(("a", "3")))
    result = clean(log)
    # The active segment is not looked at, so its newer record of `a` does not count.
    assert content(log) == [(2, "a", "2"), (3, "c", "1"), (4, "b", "2"), (5, "a", "3")]
    assert (result.first_dirty_offset, result.records_read, result.records_kept) == (5, 5, 3)


def test_offsets_and_headers_of_batches_are_kept(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0")
    append(log, keyed(("a", "1"), ("b", "1"), ("c", "1")), keyed(("a", "2"), ("c", "2")))
    roll(log)
    clean(log)
    first = all_batches(log)[0]
    assert (first.base_offset, first.last_offset, first.record_count) == (0, 2, 1)
    assert log.log_end_offset == 5


def test_a_later_run_reads_only_the_dirty_part_but_cleans_all(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0")
    append(log, keyed(("a", "1"), ("b", "1")))
    roll(log)
    first = clean(log)
    append(log, keyed(("a", "2")))
    roll(log)
    second = clean(log, first.first_dirty_offset)
    assert content(log) == [(1, "b", "1"), (2, "a", "2")]
    assert second.first_dirty_offset == 3


def test_a_tombstone_gets_a_horizon_and_goes_after_it(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0", delete_retention_ms=DAY)
    append(log, keyed(("a", "1")), keyed(("a", None)), keyed(("b", "1")))
    roll(log)
    clean(log)
    assert content(log) == [(1, "a", None), (2, "b", "1")]
    tombstone = all_batches(log)[0]
    assert tombstone.delete_horizon_ms == NOW + DAY
    assert tombstone.records()[0].timestamp == NOW, "the record keeps its time"
    clean(log, now_ms=NOW + DAY - 1)
    assert [key for _, key, _ in content(log)] == ["a", "b"]
    clean(log, now_ms=NOW + DAY)
    assert content(log) == [(2, "b", "1")]


def test_a_record_without_a_key_goes(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0")
    log.append_as_follower(without_key(), 0, NOW)
    append(log, bytearray(keyed(("a", "1"))))
    roll(log)
    clean(log)
    assert content(log) == [(1, "a", "1")]


def without_key() -> bytearray:
    builder = BatchBuilder()
    builder.append(NOW, None, b"lost")
    return bytearray(builder.build(partition_leader_epoch=0))


def test_the_last_batch_of_the_range_stays_even_empty(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0", delete_retention_ms=0)
    append(log, keyed(("a", "1")), keyed(("a", None)))
    roll(log)
    clean(log)
    clean(log, now_ms=NOW + 1)
    (last,) = all_batches(log)
    assert (last.base_offset, last.last_offset, last.record_count) == (1, 1, 0)
    assert log.log_end_offset == 2


def test_an_active_producers_last_sequence_survives_as_an_empty_batch(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0")
    header = {"producer_id": 7, "producer_epoch": 0}
    append(log, keyed(("a", "1"), base_sequence=0, **header), keyed(("a", "2"), base_sequence=1, **header))
    append(log, keyed(("a", "3")))
    roll(log)
    clean(log)
    empty, kept = all_batches(log)
    assert (empty.base_offset, empty.record_count, empty.producer_id, empty.base_sequence) == (1, 0, 7, 1)
    assert (kept.base_offset, kept.record_count) == (2, 1)


def test_aborted_data_go_at_once_and_their_marker_later(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0", delete_retention_ms=DAY)
    append(log, transactional(7, ("a", "aborted")), marker(7, committed=False), keyed(("b", "1")), keyed(("c", "1")))
    log.producers.clear(log.log_end_offset)  # as if it had expired: no producer holds its last batch
    roll(log)
    clean(log)
    assert content(log) == [(2, "b", "1"), (3, "c", "1")]
    assert [one.base_offset for one in all_batches(log)] == [1, 2, 3], "the marker waits for its horizon"
    clean(log)
    assert all_batches(log)[0].delete_horizon_ms == NOW + DAY
    clean(log, now_ms=NOW + DAY)
    assert [one.base_offset for one in all_batches(log)] == [2, 3]


def test_committed_data_keep_their_marker_while_any_are_left(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0", delete_retention_ms=0)
    append(log, transactional(7, ("a", "1")), marker(7, committed=True), keyed(("b", "1")))
    log.producers.clear(log.log_end_offset)
    roll(log)
    clean(log)
    clean(log, now_ms=NOW + 1)
    assert [one.base_offset for one in all_batches(log)] == [0, 1, 2]
    append(log, keyed(("a", "2")))
    roll(log)
    clean(log, now_ms=NOW + 2)  # still meets the data
    clean(log, now_ms=NOW + 3)  # meets none, and lets the marker's time run
    assert [one.base_offset for one in all_batches(log)] == [1, 2, 3]
    clean(log, now_ms=NOW + 3)
    assert [one.base_offset for one in all_batches(log)] == [2, 3]


def test_an_abort_whose_data_are_left_stays_in_the_index(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0")
    append(log, transactional(7, ("a", "1"), ("b", "1")))
    roll(log)  # the data and their marker lie in two segments
    append(log, marker(7, committed=False), keyed(("c", "1")))
    roll(log)
    clean(log)
    reader = log.read(0, 10_000, Isolation.TXN_COMMITTED, min_one_batch=True)
    assert content(log) == [(3, "c", "1")]
    assert reader.aborted_transactions is not None


def transactional(producer_id: int, *pairs: tuple[str, str | None]) -> bytearray:
    return keyed(*pairs, producer_id=producer_id, producer_epoch=0, base_sequence=0, is_transactional=True)


def test_what_is_missing_before_the_next_segment_is_not_dirty(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0")
    append(log, keyed(("a", "1")), keyed(("a", "2")))
    log.roll(NOW, 10)
    follow(log, 10, keyed(("b", "1")))  # the leader's log has been compacted
    result = clean(log)
    assert content(log) == [(1, "a", "2"), (10, "b", "1")]
    assert result.first_dirty_offset == 10
    assert due([log], {TOPIC: 10}, NOW) == []


def test_what_is_missing_before_an_open_transaction_is_not_dirty(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0")
    append(log, keyed(("a", "1")), keyed(("a", "2")))
    follow(log, 10, transactional(7, ("b", "1")))
    roll(log)
    result = clean(log)
    assert result.first_dirty_offset == 10
    assert due([log], {TOPIC: 10}, NOW) == []


def follow(log: Partition, base_offset: int, batch: bytearray) -> None:
    stamp(batch, base_offset=base_offset, partition_leader_epoch=0)
    log.append_as_follower(batch, 0, NOW)
    log.update_high_watermark(log.log_end_offset)


def test_an_open_transaction_ends_the_range(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0")
    append(log, keyed(("a", "1")), keyed(("a", "2")))
    roll(log)
    append(log, transactional(7, ("a", "3")))
    roll(log)
    assert cleanable(log, None, NOW).end_offset == 2


def test_a_log_whose_producers_are_being_found_again_is_left_alone(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0")
    for sequence in range(200):
        append(log, keyed(("a", "1"), base_sequence=sequence, producer_id=7, producer_epoch=0))
        if sequence == 3:
            roll(log)
    first = clean(log)
    before = list(log.segments)
    steps = log.truncate_steps(150, NOW)
    next(steps)
    assert clean(log, first.first_dirty_offset) == CompactionResult(None)
    assert log.segments == before


def test_young_segments_wait_for_the_minimum_lag(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0", min_compaction_lag_ms=1_000)
    append(log, keyed(("a", "1"), timestamp=NOW - 2_000))
    roll(log)
    append(log, keyed(("a", "2"), timestamp=NOW))
    roll(log)
    assert cleanable(log, None, NOW).end_offset == 1
    assert cleanable(log, None, NOW + 1_000).end_offset == 2


def test_the_dirtiest_log_comes_first_and_an_overdue_one_before_it(tmp_path: Path) -> None:
    clean_log = open_log(tmp_path / "orders-0")
    dirty = open_log(tmp_path / "orders-1")
    for log in (clean_log, dirty):
        append(log, keyed(("a", "1")), keyed(("b", "1")), keyed(("c", "1")))
        roll(log)
        append(log, keyed(("a", "2")))
        roll(log)
    assert due([clean_log], {TOPIC: 3}, NOW) == [], "a quarter dirty is not enough"
    assert [work.dirty_ratio for _, work in due([clean_log, dirty], {}, NOW)] == [1.0, 1.0]
    overdue = open_log(tmp_path / "orders-2", max_compaction_lag_ms=1)
    append(overdue, keyed(("a", "1"), timestamp=NOW - 10))
    roll(overdue)
    assert [each for each, _ in due([dirty, overdue], {}, NOW)] == [overdue, dirty]


def test_a_log_that_is_not_compacted_is_never_due(tmp_path: Path) -> None:
    log = open_partition(tmp_path / "orders-0")
    append(log, keyed(("a", "1")))
    roll(log)
    assert due([log], {}, NOW) == []


@pytest.mark.parametrize("checkpoint", [None, -1, 99])
def test_a_checkpoint_that_does_not_fit_means_all_is_dirty(tmp_path: Path, checkpoint: int | None) -> None:
    log = open_log(tmp_path / "orders-0")
    append(log, keyed(("a", "1")))
    roll(log)
    assert cleanable(log, checkpoint, NOW) == Cleanable(0, 1, 0, log.segments[0].size_bytes, is_overdue=False)


def test_small_remains_are_joined_into_one_segment(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0")
    for number in range(5):
        append(log, keyed(("a", str(number)), (f"k{number}", "1")))
        roll(log)
    clean(log)
    assert len(log.segments) == 2
    assert offsets(log) == [1, 3, 5, 7, 8, 9]


def test_a_full_map_ends_a_run_and_the_next_goes_on(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0")
    for number in range(6):
        append(log, keyed((f"k{number % 3}", str(number))))
    roll(log)
    first = clean(log, entries_max=2)
    assert first.first_dirty_offset == 2
    position: int | None = first.first_dirty_offset
    while position is not None and position < 6:
        position = clean(log, position, entries_max=2).first_dirty_offset
    assert content(log) == [(3, "k0", "3"), (4, "k1", "4"), (5, "k2", "5")]


def test_a_log_cut_meanwhile_gives_the_run_up(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0")
    append(log, keyed(("a", "1")), keyed(("a", "2")))
    roll(log)
    steps = compact(log, cleanable(log, None, NOW), NOW)
    next(steps)  # the first pass has read a chunk
    next(steps)
    log.truncate_to(0, NOW)
    log.truncate_fully(0, NOW)
    assert run_to_end(steps).first_dirty_offset is None
    assert not [path.name for path in (tmp_path / "orders-0").iterdir() if path.name.endswith(".cleaned")]


@pytest.mark.parametrize("steps_before", [1, 2])
def test_what_is_cut_during_a_run_does_not_come_back(tmp_path: Path, steps_before: int) -> None:
    """An unclean election can cut below the high watermark, within a segment that is being compacted."""
    log = open_log(tmp_path / "orders-0")
    append(log, keyed(("a", "1")), keyed(("b", "2")), keyed(("a", "3")))
    roll(log)
    steps = compact(log, cleanable(log, None, NOW), NOW)
    for _ in range(steps_before):
        next(steps)
    log.truncate_to(2, NOW)
    assert run_to_end(steps).first_dirty_offset is None
    assert content(log) == [(0, "a", "1"), (1, "b", "2")], "the first value of a was newer than what was cut"
    append(log, keyed(("c", "4")))
    assert offsets(log) == [0, 1, 2]


def test_segments_that_retention_removes_during_the_first_pass_give_the_run_up(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0")
    for number in range(3):
        append(log, keyed(("a", str(number))))
        roll(log)
    steps = compact(log, cleanable(log, None, NOW), NOW)
    next(steps)
    log.delete_oldest_segments(2, NOW)
    assert run_to_end(steps).first_dirty_offset is None
    assert offsets(log) == [2]


def test_damage_is_an_error_and_changes_nothing(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0")
    append(log, keyed(("a", "1")), keyed(("a", "2")))
    roll(log)
    path = tmp_path / "orders-0" / "00000000000000000000.log"
    damaged = bytearray(path.read_bytes())
    damaged[-1] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(CorruptMessageError, match="orders-0 cannot be compacted"):
        clean(log)
    assert path.read_bytes() == damaged


def test_damage_in_what_is_clean_leaves_no_files_behind(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0")
    append(log, keyed(("a", "1")))
    roll(log)
    first = clean(log)
    append(log, keyed(("b", "1")))
    roll(log)
    path = tmp_path / "orders-0" / "00000000000000000000.log"
    path.write_bytes(path.read_bytes()[:-1] + b"\xff")
    with pytest.raises(CorruptMessageError, match="orders-0 cannot be compacted"):
        clean(log, first.first_dirty_offset)
    # They would make the next start doubt what another run has written.
    assert [each.name for each in path.parent.iterdir() if each.name.endswith(".cleaned")] == []


def test_what_was_cleaned_is_there_after_a_restart(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0")
    append(log, keyed(("a", "1")), keyed(("a", "2")), keyed(("b", "1")))
    roll(log)
    clean(log)
    before = content(log)
    log.close()
    again = open_log(tmp_path / "orders-0", is_clean=False)
    assert content(again) == before
    assert again.log_end_offset == 3


def test_a_batch_larger_than_a_chunk_is_read_whole(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0", max_message_bytes=10_000_000)
    append(log, keyed(("a", "x" * 600_000), ("b", "1")), keyed(("a", "2")))
    roll(log)
    clean(log)
    assert content(log) == [(1, "b", "1"), (2, "a", "2")]


def test_a_run_goes_on_though_others_need_its_files(tmp_path: Path) -> None:
    storage = new_storage(open_files_max=2)
    log = open_log(tmp_path / "orders-0", storage=storage)
    append(log, *(keyed((f"{number % 5}", "v" * 100_000)) for number in range(10)))
    roll(log)
    others = [open_partition(tmp_path / f"other-{number}", storage=storage) for number in range(3)]
    steps = compact(log, cleanable(log, None, NOW), NOW)
    for _ in steps:
        for other in others:
            append(other, keyed(("k", "v")))
    assert [offset for offset, _, _ in content(log)] == [5, 6, 7, 8, 9]


def test_long_keys_are_kept_by_digest_and_never_taken_for_others() -> None:
    keys = KeyMap(0)
    long_key = b"k" * 100
    keys.put(long_key, 7)
    keys.put(compaction._short(long_key)[:16], 8)
    assert (keys.newest(long_key), len(keys)) == (7, 2)
    assert keys.newest(b"unknown") == -1
