"""What a leader takes, what it refuses, what it changes; and what a follower takes over."""

import zlib
from pathlib import Path
from typing import Any

import pytest

from ottla.log.config import LogConfig
from ottla.log.errors import (
    CorruptMessageError,
    InvalidRecordError,
    InvalidTimestampError,
    InvalidTxnStateError,
    LogError,
    MessageTooLargeError,
    OffsetsOutOfOrderError,
    OutOfOrderSequenceError,
    RecordListTooLargeError,
    UnexpectedAppendOffsetError,
    UnsupportedCompressionTypeError,
)
from ottla.log.producer_state import Origin
from ottla.log.txn_index import AbortedTxn
from ottla.wire.batch import BatchBuilder, Compression, TimestampType, crc32c, read_header, stamp
from ottla.wire.batch_view import CONTROL_BIT
from ottla.wire.errors import ErrorCode
from tests.unit.log.logs import (
    NOW,
    all_batches,
    append_as_coordinator,
    batch,
    contents,
    file_sizes,
    led,
    legacy_message,
    marker,
    offsets,
    open_partition,
    producer_batch,
    sized_batch,
    transaction,
    values,
)

HOUR = 3_600_000


def with_crc(data: bytearray) -> bytearray:
    """The batch with the checksum its bytes have now."""
    data[17:21] = crc32c(bytes(data[21:])).to_bytes(4, "big")
    return data


def test_offsets_count_up_over_batches(tmp_path: Path):
    log = open_partition(tmp_path / "orders-0")
    first = log.append_as_leader(batch(b"a", b"b"), 3, NOW)
    second = log.append_as_leader(batch(b"c"), 4, NOW)
    assert (first.base_offset, first.last_offset) == (0, 1)
    assert (second.base_offset, second.last_offset) == (2, 2)
    assert log.log_end_offset == 3
    assert values(all_batches(log)) == [b"a", b"b", b"c"]
    assert [one.partition_leader_epoch for one in all_batches(log)] == [3, 4]
    assert log.epochs.entries == ((3, 0), (4, 2))


def test_a_batch_is_stored_as_it_came_but_for_offset_and_epoch(tmp_path: Path):
    log = open_partition(tmp_path / "orders-0")
    log.append_as_leader(batch(), 0, NOW)
    sent = batch(b"x", b"y", producer_id=9, producer_epoch=1, base_sequence=4)
    before = bytes(sent)
    log.append_as_leader(sent, 7, NOW)
    stored = bytes(all_batches(log)[1].data)
    assert stored[:8] == (1).to_bytes(8, "big")
    assert stored[12:16] == (7).to_bytes(4, "big")
    assert stored[8:12] + stored[16:] == before[8:12] + before[16:]


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, lambda data: memoryview(bytes(data))])
def test_any_buffer_will_do(tmp_path: Path, kind: Any):
    log = open_partition(tmp_path / "orders-0")
    log.append_as_leader(batch(), 0, NOW)
    log.append_as_leader(kind(batch(b"a")), 0, NOW)
    assert offsets(log) == [0, 1]


def test_a_batch_in_the_middle_of_a_larger_buffer(tmp_path: Path):
    log = open_partition(tmp_path / "orders-0")
    made = batch(b"a")
    frame = bytearray(b"header") + made + b"trailer"
    log.append_as_leader(memoryview(frame)[6 : 6 + len(made)], 0, NOW)
    assert values(all_batches(log)) == [b"a"]
    assert frame[:6] == b"header"
    assert frame[-7:] == b"trailer"


def test_what_gathers_is_written_at_once(tmp_path: Path):
    log = open_partition(tmp_path / "orders-0")
    writes: list[int] = []
    handle = log.active_segment.file.handle()
    original = handle.write

    def write(buffers: Any, position: int) -> None:
        writes.append(len(buffers))
        original(buffers, position)

    log.active_segment.file._handle = Spy(handle, write)
    infos = [log.stage_as_leader(batch(b"v%d" % number), 0, NOW) for number in range(5)]
    assert [info.base_offset for info in infos] == [0, 1, 2, 3, 4]
    # The first one was written alone: only then does a new segment know its first timestamp.
    assert (log.log_end_offset, log.next_offset) == (1, 5)
    log.write()
    assert writes == [1, 4]
    assert log.log_end_offset == 5
    assert offsets(log) == [0, 1, 2, 3, 4]
    log.write()
    assert writes == [1, 4]


class Spy:
    """A file whose writes are seen."""

    def __init__(self, file: Any, write: Any) -> None:
        self._file = file
        self.write = write

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def test_what_gathers_is_bounded(tmp_path: Path):
    log = open_partition(tmp_path / "orders-0")
    log.append_as_leader(batch(), 0, NOW)
    for _ in range(12):
        log.stage_as_leader(sized_batch(100_000), 0, NOW)
    assert log.log_end_offset == 12
    assert log.active_segment.size_bytes > 1_000_000
    log.stage_as_leader(batch(), 0, NOW)
    for _ in range(600):
        log.stage_as_leader(batch(), 0, NOW)
    assert log.log_end_offset > 500


# --- refusals ---------------------------------------------------------------------------------------------------------


def refusals() -> list[Any]:
    control = with_crc(bytearray(batch(is_control=True)))
    flipped = batch(b"a")
    flipped[-1] ^= 1
    base = batch(b"a")
    base[7] = 5
    counted = batch(b"a", b"b")
    counted[57:61] = (3).to_bytes(4, "big")
    empty = BatchBuilder().build()
    unnumbered = batch(producer_id=5, producer_epoch=0)
    unknown_codec = batch(b"a")
    unknown_codec[22] = 5
    return [
        pytest.param(flipped, CorruptMessageError, ErrorCode.CORRUPT_MESSAGE, id="checksum"),
        pytest.param(base, InvalidRecordError, ErrorCode.INVALID_RECORD, id="base offset"),
        pytest.param(batch() + batch(), InvalidRecordError, ErrorCode.INVALID_RECORD, id="two batches"),
        pytest.param(b"", InvalidRecordError, ErrorCode.INVALID_RECORD, id="nothing"),
        pytest.param(batch()[:-1], InvalidRecordError, ErrorCode.INVALID_RECORD, id="cut"),
        pytest.param(batch()[:40], InvalidRecordError, ErrorCode.INVALID_RECORD, id="cut in the header"),
        pytest.param(legacy_message(0, b"old" * 20), InvalidRecordError, ErrorCode.INVALID_RECORD, id="magic 1"),
        pytest.param(with_crc(counted), InvalidRecordError, ErrorCode.INVALID_RECORD, id="count"),
        pytest.param(empty, InvalidRecordError, ErrorCode.INVALID_RECORD, id="no records"),
        pytest.param(control, InvalidRecordError, ErrorCode.INVALID_RECORD, id="control"),
        pytest.param(unnumbered, InvalidRecordError, ErrorCode.INVALID_RECORD, id="no sequence"),
        pytest.param(
            with_crc(unknown_codec),
            UnsupportedCompressionTypeError,
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            id="codec",
        ),
    ]


@pytest.mark.parametrize(("records", "error", "code"), refusals())
def test_what_is_no_sound_batch_is_refused(tmp_path: Path, records: bytes, error: type[LogError], code: ErrorCode):
    log = open_partition(tmp_path / "orders-0")
    log.append_as_leader(batch(), 0, NOW)
    before = contents(tmp_path / "orders-0")
    with pytest.raises(error) as caught:
        log.append_as_leader(records, 1, NOW)
    assert caught.value.code == code
    assert log.log_end_offset == log.next_offset == 1
    assert log.epochs.entries == ((0, 0),)
    assert contents(tmp_path / "orders-0") == before


def test_bytes_after_the_batch_are_left_out(tmp_path: Path):
    log = open_partition(tmp_path / "orders-0")
    log.append_as_leader(batch(b"a") + b"\x00" * 9, 0, NOW)
    log.append_as_leader(batch(b"b"), 0, NOW)
    assert values(all_batches(log)) == [b"a", b"b"]


def test_a_batch_may_be_as_large_as_allowed(tmp_path: Path):
    log = open_partition(tmp_path / "orders-0", max_message_bytes=500, segment_bytes=600)
    log.append_as_leader(sized_batch(500), 0, NOW)
    with pytest.raises(MessageTooLargeError) as caught:
        log.append_as_leader(sized_batch(501), 0, NOW)
    assert caught.value.code == ErrorCode.MESSAGE_TOO_LARGE


def test_a_batch_must_fit_in_a_segment(tmp_path: Path):
    log = open_partition(tmp_path / "orders-0", segment_bytes=400)
    log.append_as_leader(sized_batch(400), 0, NOW)
    with pytest.raises(RecordListTooLargeError) as caught:
        log.append_as_leader(sized_batch(401), 0, NOW)
    assert caught.value.code == ErrorCode.RECORD_LIST_TOO_LARGE


def test_a_compacted_topic_needs_keys(tmp_path: Path):
    log = open_partition(tmp_path / "orders-0", cleanup_policy=frozenset(("compact",)))
    with pytest.raises(InvalidRecordError) as caught:
        log.append_as_leader(batch(b"a", b"b", b"c", keys=[None, b"k", None]), 0, NOW)
    assert [error.batch_index for error in caught.value.record_errors] == [0, 2]
    assert "2 of 3 records" in str(caught.value)
    log.append_as_leader(batch(b"a", keys=[b""]), 0, NOW)
    assert log.log_end_offset == 1


def test_a_compacted_topic_looks_into_compressed_batches(tmp_path: Path):
    log = open_partition(tmp_path / "orders-0", cleanup_policy=frozenset(("compact", "delete")))
    with pytest.raises(InvalidRecordError):
        log.append_as_leader(batch(b"a", keys=[None], compression=Compression.LZ4), 0, NOW)


def test_records_that_cannot_be_read_are_refused_where_they_are_looked_at(tmp_path: Path):
    broken = batch(b"a" * 40)
    broken[61:70] = b"\xff" * 9
    with_crc(broken)
    open_partition(tmp_path / "a-0").append_as_leader(bytearray(broken), 0, NOW)
    with pytest.raises(InvalidRecordError):
        open_partition(tmp_path / "b-0", ottla_validate_records=True).append_as_leader(broken, 0, NOW)


# --- timestamps -------------------------------------------------------------------------------------------------------


def test_a_timestamp_too_far_ahead_is_refused(tmp_path: Path):
    log = open_partition(tmp_path / "orders-0")
    log.append_as_leader(batch(timestamp=NOW + HOUR), 0, NOW)
    with pytest.raises(InvalidTimestampError) as caught:
        log.append_as_leader(batch(b"a", b"b", timestamps=[NOW, NOW + HOUR + 1]), 0, NOW)
    assert caught.value.code == ErrorCode.INVALID_TIMESTAMP
    assert [error.batch_index for error in caught.value.record_errors] == [1]


def test_a_timestamp_too_old_is_refused_if_the_topic_says_so(tmp_path: Path):
    free = open_partition(tmp_path / "a-0")
    free.append_as_leader(batch(timestamp=0), 0, NOW)
    log = open_partition(tmp_path / "b-0", message_timestamp_before_max_ms=1000)
    log.append_as_leader(batch(timestamp=NOW - 1000), 0, NOW)
    with pytest.raises(InvalidTimestampError):
        log.append_as_leader(batch(b"a", b"b", timestamps=[NOW, NOW - 1001]), 0, NOW)
    log.append_as_leader(batch(timestamp=-1), 0, NOW)  # no timestamp at all is free


def test_a_largest_timestamp_that_is_not_the_records_own_is_corrected(tmp_path: Path):
    log = open_partition(tmp_path / "orders-0")
    lying = with_crc(bytearray(batch(b"a", b"b", timestamps=[NOW, NOW + 5], max_timestamp=NOW + 99 * HOUR)))
    info = log.append_as_leader(lying, 0, NOW)
    (stored,) = all_batches(log)
    assert info.max_timestamp == stored.max_timestamp == NOW + 5
    assert stored.is_valid


def test_log_append_time_replaces_the_producers(tmp_path: Path):
    log = open_partition(tmp_path / "orders-0", message_timestamp_type="LogAppendTime")
    info = log.append_as_leader(batch(b"a", b"b", timestamps=[5, 9]), 0, NOW)
    assert info.log_append_time_ms == NOW
    assert info.max_timestamp == NOW
    (stored,) = all_batches(log)
    assert stored.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert stored.max_timestamp == NOW
    assert [record.timestamp for record in stored.records()] == [NOW, NOW]
    assert log.append_as_leader(batch(timestamp=NOW + 99 * HOUR), 0, NOW + 1).max_timestamp == NOW + 1


def test_create_time_has_no_append_time_to_tell(tmp_path: Path):
    log = open_partition(tmp_path / "orders-0")
    assert log.append_as_leader(batch(), 0, NOW + 5).log_append_time_ms == -1


def claiming_append_time(timestamp: int) -> bytearray:
    data = batch(b"a", timestamp=timestamp)
    stamp(data, base_offset=0, partition_leader_epoch=-1, log_append_time=timestamp)
    return data


def test_a_producer_that_claims_append_time(tmp_path: Path):
    log = open_partition(tmp_path / "a-0")
    log.append_as_leader(claiming_append_time(NOW - 5), 0, NOW)
    (stored,) = all_batches(log)
    assert stored.timestamp_type is TimestampType.CREATE_TIME
    assert stored.max_timestamp == NOW - 5
    with pytest.raises(InvalidTimestampError):
        log.append_as_leader(claiming_append_time(-1), 0, NOW)
    other = open_partition(tmp_path / "b-0", message_timestamp_type="LogAppendTime")
    with pytest.raises(InvalidTimestampError):
        other.append_as_leader(claiming_append_time(NOW), 0, NOW)


# --- compression ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sent", list(Compression))
@pytest.mark.parametrize("wanted", ["producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_a_topic_may_want_another_codec(tmp_path: Path, sent: Compression, wanted: str):
    log = open_partition(tmp_path / "orders-0", compression_type=wanted)
    log.append_as_leader(batch(), 0, NOW)
    made = batch(b"a" * 500, b"b" * 500, compression=sent, producer_id=4, producer_epoch=0, base_sequence=8)
    as_sent = bytes(made)
    log.append_as_leader(made, 0, NOW)
    stored = all_batches(log)[1]
    names = {"producer": sent.name, "uncompressed": "NONE"}
    codec = Compression[names.get(wanted, wanted.upper())]
    assert stored.compression is codec
    assert values([stored]) == [b"a" * 500, b"b" * 500]
    assert (stored.base_offset, stored.producer_id, stored.base_sequence) == (1, 4, 8)
    if codec is sent:
        assert bytes(stored.data)[16:] == as_sent[16:]


def test_the_size_is_observed_again_after_decompression(tmp_path: Path):
    log = open_partition(tmp_path / "orders-0", compression_type="uncompressed", max_message_bytes=400)
    with pytest.raises(MessageTooLargeError):
        log.append_as_leader(batch(b"a" * 500, compression=Compression.ZSTD), 0, NOW)


def test_markers_are_never_compressed(tmp_path: Path):
    log = open_partition(tmp_path / "orders-0", compression_type="zstd", cleanup_policy=frozenset(("compact",)))
    append_as_coordinator(log, marker(5, committed=True), 0, NOW)
    assert all_batches(log)[0].size_bytes == 78


# --- producers in a log -----------------------------------------------------------------------------------------------


def test_a_repeated_batch_is_answered_with_its_old_offsets(tmp_path: Path):
    log = open_partition(tmp_path / "orders-0")
    log.append_as_leader(batch(), 0, NOW)
    log.append_as_leader(producer_batch(7, 0, count=3, timestamp=NOW - 9), 0, NOW)
    log.append_as_leader(producer_batch(7, 3), 0, NOW)
    again = log.append_as_leader(producer_batch(7, 0, count=3, timestamp=NOW - 9), 0, NOW)
    assert again.is_duplicate
    assert (again.base_offset, again.last_offset, again.log_append_time_ms) == (1, 3, NOW - 9)
    assert log.log_end_offset == 5


def test_a_repeated_batch_is_recognised_before_it_is_written(tmp_path: Path):
    log = open_partition(tmp_path / "orders-0")
    log.stage_as_leader(producer_batch(7, 0), 0, NOW)
    assert log.stage_as_leader(producer_batch(7, 0), 0, NOW).is_duplicate
    log.write()
    assert offsets(log) == [0]


def test_a_refused_producer_leaves_no_trace(tmp_path: Path):
    log = open_partition(tmp_path / "orders-0")
    log.append_as_leader(producer_batch(7, 0), 0, NOW)
    with pytest.raises(OutOfOrderSequenceError):
        log.append_as_leader(producer_batch(7, 5), 3, NOW)
    assert log.log_end_offset == 1
    assert log.epochs.latest_epoch == 0
    assert log.append_as_leader(producer_batch(7, 1), 0, NOW).base_offset == 1


def test_a_transaction_from_its_first_batch_to_its_marker(tmp_path: Path):
    log = open_partition(tmp_path / "orders-0")
    log.append_as_leader(batch(), 0, NOW)
    transaction(log, 7, 0)
    log.append_as_leader(batch(), 0, NOW)
    log.update_high_watermark(log.log_end_offset)
    assert log.last_stable_offset == 1
    append_as_coordinator(log, marker(7, committed=False), 0, NOW)
    assert log.last_stable_offset == 1
    log.update_high_watermark(log.log_end_offset)
    assert log.last_stable_offset == 4
    assert log.aborted_transactions(0, 4) == [AbortedTxn(7, 1, 3, 4)]
    with pytest.raises(InvalidTxnStateError):
        log.append_as_leader(producer_batch(7, 1, transactional=True), 0, NOW)


def test_an_aborted_transaction_is_indexed_where_its_marker_lies(tmp_path: Path):
    log = open_partition(tmp_path / "orders-0", segment_bytes=250)
    transaction(log, 7, 0)
    log.append_as_leader(sized_batch(200), 0, NOW)
    log.append_as_leader(sized_batch(200), 0, NOW)
    append_as_coordinator(log, marker(7, committed=False), 0, NOW)
    assert [len(segment.txn_index) for segment in log.segments] == [0, 0, 0, 1]
    log.close()
    assert file_sizes(tmp_path / "orders-0")["00000000000000000003.txnindex"] == 34


def test_a_marker_of_an_older_coordinator_leaves_no_trace(tmp_path: Path):
    log = open_partition(tmp_path / "orders-0")
    append_as_coordinator(log, marker(7, committed=True, coordinator_epoch=5), 0, NOW)
    with pytest.raises(LogError) as caught:
        append_as_coordinator(log, marker(7, committed=True, coordinator_epoch=4), 1, NOW)
    assert caught.value.code == ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert (log.log_end_offset, log.epochs.latest_epoch) == (1, 0)


def test_the_batch_of_a_coordinator_gets_the_form_of_its_topic(tmp_path: Path):
    form = {"compression_type": "zstd", "message_timestamp_type": "LogAppendTime"}
    log = open_partition(tmp_path / "orders-0", cleanup_policy=frozenset(("compact",)), **form)
    info = append_as_coordinator(log, batch(b"a" * 500, b"b" * 500), 3, NOW + 9)
    (stored,) = all_batches(log)
    stored.check_crc()
    assert (stored.compression, stored.max_timestamp, info.log_append_time_ms) == (Compression.ZSTD, NOW + 9, NOW + 9)
    assert (stored.base_offset, stored.partition_leader_epoch, values([stored])) == (0, 3, [b"a" * 500, b"b" * 500])


def test_the_batch_of_a_coordinator_may_be_too_large(tmp_path: Path):
    log = open_partition(tmp_path / "orders-0", max_message_bytes=400, segment_bytes=300)
    with pytest.raises(MessageTooLargeError):
        append_as_coordinator(log, batch(b"a" * 500), 0, NOW)
    with pytest.raises(RecordListTooLargeError):
        append_as_coordinator(log, batch(b"a" * 300), 0, NOW)
    assert log.log_end_offset == 0


# --- followers --------------------------------------------------------------------------------------------------------


def test_a_follower_takes_batches_as_they_are(tmp_path: Path):
    log = open_partition(tmp_path / "orders-0")
    sent = led((0, 1), (2, 1), (10, 3))
    info = log.append_as_follower(bytes(sent), 3, NOW)
    assert info is not None
    assert (info.base_offset, info.last_offset) == (0, 11)
    assert log.log_end_offset == 12
    assert log.epochs.entries == ((1, 0), (3, 10))
    assert contents(tmp_path / "orders-0", ".log")["00000000000000000000.log"] == sent


def test_a_follower_leaves_out_a_cut_batch_and_later_leaders(tmp_path: Path):
    log = open_partition(tmp_path / "orders-0")
    log.append_as_follower(led((0, 1), (2, 1))[:-1], 1, NOW)
    assert log.log_end_offset == 2
    log.append_as_follower(led((2, 1), (4, 2), (6, 1)), 1, NOW)
    assert log.log_end_offset == 4
    assert log.append_as_follower(led((4, 2)), 1, NOW) is None
    assert log.append_as_follower(b"", 1, NOW) is None


def test_a_follower_does_not_go_back(tmp_path: Path):
    log = open_partition(tmp_path / "orders-0")
    log.append_as_follower(led((0, 1), (2, 1)), 1, NOW)
    with pytest.raises(UnexpectedAppendOffsetError):
        log.append_as_follower(led((3, 1)), 1, NOW)
    with pytest.raises(OffsetsOutOfOrderError):
        log.append_as_follower(led((4, 1), (4, 1)), 1, NOW)
    assert log.log_end_offset == 4


def test_a_follower_takes_what_was_written_when_segments_were_larger(tmp_path: Path):
    one = len(led((0, 1)))
    log = open_partition(tmp_path / "orders-0", segment_bytes=2 * one)
    info = log.append_as_follower(led((0, 1), (2, 1), (4, 1), (6, 2), (8, 2)), 2, NOW)
    assert info is not None
    assert (info.base_offset, info.last_offset, info.size_bytes) == (0, 9, 5 * one)
    log.update_config(LogConfig(segment_bytes=one - 1))
    log.append_as_follower(led((10, 2), (12, 2)), 2, NOW)
    assert [segment.base_offset for segment in log.segments] == [0, 4, 8, 10, 12]
    assert [each.base_offset for each in all_batches(log)] == [0, 2, 4, 6, 8, 10, 12]
    assert (log.log_end_offset, log.epochs.entries) == (14, ((1, 0), (2, 6)))


def test_a_follower_whose_log_starts_inside_a_batch_takes_all_of_it(tmp_path: Path):
    """Its leader has deleted records up to there, and still has the whole batch."""
    log = open_partition(tmp_path / "orders-0")
    log.truncate_fully(5, NOW)
    with pytest.raises(UnexpectedAppendOffsetError):
        log.append_as_follower(led((2, 1), (3, 1)), 1, NOW)
    log.append_as_follower(led((4, 1), (6, 1)), 1, NOW)
    assert (log.log_start_offset, log.log_end_offset) == (5, 8)
    assert [one.base_offset for one in all_batches(log)] == [4, 6]
    with pytest.raises(UnexpectedAppendOffsetError):
        log.append_as_follower(led((7, 1), (8, 1)), 1, NOW)


def test_a_follower_checks_checksums(tmp_path: Path):
    log = open_partition(tmp_path / "orders-0")
    broken = led((0, 1))
    broken[-1] ^= 1
    with pytest.raises(CorruptMessageError):
        log.append_as_follower(broken, 1, NOW)
    assert log.log_end_offset == 0


def test_a_follower_keeps_what_its_leader_keeps_of_old_formats(tmp_path: Path):
    log = open_partition(tmp_path / "orders-0")
    log.append_as_follower(led((0, 1)), 1, NOW)
    log.append_as_follower(legacy_message(2, b"old") + legacy_message(3, b"old", magic=0), 1, NOW)
    assert log.log_end_offset == 4
    assert [one.magic for one in all_batches(log)] == [2, 1, 0]
    assert log.epochs.entries == ()


def test_a_follower_refuses_what_it_cannot_find_the_first_offset_of(tmp_path: Path):
    log = open_partition(tmp_path / "orders-0")
    body = bytearray(legacy_message(0, b"no gzip at all"))
    body[17] = Compression.GZIP
    body[12:16] = zlib.crc32(bytes(body[16:])).to_bytes(4, "big")
    with pytest.raises(CorruptMessageError):
        log.append_as_follower(body, 1, NOW)
    assert log.log_end_offset == 0


def test_a_follower_learns_of_producers(tmp_path: Path):
    leader = open_partition(tmp_path / "leader-0")
    transaction(leader, 7, 0)
    append_as_coordinator(leader, marker(7, committed=False, coordinator_epoch=3), 0, NOW)
    transaction(leader, 8, 0)
    follower = open_partition(tmp_path / "follower-0")
    follower.append_as_follower(contents(tmp_path / "leader-0", ".log")["00000000000000000000.log"], 0, NOW)
    assert follower.producers.first_unstable_offset == leader.producers.first_unstable_offset == 0
    assert follower.aborted_transactions(0, 9) == leader.aborted_transactions(0, 9) == [AbortedTxn(7, 0, 1, 2)]
    assert [repr(entry) for entry in follower.producers.entries] == [repr(entry) for entry in leader.producers.entries]


def test_a_follower_takes_a_control_batch_that_is_no_marker(tmp_path: Path):
    """The leader has it, and has left it where it was when it recovered its log."""
    log = open_partition(tmp_path / "orders-0")
    data = batch(keys=[None], producer_id=7, producer_epoch=0, base_sequence=-1)
    data[22] |= CONTROL_BIT
    log.append_as_follower(with_crc(data), 0, NOW)
    assert log.log_end_offset == 1


def test_the_quorums_leader_numbers_its_batches_itself(tmp_path: Path):
    log = open_partition(tmp_path / "__cluster_metadata-0")
    log.append_as_follower(led((0, 4)), 4, NOW, origin=Origin.RAFT_LEADER)
    assert log.log_end_offset == 2
    with pytest.raises(AssertionError):
        log.append_as_follower(led((2, 5)), 4, NOW, origin=Origin.RAFT_LEADER)


def test_the_headers_of_a_stored_batch(tmp_path: Path):
    log = open_partition(tmp_path / "orders-0")
    data = batch(b"a", b"b", b"c")
    log.append_as_leader(data, 2, NOW)
    assert read_header(data).last_offset == 2  # in place
