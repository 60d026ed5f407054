"""Scans of the batches of a `.log` file.

Each scan reads no more than it needs:

- `walk_headers` looks at headers only. It reads windows of some kilobytes and jumps over what does not fit in one.
  `find_batch` does the same with a look at offsets alone: each fetch begins with it.
- `read_batch` gets one batch whole.
- `check_batches` reads everything, in chunks, and yields the batches as long as they are sound: what recovery does.
  It says where it ended and why, and lets the caller do something else between two chunks.
- `find_sound_batches` goes on behind damage, wherever the next sound batch begins.

Positions are positions in the file. A view's own `position` counts from the start of the buffer that it was read to.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Generator, Iterator
from typing import Final, NamedTuple

from ottla.log.disk import ReadableFile
from ottla.wire.batch import HEADER_BYTES, LOG_OVERHEAD_BYTES, AnyBatch, crc32c, read_header, split_batches
from ottla.wire.fault import WireError
from ottla.wire.legacy import read_legacy_batch

__all__ = [
    "CHUNK_BYTES",
    "BatchPosition",
    "ScanEnd",
    "check_batches",
    "find_batch",
    "find_sound_batches",
    "read_batch",
    "walk_headers",
]

CHUNK_BYTES: Final = 1 << 18
_WINDOW_BYTES: Final = 8192
_PREFIX: Final = struct.Struct(">qi4xb")
_PREFIX_BYTES: Final = _PREFIX.size
# Base offset, length, magic, and of magic 2 the last offset delta.
_OFFSETS: Final = struct.Struct(">qi4xb6xi")
_OFFSETS_BYTES: Final = _OFFSETS.size
_LENGTH_MIN: Final = 14
_CRC_START: Final = 21
_MAGIC_POSITION: Final = 16
# Magic 2 and, behind the checksum, attributes of which no unknown bit is set.
_MAGIC_2: Final = re.compile(rb"\x02(?=....\x00[\x00-\x7f])", re.DOTALL)
# Base offset, length, last offset delta and record count of a header of magic 2.
_PLAUSIBLE: Final = struct.Struct(">qi11xi30xi")
_TRIES_BYTES_FACTOR: Final = 8
"""Bytes that look like headers are followed by as much as they say; all such tries read so many times the damage."""


class BatchPosition(NamedTuple):
    """The position of a batch, and its offsets. For magic 0 and 1 both are the last offset."""

    position: int
    size_bytes: int
    base_offset: int
    last_offset: int


class ScanEnd(NamedTuple):
    """Where and why a scan ended; without a reason at the end of the file."""

    position: int
    reason: str = ""


def walk_headers(file: ReadableFile, position: int, end: int) -> Iterator[tuple[int, AnyBatch]]:
    """Position and header of each batch from `position` on that ends at or before `end`.

    Stops before anything that is not the header of a whole batch. The views hold headers only, except by chance.
    """
    window = memoryview(b"")
    start = position
    while end - position >= _PREFIX_BYTES:
        if position + HEADER_BYTES > start + len(window):
            window, start = memoryview(file.read(min(_WINDOW_BYTES, end - position), position)), position
        at = position - start
        if len(window) - at < _PREFIX_BYTES:
            return
        _, length, magic = _PREFIX.unpack_from(window, at)
        size = length + LOG_OVERHEAD_BYTES
        if length < _LENGTH_MIN or size > end - position:
            return
        batch = _header(window, at, magic)
        if batch is None:
            return
        yield position, batch
        position += size


def find_batch(file: ReadableFile, position: int, end: int, offset: int) -> BatchPosition | None:
    """The first batch from `position` on that ends at or past an offset."""
    window, start = b"", position
    while end - position >= _PREFIX_BYTES:
        at = position - start
        if at + _OFFSETS_BYTES > len(window):
            window, start, at = file.read(min(_WINDOW_BYTES, end - position), position), position, 0
        if len(window) < _OFFSETS_BYTES:
            window += bytes(_OFFSETS_BYTES)  # the last message of magic 0 or 1 may be shorter
        base_offset, length, magic, last_offset_delta = _OFFSETS.unpack_from(window, at)
        size = length + LOG_OVERHEAD_BYTES
        if length < _LENGTH_MIN or size > end - position or not 0 <= magic <= 2:
            return None
        last_offset = base_offset + last_offset_delta if magic == 2 else base_offset
        if last_offset >= offset:
            return BatchPosition(position, size, base_offset, last_offset)
        position += size
    return None


def _header(window: memoryview, at: int, magic: int) -> AnyBatch | None:
    try:
        if magic == 2:
            return read_header(window, at)
        return read_legacy_batch(window, at) if 0 <= magic < 2 else None
    except (WireError, struct.error):
        return None


def read_batch(file: ReadableFile, position: int, size: int) -> AnyBatch:
    """The batch at a position, whole."""
    return next(split_batches(file.read(size, position), allow_partial_tail=False))


def check_batches(
    file: ReadableFile, end: int, position: int = 0
) -> Generator[tuple[int, AnyBatch] | None, None, ScanEnd]:
    """Each batch of a file with its position as long as they are sound, and None now and then, to pause at.

    The views are good until the next step. They are whole, but for the records of a batch larger than a chunk.
    """
    try:
        while position < end:
            chunk = file.read(min(CHUNK_BYTES, end - position), position)
            start = position
            for batch in _sound_batches(chunk, end - position):
                yield position, batch
                position += batch.size_bytes
            if position == start:
                batch = yield from _large_batch(file, chunk, position, end - position)
                yield position, batch
                position += batch.size_bytes
            yield None
    except WireError as error:
        return ScanEnd(position, error.reason)
    return ScanEnd(position)


def _sound_batches(chunk: bytes, rest: int) -> Iterator[AnyBatch]:
    """The batches that lie wholly in a chunk, `rest` bytes before the end of the file."""
    at = 0
    while len(chunk) - at >= _PREFIX_BYTES:
        size = _claimed_size(chunk, at, rest - at)
        if size > len(chunk) - at:
            return
        batch = next(split_batches(chunk, position=at))
        batch.check_crc()
        yield batch
        at += size


def _claimed_size(chunk: bytes, at: int, rest: int) -> int:
    """The size of a batch by its own words; WireError if it cannot be true."""
    if len(chunk) - at < _PREFIX_BYTES:
        raise WireError("RecordBatch", at, f"{len(chunk) - at} bytes are no batch")
    _, length, magic = _PREFIX.unpack_from(chunk, at)
    if not 0 <= magic <= 2:
        raise WireError("RecordBatch.magic", at, f"magic {magic} does not exist")
    if length < (HEADER_BYTES - LOG_OVERHEAD_BYTES if magic == 2 else _LENGTH_MIN):
        raise WireError("RecordBatch.batch_length", at, f"{length} bytes are fewer than a batch has")
    size: int = length + LOG_OVERHEAD_BYTES
    if size > rest:
        raise WireError("RecordBatch.batch_length", at, f"{rest} of the {size} bytes of the batch are there")
    return size


def _large_batch(file: ReadableFile, chunk: bytes, position: int, rest: int) -> Generator[None, None, AnyBatch]:
    """A batch that does not fit in a chunk, checked piece by piece."""
    size = _claimed_size(chunk, 0, rest)
    if chunk[16] != 2:
        batch = read_batch(file, position, size)
        batch.check_crc()
        return batch
    header = read_header(chunk)
    crc = crc32c(memoryview(chunk)[_CRC_START:])
    for start in range(len(chunk), size, CHUNK_BYTES):
        crc = crc32c(file.read(min(CHUNK_BYTES, size - start), position + start), crc)
        yield None
    if crc != header.crc:
        raise WireError("RecordBatch.crc", 17, f"{header.crc:#010x} is stored, {crc:#010x} computed")
    return header


def find_sound_batches(
    file: ReadableFile, position: int, end: int
) -> Generator[tuple[int, AnyBatch | str] | None, None, bool]:
    """Each sound batch with its position, for each damage its position and reason, and None to pause at.

    Gives whether all of it was looked at: bytes that are made to look like headers could keep it busy for hours.
    """
    left_bytes = _TRIES_BYTES_FACTOR * (end - position)
    while position < end:
        damage = yield from check_batches(file, end, position)
        position = damage.position
        if position < end:
            yield position, damage.reason
            position, left_bytes = yield from _find_next(file, position, end, left_bytes)
    return left_bytes >= 0


def _find_next(file: ReadableFile, damage: int, end: int, left_bytes: int) -> Generator[None, None, tuple[int, int]]:
    """Where the next sound batch begins behind damage, or the end; and how many bytes more may be tried."""
    try:
        following = damage + _claimed_size(file.read(_PREFIX_BYTES, damage), 0, end - damage)
        if following == end or (yield from _is_sound(file, following, end)):
            return following, left_bytes  # only what the batch holds is damaged
    except WireError:
        pass
    for start in range(damage + 1, end, CHUNK_BYTES):
        chunk = file.read(CHUNK_BYTES + HEADER_BYTES, start)
        for found in _MAGIC_2.finditer(chunk, _MAGIC_POSITION):
            at = found.start() - _MAGIC_POSITION
            size = _plausible_size(chunk, at, end - start - at) if at < CHUNK_BYTES else 0
            if not size:
                continue
            left_bytes -= size
            if left_bytes < 0:
                return end, left_bytes
            if (yield from _is_sound(file, start + at, end)):
                return start + at, left_bytes
        yield None
    return end, left_bytes


def _plausible_size(chunk: bytes, at: int, rest: int) -> int:
    """The size of a batch of magic 2 whose header this may be; 0 if it cannot be one."""
    if len(chunk) - at < HEADER_BYTES:
        return 0
    base_offset, length, last_offset_delta, record_count = _PLAUSIBLE.unpack_from(chunk, at)
    size: int = length + LOG_OVERHEAD_BYTES
    is_plausible = base_offset >= 0 and HEADER_BYTES <= size <= rest and 0 <= record_count <= last_offset_delta + 1
    return size if is_plausible else 0


def _is_sound(file: ReadableFile, position: int, end: int) -> Generator[None, None, bool]:
    for found in check_batches(file, end, position):
        if found is not None:
            return True
        yield None
    return False
