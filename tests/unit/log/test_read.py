"""Reading by offset, by time, and only what is committed."""

from pathlib import Path
from typing import Any

import pytest

from ottla.log import read as special
from ottla.log.errors import CorruptMessageError, OffsetOutOfRangeError
from ottla.log.partition import Partition
from ottla.log.producer_state import Verification
from ottla.log.read import Isolation, OffsetAndTimestamp
from ottla.log.txn_index import AbortedTxn
from ottla.wire.batch import Compression, split_batches
from ottla.wire.errors import ErrorCode
from tests.unit.log.logs import (
    NOW,
    all_batches,
    append_as_coordinator,
    batch,
    legacy_message,
    marker,
    new_storage,
    open_partition,
    producer_batch,
    region_bytes,
    sized_batch,
    values,
)


def filled(path: Path, *, batches: int = 20, **settings: Any) -> Partition:
    """Batches of 1,000 bytes with one record each, in segments of three."""
    log = open_partition(path / "orders-0", segment_bytes=3000, index_interval_bytes=1500, **settings)
    for number in range(batches):
        log.append_as_leader(sized_batch(1000, timestamp=NOW + number * 10), 0, NOW)
    return log


def read_offsets(log: Partition, offset: int, max_bytes: int, **rest: Any) -> list[int]:
    region = log.read(offset, max_bytes, rest.pop("isolation", Isolation.LOG_END), **rest)
    return [one.base_offset for one in split_batches(region_bytes(region))]


def test_a_read_begins_with_the_batch_of_the_offset_and_stays_in_a_segment(tmp_path: Path):
    log = filled(tmp_path)
    assert len(log.segments) == 7
    assert read_offsets(log, 4, 100_000) == [4, 5]
    assert read_offsets(log, 3, 2000) == [3, 4]
    assert read_offsets(log, 3, 2999) == [3, 4]
    region = log.read(4, 100_000, Isolation.LOG_END)
    assert (region.position, region.length, region.base_offset, region.segment_base_offset) == (1000, 2000, 4, 3)


def test_an_offset_inside_a_batch_gives_all_of_it(tmp_path: Path):
    log = open_partition(tmp_path / "orders-0")
    log.append_as_leader(batch(b"a", b"b", b"c"), 0, NOW)
    assert read_offsets(log, 2, 1000) == [0]
    assert log.read(2, 1000, Isolation.LOG_END).base_offset == 0


def test_the_first_batch_may_be_too_large(tmp_path: Path):
    log = filled(tmp_path)
    region = log.read(0, 999, Isolation.LOG_END)
    assert region.is_first_batch_cut
    assert region.file is None
    assert read_offsets(log, 0, 999, min_one_batch=True) == [0]
    assert read_offsets(log, 0, 0, min_one_batch=True) == [0]


@pytest.mark.parametrize("offset", [-1, 21, 10**12])
def test_an_offset_outside_of_the_log(tmp_path: Path, offset: int):
    log = filled(tmp_path)
    with pytest.raises(OffsetOutOfRangeError) as caught:
        log.read(offset, 1000, Isolation.LOG_END)
    assert caught.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_nothing_to_read_at_the_end(tmp_path: Path):
    log = filled(tmp_path)
    region = log.read(20, 1000, Isolation.LOG_END)
    assert (region.file, region.length, region.aborted_transactions) == (None, 0, None)
    assert log.read(20, 1000, Isolation.TXN_COMMITTED).aborted_transactions == ()


def test_readers_see_no_further_than_the_high_watermark(tmp_path: Path):
    log = filled(tmp_path)
    committed = Isolation.HIGH_WATERMARK
    assert read_offsets(log, 0, 9999, isolation=committed) == []
    for watermark in (1, 3, 4, 8, 20):
        log.update_high_watermark(watermark)
        assert [one.base_offset for one in all_batches(log, isolation=committed)] == list(range(watermark))
        assert read_offsets(log, 20, 9999, isolation=committed) == []
    assert not log.update_high_watermark(99)
    assert log.high_watermark == 20
    assert log.update_high_watermark(7)


def test_one_batch_at_least_never_passes_the_high_watermark(tmp_path: Path):
    log = filled(tmp_path)
    log.update_high_watermark(4)
    assert read_offsets(log, 3, 1, isolation=Isolation.HIGH_WATERMARK, min_one_batch=True) == [3]
    assert read_offsets(log, 4, 1, isolation=Isolation.HIGH_WATERMARK, min_one_batch=True) == []


def test_staged_batches_are_not_seen(tmp_path: Path):
    log = filled(tmp_path, batches=1)
    log.stage_as_leader(batch(), 0, NOW)
    assert read_offsets(log, 0, 9999) == [0]
    with pytest.raises(OffsetOutOfRangeError):
        log.read(2, 1000, Isolation.LOG_END)


def test_the_log_start_hides_what_lies_below(tmp_path: Path):
    log = filled(tmp_path)
    log.update_high_watermark(20)
    log.delete_records(5)
    with pytest.raises(OffsetOutOfRangeError):
        log.read(4, 1000, Isolation.LOG_END)
    assert read_offsets(log, 5, 9999) == [5]


def test_holes_are_passed_over(tmp_path: Path):
    from tests.unit.log.logs import led

    log = open_partition(tmp_path / "orders-0", segment_bytes=300)
    for base in (0, 50, 100):
        log.append_as_follower(led((base, 0)), 0, NOW)
    log.roll(NOW)
    log.append_as_follower(led((900, 0)), 0, NOW)
    assert read_offsets(log, 2, 100_000)[0] == 50
    assert read_offsets(log, 102, 100_000) == [900]
    assert read_offsets(log, 150, 100_000) == [900]


def test_a_read_after_the_files_were_closed(tmp_path: Path):
    storage = new_storage(open_files_max=2)
    log = filled(tmp_path, storage=storage)
    assert [one.base_offset for one in all_batches(log)] == list(range(20))
    assert len(storage.open_files) <= 2


def test_a_pinned_region_outlives_its_segment(tmp_path: Path):
    log = filled(tmp_path)
    region = log.read(0, 9999, Isolation.LOG_END)
    assert region.file is not None
    handle = region.file.pin()
    log.update_high_watermark(20)
    log.delete_oldest_segments(2, NOW)
    for path in log.storage.due_deletions(NOW + 10**9):
        if Path(path).exists():
            log.storage.disk.unlink(path)
    assert len(handle.read(region.length, region.position)) == 3000
    region.file.unpin()
    assert not region.file.is_open


# --- committed data ---------------------------------------------------------------------------------------------------


def transactional(path: Path, **settings: Any) -> Partition:
    log = open_partition(path / "orders-0", **settings)
    append = log.append_as_leader
    verified = Verification(0)
    append(producer_batch(1, 0, transactional=True), 0, NOW, verification=verified)  # 0, aborted at 3
    append(producer_batch(2, 0, transactional=True), 0, NOW, verification=verified)  # 1, committed at 4
    append(batch(b"plain"), 0, NOW)  # 2
    append_as_coordinator(log, marker(1, committed=False), 0, NOW)  # 3
    append_as_coordinator(log, marker(2, committed=True), 0, NOW)  # 4
    append(producer_batch(3, 0, transactional=True), 0, NOW, verification=verified)  # 5, open
    append(batch(b"plain"), 0, NOW)  # 6
    log.update_high_watermark(7)
    return log


@pytest.mark.parametrize("segment_bytes", [10**6, 160])
def test_readers_of_committed_data_stop_at_the_open_transaction(tmp_path: Path, segment_bytes: int):
    log = transactional(tmp_path, segment_bytes=segment_bytes)
    assert log.last_stable_offset == 5
    seen = all_batches(log, isolation=Isolation.TXN_COMMITTED)
    assert [one.base_offset for one in seen] == [0, 1, 2, 3, 4]
    assert read_offsets(log, 5, 9999, isolation=Isolation.TXN_COMMITTED) == []
    assert [one.base_offset for one in all_batches(log, isolation=Isolation.HIGH_WATERMARK)] == list(range(7))


@pytest.mark.parametrize("segment_bytes", [10**6, 160])
def test_readers_of_committed_data_are_told_what_was_aborted(tmp_path: Path, segment_bytes: int):
    log = transactional(tmp_path, segment_bytes=segment_bytes)
    aborted = AbortedTxn(1, 0, 3, 1)
    assert log.read(0, 9999, Isolation.TXN_COMMITTED).aborted_transactions == (aborted,)
    assert log.read(3, 9999, Isolation.TXN_COMMITTED).aborted_transactions == (aborted,)
    assert log.read(4, 9999, Isolation.TXN_COMMITTED).aborted_transactions == ()
    assert log.read(0, 9999, Isolation.HIGH_WATERMARK).aborted_transactions is None
    assert log.aborted_transactions(0, 1) == [aborted]
    assert log.aborted_transactions(4, 9) == []


def test_the_last_stable_offset_does_not_fall_below_the_start(tmp_path: Path):
    log = transactional(tmp_path)
    log.delete_records(6)
    assert log.last_stable_offset == 6


# --- times ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reopened", [False, True])
def test_the_first_record_that_is_not_older(tmp_path: Path, reopened: bool):
    log = filled(tmp_path)
    if reopened:
        log.close()
        log = open_partition(tmp_path / "orders-0", segment_bytes=3000, index_interval_bytes=1500)
    for number in range(20):
        found = OffsetAndTimestamp(number, NOW + number * 10, 0)
        assert log.offset_for_timestamp(NOW + number * 10) == found
        assert log.offset_for_timestamp(NOW + number * 10 - 9) == found
    assert log.offset_for_timestamp(0) == OffsetAndTimestamp(0, NOW, 0)
    assert log.offset_for_timestamp(NOW + 191) is None


@pytest.mark.parametrize("compression", [Compression.NONE, Compression.ZSTD])
def test_a_time_within_a_batch(tmp_path: Path, compression: Compression):
    log = open_partition(tmp_path / "orders-0")
    log.append_as_leader(batch(b"a", timestamp=1), 3, NOW)
    times = [1000, 3000, 2000, 3000]
    log.append_as_leader(batch(b"a", b"b", b"c", b"d", timestamps=times, compression=compression), 4, NOW)
    assert log.offset_for_timestamp(1001) == OffsetAndTimestamp(2, 3000, 4)
    assert log.offset_for_timestamp(special.MAX_TIMESTAMP) == OffsetAndTimestamp(2, 3000, 4)
    assert log.offset_for_timestamp(1) == OffsetAndTimestamp(0, 1, 3)


def test_falling_timestamps(tmp_path: Path):
    log = open_partition(tmp_path / "orders-0", segment_bytes=3000, index_interval_bytes=0)
    for timestamp in (500, 900, 100, 800, 900, 50, 950, 10):
        log.append_as_leader(sized_batch(1000, timestamp=timestamp), 0, NOW)
    found = [log.offset_for_timestamp(timestamp) for timestamp in (1, 501, 850, 901)]
    assert [one.offset for one in found if one] == [0, 1, 1, 6]
    newest = log.offset_for_timestamp(special.MAX_TIMESTAMP)
    assert newest == OffsetAndTimestamp(6, 950, 0)


def test_records_below_the_log_start_are_not_found_by_time(tmp_path: Path):
    log = filled(tmp_path)
    log.update_high_watermark(20)
    log.delete_records(4)
    assert log.offset_for_timestamp(0) == OffsetAndTimestamp(4, NOW + 40, 0)


def test_the_special_times(tmp_path: Path):
    log = filled(tmp_path)
    log.update_high_watermark(20)
    log.become_leader(8)
    log.append_as_leader(batch(), 8, NOW)
    assert log.offset_for_timestamp(special.LATEST) == OffsetAndTimestamp(21, -1, 8)
    assert log.offset_for_timestamp(special.EARLIEST) == OffsetAndTimestamp(0, -1, 0)
    log.delete_records(7)
    assert log.offset_for_timestamp(special.EARLIEST) == OffsetAndTimestamp(7, -1, 0)
    assert log.offset_for_timestamp(special.EARLIEST_LOCAL) == OffsetAndTimestamp(7, -1, 0)
    nothing = OffsetAndTimestamp(-1, -1, -1)
    assert log.offset_for_timestamp(special.LATEST_TIERED) == nothing
    assert log.offset_for_timestamp(special.EARLIEST_PENDING_UPLOAD) == nothing


def test_an_empty_log_has_no_times(tmp_path: Path):
    log = open_partition(tmp_path / "orders-0")
    assert log.offset_for_timestamp(special.MAX_TIMESTAMP) is None
    assert log.offset_for_timestamp(0) is None
    assert log.offset_for_timestamp(special.EARLIEST) == OffsetAndTimestamp(0, -1, -1)
    assert log.offset_for_timestamp(special.LATEST) == OffsetAndTimestamp(0, -1, -1)


def test_records_without_timestamps_count_as_old_as_their_file(tmp_path: Path):
    log = open_partition(tmp_path / "orders-0")
    log.append_as_leader(batch(timestamp=-1), 0, NOW)
    log.storage.disk.set_modified(log.active_segment.file.path, 1000)
    assert log.offset_for_timestamp(1001) is None
    assert log.offset_for_timestamp(special.MAX_TIMESTAMP) is None


def test_old_formats_have_times_but_no_epochs(tmp_path: Path):
    log = open_partition(tmp_path / "orders-0")
    log.append_as_follower(legacy_message(0, b"a", timestamp=70) + legacy_message(1, b"b", timestamp=90), 0, NOW)
    assert log.offset_for_timestamp(80) == OffsetAndTimestamp(1, 90, -1)
    assert values(all_batches(log)) == [b"a", b"b"]


def test_damaged_records_are_named_when_a_time_is_looked_for(tmp_path: Path):
    log = open_partition(tmp_path / "orders-0")
    log.append_as_leader(batch(b"a" * 50), 0, NOW)
    log.active_segment.file.handle().write([b"\xff" * 9], 61)
    with pytest.raises(CorruptMessageError, match=r"\.log"):
        log.offset_for_timestamp(NOW)


def test_the_first_millisecond_of_1970_is_a_timestamp_after_a_restart(tmp_path: Path) -> None:
    log = open_partition(tmp_path / "orders-0")
    log.append_as_leader(batch(b"v", timestamp=0), 0, NOW)
    assert log.offset_for_timestamp(special.MAX_TIMESTAMP) == OffsetAndTimestamp(0, 0, 0)
    log.close()
    again = open_partition(tmp_path / "orders-0")
    assert again.offset_for_timestamp(special.MAX_TIMESTAMP) == OffsetAndTimestamp(0, 0, 0)
