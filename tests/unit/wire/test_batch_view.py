"""Views: what is read from a header, what is copied, which byte an error names."""

import struct
import tracemalloc

import pytest

from ottla.wire import WireError
from ottla.wire.batch import (
    HEADER_BYTES,
    BatchBuilder,
    BatchView,
    Compression,
    Record,
    build_batch,
    build_end_txn_marker,
    crc32c,
    decrement_sequence,
    increment_sequence,
    iterate_records,
    read_header,
    split_batches,
)
from ottla.wire.varint import encode_varint as varint

RECORDS = [Record(40, 1000, b"a", b"1"), Record(41, 1005, None, b"2", (("h", b"x"),)), Record(42, 999, b"c", None)]


def batch_of(body: bytes, count: int, attributes: int = 0) -> bytes:
    """A batch with any bytes for its records, and a checksum that fits."""
    rest = struct.pack(">hiqqqhii", attributes, 0, 1000, 1000, -1, -1, -1, count) + body
    return struct.pack(">qiibI", 7, len(rest) + 9, 3, 2, crc32c(rest)) + rest


def record_of(*parts: bytes) -> bytes:
    body = b"".join(parts)
    return varint(len(body)) + body


def only(data: bytes | bytearray | memoryview) -> BatchView:
    (batch,) = split_batches(data, allow_partial_tail=False)
    assert isinstance(batch, BatchView)
    return batch


def test_header_fields():
    data = build_batch(
        RECORDS,
        partition_leader_epoch=9,
        producer_id=5,
        producer_epoch=2,
        base_sequence=2**31 - 2,
        is_transactional=True,
    )
    batch = only(data)
    assert batch.size_bytes == len(data) == batch.batch_length + 12
    assert (batch.base_offset, batch.last_offset, batch.next_offset) == (40, 42, 43)
    assert (batch.base_timestamp, batch.max_timestamp) == (1000, 1005)
    assert (batch.partition_leader_epoch, batch.magic, batch.record_count) == (9, 2, 3)
    assert (batch.producer_id, batch.producer_epoch, batch.has_producer_id) == (5, 2, True)
    assert batch.is_transactional
    assert not batch.is_control
    assert batch.delete_horizon_ms is None
    assert (batch.base_sequence, batch.last_sequence) == (2**31 - 2, 0)
    assert [batch.sequence_of(offset) for offset in (40, 41, 42)] == [2**31 - 2, 2**31 - 1, 0]
    assert (
        repr(batch) == f"BatchView(offsets=40-42, record_count=3, size_bytes={len(data)}, attributes=0x10, position=0)"
    )


def test_nothing_is_copied_until_asked():
    data = bytearray(build_batch(RECORDS))
    batch = only(data)
    assert batch.buffer.obj is data
    records = batch.records(copy=False)
    assert isinstance(records[0].value, memoryview)
    assert records[0].value == b"1"
    data[data.index(b"1")] = ord("9")
    assert records[0].value == b"9"
    assert batch.records()[0].value == b"9"
    assert isinstance(batch.records()[0].value, bytes)
    assert bytes(batch.data) == data
    assert bytes(batch.body) == data[HEADER_BYTES:]


def test_a_header_without_its_records():
    data = build_batch(RECORDS)
    batch = read_header(data[:HEADER_BYTES])
    assert (batch.size_bytes, batch.last_offset) == (len(data), 42)
    assert read_header(b"...." + data, 4).base_offset == 40
    with pytest.raises(WireError, match="60 bytes are no header") as caught:
        read_header(data[: HEADER_BYTES - 1])
    assert caught.value.byte_offset == 0


def test_split_gives_positions_and_leaves_out_a_cut_batch():
    one, two = build_batch(RECORDS), build_batch([Record(43, 1, None, b"z")])
    assert [batch.position for batch in split_batches(one + two)] == [0, len(one)]
    assert [batch.base_offset for batch in split_batches(one + two, position=len(one))] == [43]
    for end in range(len(one), len(one + two)):
        assert len(list(split_batches((one + two)[:end]))) == 1
    assert list(split_batches(b"")) == []


def test_a_cut_batch_can_be_refused():
    data = build_batch(RECORDS)
    with pytest.raises(WireError, match="not a whole batch") as caught:
        list(split_batches(data + data[:-1], allow_partial_tail=False))
    assert caught.value.byte_offset == len(data)


@pytest.mark.parametrize(
    ("position", "patch", "path"),
    [
        (8, struct.pack(">i", -1), "RecordBatch.batch_length"),
        (8, struct.pack(">i", 13), "RecordBatch.batch_length"),
        (8, struct.pack(">i", 48), "RecordBatch.batch_length"),
        (16, b"\x03", "RecordBatch.magic"),
        (16, b"\xff", "RecordBatch.magic"),
    ],
)
def test_broken_lengths_and_magics(position: int, patch: bytes, path: str):
    good = build_batch(RECORDS)
    bad = bytearray(good)
    bad[position : position + len(patch)] = patch
    found = split_batches(good + bad)
    assert next(found).base_offset == 40
    with pytest.raises(WireError) as caught:
        next(found)
    assert (caught.value.path, caught.value.byte_offset) == (path, len(good) + position)


def test_checksum():
    data = bytearray(build_batch(RECORDS))
    only(data).check_crc()
    assert only(data).is_valid
    data[-1] ^= 1
    assert not only(data).is_valid
    with pytest.raises(WireError, match=r"0x[0-9a-f]{8} is stored, 0x[0-9a-f]{8} computed") as caught:
        only(data).check_crc()
    assert (caught.value.path, caught.value.byte_offset) == ("RecordBatch.crc", 17)


def test_offset_and_leader_epoch_are_not_checked():
    data = bytearray(build_batch(RECORDS))
    data[:8] = bytes(8)
    data[12:16] = b"\1\2\3\4"
    only(data).check_crc()


HEAD = b"\0" + varint(0) + varint(0)
NULLS = varint(-1) + varint(-1)


@pytest.mark.parametrize(
    ("body", "count", "path", "offset"),
    [
        (b"", 1, "RecordBatch.records[0].length", 61),
        (varint(-1) + HEAD + NULLS + b"\0", 1, "RecordBatch.records[0].length", 61),
        (varint(0), 1, "RecordBatch.records[0].length", 61),
        (varint(9) + HEAD + NULLS + b"\0", 1, "RecordBatch.records[0].length", 61),
        (record_of(b"\0", b"\xff" * 11), 1, "RecordBatch.records[0].timestamp_delta", 63),
        (record_of(b"\0", varint(0), b"\xff" * 6), 1, "RecordBatch.records[0].offset_delta", 64),
        (record_of(HEAD, varint(50), b"k"), 1, "RecordBatch.records[0].key_length", 65),
        (record_of(HEAD, varint(1), b"k", varint(9), b"v"), 1, "RecordBatch.records[0].value_length", 67),
        (record_of(HEAD, NULLS, varint(-1)), 1, "RecordBatch.records[0].header_count", 67),
        (record_of(HEAD, NULLS, varint(60)), 1, "RecordBatch.records[0].header_count", 67),
        (record_of(HEAD, NULLS, varint(1), NULLS), 1, "RecordBatch.records[0].headers[0].key_length", 68),
        (record_of(HEAD, NULLS, varint(1), varint(1), b"h"), 1, "RecordBatch.records[0].headers[0].value_length", 70),
        (record_of(HEAD, NULLS, b"\0", b"spare"), 1, "RecordBatch.records[0]", 68),
        (record_of(HEAD, NULLS, b"\0") + b"x", 1, "RecordBatch.records", 68),
        (record_of(HEAD, NULLS, b"\0") * 2, 1, "RecordBatch.records", 68),
        (record_of(HEAD, NULLS, b"\0"), 2, "RecordBatch.records[1].length", 68),
        (record_of(HEAD, NULLS, b"\0"), 2**31 - 1, "RecordBatch.records[1].length", 68),
        (record_of(HEAD, NULLS, b"\0"), -1, "RecordBatch.records", 61),
        (b"", -5, "RecordBatch.records", 61),
    ],
)
def test_damaged_records_are_named(body: bytes, count: int, path: str, offset: int):
    with pytest.raises(WireError) as caught:
        only(batch_of(body, count)).records()
    assert (caught.value.path, caught.value.byte_offset) == (path, offset)


def test_in_compressed_records_the_place_after_decompression_is_told():
    from ottla.wire.compress import compress

    body = compress(Compression.ZSTD, record_of(HEAD, varint(50), b"k"))
    with pytest.raises(WireError, match=r"\(byte 4 after decompression\)") as caught:
        only(batch_of(body, 1, attributes=4)).records()
    assert caught.value.byte_offset == HEADER_BYTES


def test_a_codec_that_does_not_exist():
    batch = only(batch_of(b"", 1, attributes=5))
    with pytest.raises(WireError, match="compression 5 does not exist") as caught:
        batch.records()
    assert caught.value.byte_offset == 21


def test_an_empty_batch_is_not_looked_into():
    assert only(batch_of(b"anything", 0)).records() == []
    assert only(batch_of(b"not zstd", 0, attributes=4)).records() == []


def test_what_java_lets_pass():
    padded = b"\x80\x00"  # 0 in two bytes
    wide = b"\xff\xff\xff\xff\x7f"  # -2^31 with bits beyond the 32nd
    body = record_of(b"\xff", padded, wide, varint(-2), varint(-7), b"\0")
    assert only(batch_of(body, 1)).records() == [Record(7 - 2**31, 1000, None, None)]


def test_offsets_and_timestamps_wrap_at_64_bits():
    far = 2**63 - 1
    data = build_batch([Record(far - 1, far, None, None), Record(far, 0, None, None)], base_timestamp=far)
    assert [(r.offset, r.timestamp) for r in only(data).records()] == [(far - 1, far), (far, 0)]
    overflowing = bytearray(data)
    struct.pack_into(">q", overflowing, 0, far)
    assert [record.offset for record in only(overflowing).records()] == [far, -(2**63)]


def test_a_delta_that_overflows_from_an_ordinary_base():
    far = 2**63 - 1
    body = record_of(b"\0", varint(far), varint(0), NULLS, b"\0")
    (record,) = only(batch_of(body, 1)).records()
    assert record.timestamp == 1000 + far - 2**64


def test_append_time_hides_the_producers_timestamps():
    batch = only(build_batch(RECORDS, log_append_time=7777))
    assert {record.timestamp for record in batch} == {7777}
    assert [record.timestamp for record in batch.records(stored_timestamps=True)] == [1000, 1005, 999]


@pytest.mark.parametrize("count", [2**31 - 1, -(2**31), 2**20])
def test_a_hostile_count_allocates_nothing(count: int):
    builder = BatchBuilder()
    for _ in range(1000):
        builder.append(0, b"k", b"v")
    data = bytearray(builder.build())
    struct.pack_into(">i", data, 57, count)
    tracemalloc.start()
    try:
        with pytest.raises(WireError):
            only(data).records()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 40 * len(data) + 100_000


def test_iterating_as_a_consumer():
    marker = build_end_txn_marker(
        committed=True, coordinator_epoch=0, producer_id=1, producer_epoch=0, timestamp=1, base_offset=43
    )
    data = build_batch(RECORDS) + marker + build_batch([Record(44, 1, None, b"z")])[:-1]
    assert list(iterate_records(data)) == RECORDS
    assert [record.offset for record in iterate_records(data, include_control=True)] == [40, 41, 42, 43]
    broken = bytearray(data)
    broken[len(data) - 100] ^= 1
    with pytest.raises(WireError):
        list(iterate_records(broken))
    assert all(isinstance(r.value, memoryview | None) for r in iterate_records(data, copy=False))


@pytest.mark.parametrize(
    ("sequence", "step", "expected"),
    [(0, 0, 0), (5, 3, 8), (2**31 - 1, 1, 0), (2**31 - 3, 7, 4), (2**31 - 1, 2**31 - 1, 2**31 - 2)],
)
def test_sequences_wrap(sequence: int, step: int, expected: int):
    assert increment_sequence(sequence, step) == expected
    assert decrement_sequence(expected, step) == sequence
