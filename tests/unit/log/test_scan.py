import os
from pathlib import Path

import pytest

from ottla.log.disk import OsDisk, OsFile
from ottla.log.scan import (
    CHUNK_BYTES,
    BatchPosition,
    ScanEnd,
    check_batches,
    find_batch,
    find_sound_batches,
    read_batch,
    walk_headers,
)
from ottla.wire.batch import AnyBatch, BatchBuilder, Compression
from ottla.wire.fault import WireError
from tests.unit.log.logs import legacy_message


def made(base_offset: int, count: int = 2, *, value_bytes: int = 10) -> bytes:
    builder = BatchBuilder(base_offset)
    for _ in range(count):
        builder.append(1000 + base_offset, None, os.urandom(value_bytes))
    return builder.build()


def file_of(path: Path, *pieces: bytes) -> tuple[OsFile, int]:
    (path / "f.log").write_bytes(b"".join(pieces))
    file = OsDisk(durable=False).open(f"{path}/f.log")
    return file, file.size()


def checked(file: OsFile, end: int) -> tuple[list[tuple[int, AnyBatch]], ScanEnd, int]:
    """The batches, the end, and the number of pauses."""
    walk = check_batches(file, end)
    found, pauses = [], 0
    while True:
        try:
            item = next(walk)
        except StopIteration as stop:
            return found, stop.value, pauses
        if item is None:
            pauses += 1
        else:
            found.append(item)


@pytest.mark.parametrize("value_bytes", [1, 100, 5000, 9000, 300_000])
def test_headers_of_batches_of_any_size(tmp_path: Path, value_bytes: int):
    pieces = [made(number * 2, value_bytes=value_bytes) for number in range(20)]
    file, end = file_of(tmp_path, *pieces)
    walked = list(walk_headers(file, 0, end))
    assert [batch.base_offset for _, batch in walked] == list(range(0, 40, 2))
    assert [position for position, _ in walked] == [sum(map(len, pieces[:number])) for number in range(20)]
    assert [batch.base_offset for _, batch in walk_headers(file, walked[5][0], walked[8][0])] == [10, 12, 14]


@pytest.mark.parametrize("cut", [1, 16, 17, 50, 61, 80])
def test_a_walk_over_headers_stops_before_a_torn_batch(tmp_path: Path, cut: int):
    file, end = file_of(tmp_path, made(0), made(2)[:cut])
    assert [batch.base_offset for _, batch in walk_headers(file, 0, end)] == [0]
    assert find_batch(file, 0, end, 1) is not None
    assert find_batch(file, 0, end, 2) is None


@pytest.mark.parametrize("damage", [b"\x00" * 200, b"\xff" * 200])
def test_a_walk_over_headers_stops_before_what_is_none(tmp_path: Path, damage: bytes):
    file, end = file_of(tmp_path, made(0), damage)
    assert len(list(walk_headers(file, 0, end))) == 1
    assert find_batch(file, 0, end, 5) is None


def test_finding_the_batch_of_an_offset(tmp_path: Path):
    first, second, third = made(0, 5), made(5, 1, value_bytes=9000), made(20, 3)
    file, end = file_of(tmp_path, first, second, third)
    assert find_batch(file, 0, end, 0) == BatchPosition(0, len(first), 0, 4)
    assert find_batch(file, 0, end, 4) == BatchPosition(0, len(first), 0, 4)
    assert find_batch(file, 0, end, 5) == BatchPosition(len(first), len(second), 5, 5)
    assert find_batch(file, 0, end, 6) == BatchPosition(len(first) + len(second), len(third), 20, 22)
    assert find_batch(file, len(first), end, 0) == BatchPosition(len(first), len(second), 5, 5)
    assert find_batch(file, 0, end, 23) is None


@pytest.mark.parametrize("magic", [0, 1])
def test_messages_of_old_formats(tmp_path: Path, magic: int):
    messages = [legacy_message(offset, b"", magic=magic, timestamp=500 + offset) for offset in range(3)]
    file, end = file_of(tmp_path, *messages, made(3))
    assert [batch.last_offset for _, batch in walk_headers(file, 0, end)] == [0, 1, 2, 4]
    assert [batch.max_timestamp for _, batch in walk_headers(file, 0, end)][:3] == ([-1] * 3, [500, 501, 502])[magic]
    assert find_batch(file, 0, end, 2) == BatchPosition(2 * len(messages[0]), len(messages[0]), 2, 2)
    found, walk_end, _ = checked(file, end)
    assert [batch.magic for _, batch in found] == [magic] * 3 + [2]
    assert walk_end == (end, "")
    only, only_end = file_of(tmp_path, messages[0])
    assert find_batch(only, 0, only_end, 0) == BatchPosition(0, len(messages[0]), 0, 0)


def test_a_file_that_is_shorter_than_it_was(tmp_path: Path):
    file, end = file_of(tmp_path, made(0), made(2))
    file.truncate(0)
    assert checked(file, end)[1] == ScanEnd(0, "0 bytes are no batch")
    assert find_batch(file, 0, end, 0) is None
    assert list(walk_headers(file, 0, end)) == []


def test_reading_one_batch(tmp_path: Path):
    first, second = made(0), made(2)
    file, _ = file_of(tmp_path, first, second)
    assert read_batch(file, len(first), len(second)).data == second
    with pytest.raises(WireError):
        read_batch(file, len(first), len(second) - 1)


@pytest.mark.parametrize("value_bytes", [1, 5000, CHUNK_BYTES // 2, CHUNK_BYTES, 3 * CHUNK_BYTES])
def test_checking_batches_of_any_size(tmp_path: Path, value_bytes: int):
    pieces = [made(number * 2, value_bytes=value_bytes) for number in range(10)]
    file, end = file_of(tmp_path, *pieces)
    found, walk_end, pauses = checked(file, end)
    assert [batch.base_offset for _, batch in found] == list(range(0, 20, 2))
    assert [batch.size_bytes for _, batch in found] == [len(piece) for piece in pieces]
    assert walk_end == (end, "")
    assert pauses >= end // CHUNK_BYTES


@pytest.mark.parametrize("value_bytes", [10, 2 * CHUNK_BYTES])
@pytest.mark.parametrize("place", ["first", "middle", "last"])
def test_a_flipped_bit_ends_the_walk(tmp_path: Path, value_bytes: int, place: str):
    good, bad = made(0, value_bytes=value_bytes), bytearray(made(2, value_bytes=value_bytes))
    bad[{"first": 21, "middle": len(bad) // 2, "last": -1}[place]] ^= 1
    file, end = file_of(tmp_path, good, bytes(bad), made(4))
    found, walk_end, _ = checked(file, end)
    assert [batch.base_offset for _, batch in found] == [0]
    assert walk_end.position == len(good)
    assert "computed" in walk_end.reason


def test_every_length_of_a_torn_batch_is_noticed(tmp_path: Path):
    good, torn = made(0), made(2, value_bytes=3)
    for length in range(1, len(torn)):
        file, end = file_of(tmp_path, good, torn[:length])
        found, walk_end, _ = checked(file, end)
        assert len(found) == 1
        assert walk_end.position == len(good)
        assert walk_end.reason
        file.close()


@pytest.mark.parametrize(
    ("position", "value", "reason"),
    [(16, 3, "magic 3"), (16, 0xFF, "magic -1"), (11, 10, "10 bytes"), (8, 0x7F, "of the")],
)
def test_a_header_that_cannot_be_true(tmp_path: Path, position: int, value: int, reason: str):
    bad = bytearray(made(2))
    bad[position] = value
    file, end = file_of(tmp_path, made(0), bytes(bad))
    assert reason in checked(file, end)[1].reason


def test_compressed_batches_are_checked_as_they_are(tmp_path: Path):
    builder = BatchBuilder()
    builder.append(1, b"k", b"v" * 1000)
    file, end = file_of(tmp_path, builder.build(compression=Compression.ZSTD))
    ((_, batch),), _, _ = checked(file, end)
    assert batch.records()[0].value == b"v" * 1000


@pytest.mark.parametrize("junk", [1, 60, 61, CHUNK_BYTES - 30, CHUNK_BYTES, CHUNK_BYTES + 5])
def test_a_batch_is_found_wherever_it_begins(tmp_path: Path, junk: int):
    pieces = [made(0), b"\x02" * junk, made(2), made(4), b"\xff" * 30, made(6)]
    file, end = file_of(tmp_path, *pieces)
    found = [item for item in find_sound_batches(file, 0, end) if item is not None]
    places = [sum(map(len, pieces[:number])) for number in range(6)]
    assert [(position, isinstance(what, str)) for position, what in found] == [
        (position, number in (1, 4)) for number, position in enumerate(places)
    ]


def test_behind_a_batch_whose_header_is_whole_the_next_one_is_looked_for_first(tmp_path: Path):
    outer = bytearray(made(0, 1, value_bytes=5_000))
    outer[200 : 200 + len(made(7))] = made(7)  # which is no batch of this log
    old = legacy_message(1, b"old")
    file, end = file_of(tmp_path, bytes(outer), old)
    found = [item for item in find_sound_batches(file, 0, end) if item is not None]
    assert [position for position, _ in found] == [0, len(outer)]
