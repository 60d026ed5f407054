"""Building batches, and what a broker and compaction change in them."""

import pytest

from ottla.wire import WireError
from ottla.wire.batch import (
    HEADER_BYTES,
    BatchBuilder,
    BatchView,
    Compression,
    Record,
    TimestampType,
    build_batch,
    filter_batch,
    read_header,
    recompress_batch,
    split_batches,
    stamp,
)
from ottla.wire.batch_view import crc32c
from ottla.wire.varint import encode_varint as varint

RECORDS = [
    Record(40, 1000, b"a", b"1", (("h", b"x"),)),
    Record(42, 1005, b"b", None),
    Record(45, 999, b"c", b"3"),
]


def only(data: bytes | bytearray) -> BatchView:
    (batch,) = split_batches(data, allow_partial_tail=False)
    assert isinstance(batch, BatchView)
    batch.check_crc()
    return batch


def header(batch: BatchView) -> dict[str, int]:
    names = [name for name in batch.__struct_fields__ if name not in ("buffer", "position", "crc", "batch_length")]
    return {name: getattr(batch, name) for name in names}


def changed(before: BatchView, after: BatchView) -> set[str]:
    return {name for name, value in header(before).items() if header(after)[name] != value}


def test_builder_knows_its_size():
    builder = BatchBuilder(100)
    assert (len(builder), builder.size_bytes, builder.next_offset) == (0, HEADER_BYTES, 100)
    sizes = [builder.append(1000 + i, b"k" * i, b"v" * 50 * i, [("h", b"1")] * i) for i in range(5)]
    assert builder.size_bytes == HEADER_BYTES + sum(sizes) == len(builder.build())
    assert (len(builder), builder.next_offset) == (5, 105)
    builder.append(1, None, None, offset=200)
    assert builder.next_offset == 201
    assert [record.offset for record in only(builder.build())] == [100, 101, 102, 103, 104, 200]


def test_builder_builds_again_with_other_options():
    builder = BatchBuilder()
    builder.append(5, b"k", b"v" * 1000)
    plain, packed = builder.build(), builder.build(compression=Compression.ZSTD, producer_id=3, base_sequence=0)
    assert len(packed) < len(plain)
    assert only(plain).records() == only(packed).records()


def test_build_takes_any_bytes():
    record = Record(0, 1, bytearray(b"k"), memoryview(b"v"), [("h", memoryview(b"x"))])
    assert only(build_batch([record])).records() == [Record(0, 1, b"k", b"v", (("h", b"x"),))]


def test_an_empty_batch_is_a_header():
    data = build_batch([], base_offset=7, last_offset_delta=4, max_timestamp=99, compression=Compression.GZIP, level=9)
    batch = only(data)
    assert len(data) == HEADER_BYTES
    assert (batch.base_offset, batch.last_offset, batch.base_timestamp, batch.max_timestamp) == (7, 11, -1, 99)
    assert batch.compression is Compression.NONE


@pytest.mark.parametrize("offset", [99, 100 + 2**31])
def test_offsets_out_of_reach(offset: int):
    with pytest.raises(WireError, match="out of reach") as caught:
        BatchBuilder(100).append(0, None, None, offset=offset)
    assert caught.value.byte_offset is None


@pytest.mark.parametrize("field", ["producer_id", "producer_epoch", "base_sequence", "partition_leader_epoch"])
def test_values_that_no_header_holds(field: str):
    builder = BatchBuilder()
    builder.append(0, None, None)
    with pytest.raises(WireError, match="RecordBatch"):
        builder.build(**{field: 2**63})  # type: ignore[arg-type]


def test_delete_horizon():
    batch = only(build_batch(RECORDS, delete_horizon_ms=5_000_000))
    assert batch.delete_horizon_ms == batch.base_timestamp == 5_000_000
    assert batch.records() == RECORDS
    assert batch.max_timestamp == 1005


# --- stamp ------------------------------------------------------------------------------------------------------------


def test_stamp_assigns_offset_and_epoch_outside_the_checksum():
    before = build_batch(RECORDS, base_offset=40)
    data = bytearray(before)
    stamp(data, base_offset=1000, partition_leader_epoch=7)
    assert changed(only(before), only(data)) == {"base_offset", "partition_leader_epoch"}
    assert data[17:] == before[17:]
    assert [record.offset for record in only(data)] == [1000, 1002, 1005]


def test_stamp_in_the_middle_of_a_buffer():
    one, two = build_batch(RECORDS), build_batch(RECORDS)
    data = bytearray(one + two)
    stamp(memoryview(data), len(one), base_offset=500, partition_leader_epoch=1)
    assert [batch.base_offset for batch in split_batches(data)] == [40, 500]
    assert data[: len(one)] == one


def test_stamp_with_append_time():
    data = bytearray(build_batch(RECORDS))
    stamp(data, base_offset=0, partition_leader_epoch=0, log_append_time=123_456)
    batch = only(data)
    assert batch.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert {record.timestamp for record in batch} == {123_456}
    assert data[HEADER_BYTES:] == build_batch(RECORDS)[HEADER_BYTES:]


def test_stamp_takes_append_time_away():
    data = bytearray(build_batch(RECORDS, log_append_time=5))
    stamp(data, base_offset=0, partition_leader_epoch=0, max_timestamp=1005)
    batch = only(data)
    assert batch.timestamp_type is TimestampType.CREATE_TIME
    assert (batch.max_timestamp, [r.timestamp for r in batch]) == (1005, [1000, 1005, 999])


def test_stamp_corrects_the_largest_timestamp_and_only_then_the_checksum():
    data = bytearray(build_batch(RECORDS, max_timestamp=5))
    crc = read_header(data).crc
    stamp(data, base_offset=0, partition_leader_epoch=0, max_timestamp=5)
    assert read_header(data).crc == crc
    stamp(data, base_offset=0, partition_leader_epoch=0, max_timestamp=1005)
    assert only(data).max_timestamp == 1005
    assert read_header(data).crc != crc


def test_stamp_keeps_other_attributes():
    data = bytearray(
        build_batch(RECORDS, compression=Compression.LZ4, is_transactional=True, producer_id=1, delete_horizon_ms=3)
    )
    stamp(data, base_offset=0, partition_leader_epoch=0, log_append_time=9)
    batch = only(data)
    assert batch.is_transactional
    assert batch.compression is Compression.LZ4
    assert batch.delete_horizon_ms == 3


def test_stamp_refuses_what_is_no_batch():
    with pytest.raises(WireError):
        stamp(bytearray(60), base_offset=0, partition_leader_epoch=0)


# --- recompress -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", list(Compression))
@pytest.mark.parametrize("target", list(Compression))
def test_recompress_changes_only_the_codec(source: Compression, target: Compression):
    before = only(build_batch(RECORDS, compression=source, producer_id=9, producer_epoch=1, base_sequence=4))
    after = only(recompress_batch(before, target))
    assert after.compression is target
    assert changed(before, after) == ({"attributes"} if source is not target else set())
    assert after.section().data == before.section().data


def test_recompress_leaves_an_empty_batch_uncompressed():
    empty = build_batch([], base_offset=7, max_timestamp=99)
    assert recompress_batch(only(empty), Compression.GZIP, level=9) == empty


def test_recompress_to_none_is_the_original():
    plain = build_batch(RECORDS)
    packed = only(recompress_batch(only(plain), Compression.GZIP, level=9))
    assert recompress_batch(packed, Compression.NONE) == plain


# --- filter -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compression", list(Compression))
def test_filter_drops_records_and_keeps_the_frame(compression: Compression):
    before = only(build_batch(RECORDS, compression=compression, producer_id=9, producer_epoch=1, base_sequence=4))
    after = only(filter_batch(before, lambda record: record.key != b"a"))
    assert after.records() == RECORDS[1:]
    assert changed(before, after) == {"base_timestamp", "record_count"}
    assert (after.base_timestamp, after.max_timestamp) == (1005, 1005)
    assert (after.last_sequence, after.last_offset) == (before.last_sequence, 45)
    assert after.compression is compression


def test_filter_without_effect_gives_the_same_bytes():
    data = build_batch(RECORDS, compression=Compression.SNAPPY)
    assert filter_batch(only(data), lambda record: True) == data


def test_filter_sets_the_horizon_once():
    first = only(filter_batch(only(build_batch(RECORDS)), lambda record: True, delete_horizon_ms=77_000))
    assert first.delete_horizon_ms == 77_000
    assert first.records() == RECORDS
    second = filter_batch(first, lambda record: True, delete_horizon_ms=99_000)
    assert second == bytes(first.data)
    third = only(filter_batch(first, lambda record: record.key == b"c"))
    assert (third.delete_horizon_ms, third.records()) == (77_000, [RECORDS[2]])


def test_filter_may_leave_an_empty_batch():
    before = only(build_batch(RECORDS, compression=Compression.ZSTD, producer_id=9, producer_epoch=1, base_sequence=4))
    after = only(filter_batch(before, lambda record: False))
    assert (after.size_bytes, after.record_count, after.base_timestamp) == (HEADER_BYTES, 0, -1)
    assert (after.max_timestamp, after.last_offset, after.last_sequence) == (1005, 45, 9)
    assert (after.producer_id, after.producer_epoch) == (9, 1)


def test_filter_keeps_append_time():
    before = only(build_batch(RECORDS, log_append_time=5555))
    after = only(filter_batch(before, lambda record: record.offset > 40))
    assert after.max_timestamp == 5555
    assert [record.timestamp for record in after] == [5555, 5555]


def test_filter_keeps_header_keys_that_no_text_holds():
    body = (
        b"\0" + varint(0) + varint(0) + varint(1) + b"k" + varint(-1) + varint(1) + varint(2) + b"\xff\xfe" + varint(-1)
    )
    record = varint(len(body)) + body
    other = bytes(build_batch([Record(0, 0, b"gone", None)]))[HEADER_BYTES:]
    data = bytearray(build_batch([Record(0, 0, None, None), Record(0, 0, None, None)])[:HEADER_BYTES] + other + record)
    data[8:12] = (len(data) - 12).to_bytes(4, "big")
    data[17:21] = crc32c(data[21:]).to_bytes(4, "big")
    after = only(filter_batch(only(data), lambda found: found.key == b"k"))
    assert bytes(after.body) == record


def test_filter_takes_the_bound():
    data = build_batch([Record(0, 0, b"k", bytes(50_000))], compression=Compression.GZIP)
    with pytest.raises(WireError, match="come out"):
        filter_batch(only(data), lambda record: True, max_decompressed_bytes=1000)
