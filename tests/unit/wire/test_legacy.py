"""Message sets of magic 0 and 1, made by hand:

wrappers, offsets, timestamps, damage. The golden ones are in test_batch_golden.
"""

import struct
import zlib
from collections.abc import Callable

import pytest

from ottla.wire import WireError
from ottla.wire.batch import Compression, LegacyBatch, Record, TimestampType, compress, iterate_records, split_batches


def blob(data: bytes | None) -> bytes:
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data


def message(
    offset: int,
    key: bytes | None,
    value: bytes | None,
    *,
    magic: int = 1,
    attributes: int = 0,
    timestamp: int = 1000,
    tail: bytes = b"",
) -> bytes:
    body = (
        bytes((magic, attributes)) + (struct.pack(">q", timestamp) if magic else b"") + blob(key) + blob(value) + tail
    )
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


def wrapper(
    offset: int, inner: bytes, *, codec: Compression = Compression.GZIP, magic: int = 1, attributes: int = 0
) -> bytes:
    packed = compress(codec, inner, magic=magic)
    return message(offset, None, packed, magic=magic, attributes=codec | attributes, timestamp=5000)


def only(data: bytes) -> LegacyBatch:
    (batch,) = split_batches(data, allow_partial_tail=False)
    assert isinstance(batch, LegacyBatch)
    batch.check_crc()
    return batch


@pytest.mark.parametrize("magic", [0, 1])
def test_a_plain_message(magic: int):
    batch = only(message(7, b"k", None, magic=magic))
    timestamp = 1000 if magic else -1
    assert batch.records() == [Record(7, timestamp, b"k", None)]
    assert list(batch) == batch.records()
    assert (batch.base_offset, batch.last_offset, batch.next_offset) == (7, 7, 8)
    assert batch.max_timestamp == timestamp
    assert batch.timestamp_type is (TimestampType.CREATE_TIME if magic else TimestampType.NO_TIMESTAMP_TYPE)
    assert not batch.is_control
    assert not batch.is_transactional


def test_views_of_the_values():
    (record,) = only(message(0, b"key", b"value")).records(copy=False)
    assert isinstance(record.value, memoryview)
    assert record.value == b"value"


@pytest.mark.parametrize("codec", [Compression.GZIP, Compression.SNAPPY, Compression.LZ4])
def test_offsets_inside_count_from_the_first_in_magic_1(codec: Compression):
    inner = message(0, b"a", b"1") + message(2, b"b", b"2") + message(3, b"c", b"3")
    batch = only(wrapper(103, inner, codec=codec))
    assert [record.offset for record in batch.records()] == [100, 102, 103]
    assert (batch.base_offset, batch.last_offset) == (100, 103)


@pytest.mark.parametrize("codec", [Compression.GZIP, Compression.SNAPPY, Compression.LZ4])
def test_offsets_inside_are_absolute_in_magic_0(codec: Compression):
    inner = message(5, b"a", b"1", magic=0) + message(9, b"b", b"2", magic=0)
    assert [record.offset for record in only(wrapper(9, inner, codec=codec, magic=0)).records()] == [5, 9]


def test_a_wrapper_at_offset_0_leaves_the_inner_offsets():
    assert [r.offset for r in only(wrapper(0, message(0, b"a", b"1") + message(1, b"b", b"2"))).records()] == [0, 1]


def test_append_time_is_the_wrappers():
    batch = only(wrapper(1, message(0, b"a", b"1") + message(1, b"b", b"2"), attributes=8))
    assert batch.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert [record.timestamp for record in batch.records()] == [5000, 5000]


def test_a_cut_inner_message_is_left_out():
    inner = message(0, b"a", b"1") + message(1, b"b", b"2")[:-1]
    assert [record.key for record in only(wrapper(5, inner)).records()] == [b"a"]


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: wrapper(1, b""), "no messages"),
        (lambda: wrapper(1, message(2, b"a", b"1")), "past the wrapper's"),
        (lambda: wrapper(1, wrapper(0, message(0, b"a", b"1"))), "inside a compressed one"),
        (lambda: wrapper(1, struct.pack(">qi", 0, 13) + bytes(13)), "fewer than any message"),
        (lambda: message(1, None, None, attributes=1), "has no value"),
        (lambda: message(1, None, b"x", attributes=4), "only with magic 2"),
        (lambda: message(1, None, b"x", attributes=6), "does not exist"),
        (lambda: message(1, None, b"x", attributes=1), "gzip"),
    ],
)
def test_wrappers_that_are_refused(make: Callable[[], bytes], reason: str):
    with pytest.raises(WireError, match=reason) as caught:
        only(make()).records()
    assert caught.value.byte_offset is not None


def patched(data: bytes, position: int, number: int) -> bytes:
    """The message with another number in it, and a checksum that fits."""
    body = bytearray(data)
    struct.pack_into(">i", body, position, number)
    struct.pack_into(">I", body, 12, zlib.crc32(body[16:]))
    return bytes(body)


@pytest.mark.parametrize(
    ("position", "number", "path"),
    [(26, 100, "Message.key_length"), (31, 100, "Message.value_length"), (31, 2**31 - 1, "Message.value_length")],
)
def test_lengths_past_the_end(position: int, number: int, path: str):
    with pytest.raises(WireError) as caught:
        only(patched(message(1, b"k", b"v"), position, number)).records()
    assert (caught.value.path, caught.value.byte_offset) == (path, position)


def test_any_negative_length_is_null_and_bytes_may_be_left_over():
    assert only(patched(message(1, b"k", b"v"), 31, -7)).records() == [Record(1, 1000, b"k", None)]
    assert only(message(1, b"k", b"v", tail=b"more")).records() == [Record(1, 1000, b"k", b"v")]


def test_a_message_of_magic_1_without_room_for_a_timestamp():
    body = bytes((1, 0)) + bytes(8)
    data = struct.pack(">qiI", 0, len(body) + 4, zlib.crc32(body)) + body
    with pytest.raises(WireError, match="ends before it"):
        only(data).records()
    with pytest.raises(WireError, match="ends before it"):
        _ = only(data).max_timestamp


def test_checksums_inside_are_a_consumers_business():
    inner = bytearray(message(0, b"a", b"1"))
    inner[12] ^= 1
    data = wrapper(3, bytes(inner))
    assert only(data).records() == [Record(3, 1000, b"a", b"1")]
    with pytest.raises(WireError, match=r"Message.value\[0\].crc"):
        only(data).check_inner_crcs()
    with pytest.raises(WireError, match="checksum"):
        list(iterate_records(data))
    assert len(list(iterate_records(data, check_crc=False))) == 1


def test_the_outer_checksum():
    data = bytearray(message(0, b"a", b"1"))
    data[-1] ^= 1
    (batch,) = split_batches(data)
    assert not batch.is_valid
    with pytest.raises(WireError, match="crc") as caught:
        batch.check_crc()
    assert caught.value.byte_offset == 12


def test_the_bound_on_decompression():
    data = wrapper(0, message(0, None, bytes(10_000)))
    with pytest.raises(WireError, match="more than 5000 bytes come out"):
        only(data).records(max_decompressed_bytes=5000)
