"""The five compressions of record batches, with a bound on what comes out.

Theory of operation. A peer chooses the compressed bytes, and with them the size of the output: a kilobyte of zstd can
become a gigabyte. Every reader here therefore takes `max_bytes` and raises `WireError` before it has allocated more:

=======  ============================================================================================================
gzip     the size in the trailer is only a hint, taken when deflate could reach it; else zlib's own output limit holds
snappy   each raw block states its size, which is checked against the bound and against snappy's best ratio (64 for 3)
lz4      each block is decompressed into a buffer of at most the frame's block size, 255 times the input, or the bound
zstd     block headers are walked first: no block yields more than 128 KiB. Only if that sum passes the bound is the
         output written into a buffer of `max_bytes`, whose end the library refuses to pass. The library reserves the
         window the frame header names (at most 128 MiB) beside it; those pages stay untouched until they are filled
=======  ============================================================================================================

Bytes after the end of the compressed data are treated as by Kafka's Java client (4.4.0, observed): anything may follow
gzip's trailer and lz4's end mark, up to three bytes a snappy chunk, and nothing but another frame a zstd frame. Java
writes snappy in the framing of xerial's library; a bare snappy block is read, too. In message sets of magic 0 the
checksum of the lz4 frame header was computed over the wrong bytes; there it is ignored in reading and written in that
broken form.

cramjam is loaded at first use. gzip falls back to the standard library's zlib, which can stop in the middle.
"""

from __future__ import annotations

import functools
import struct
import zlib
from collections.abc import Callable, Container, Iterator
from enum import IntEnum
from types import ModuleType
from typing import Any, Final, NamedTuple

from ottla.wire.fault import WireError

__all__ = ["DEFAULT_MAX_BYTES", "Compression", "compress", "decompress", "zstd_frames", "zstd_whole_bytes"]

# The same order as the largest response that librdkafka accepts; a batch is at most 1 MiB compressed by default.
DEFAULT_MAX_BYTES: Final = 128 * 1024 * 1024
_ZSTD_FRAME: Final = b"\x28\xb5\x2f\xfd"

Buffer = bytes | bytearray | memoryview


class Compression(IntEnum):
    """The codec in bits 0 to 2 of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class _RefusedError(Exception):
    """The reason why the compressed bytes cannot be read; one place turns it into a WireError."""


def decompress(
    codec: int,
    data: Buffer,
    *,
    magic: int = 2,
    max_bytes: int = DEFAULT_MAX_BYTES,
    path: str = "records",
    byte_offset: int | None = None,
) -> bytes:
    """The plain bytes of `data`, at most `max_bytes` of them.

    `path` and `byte_offset` are the position of `data` in errors.
    """
    reader = _READERS.get(codec)
    if reader is None:
        raise WireError(path, byte_offset, f"compression {codec} does not exist")
    try:
        return reader(memoryview(data), max_bytes, magic)
    except _RefusedError as refused:
        raise WireError(path, byte_offset, f"{Compression(codec).name.lower()}: {refused}") from None


def compress(codec: int, data: Buffer, *, level: int | None = None, magic: int = 2) -> bytes:
    """`data` in the given codec; `level` as in Kafka's `compression.*.level`, None for Kafka's default."""
    writer = _WRITERS.get(codec)
    if writer is None:
        raise WireError("records", None, f"compression {codec} does not exist")
    if level is not None and level not in _LEVELS[Compression(codec)]:
        raise WireError("records", None, f"{Compression(codec).name.lower()} has no level {level}")
    return writer(data, level, magic)


def zstd_frames(data: bytes) -> bytes:
    """The content of the whole frames of a file; the last one may be truncated, if its writer was killed."""
    return _whole_frames(data)[0]


def zstd_whole_bytes(data: bytes) -> int:
    """The size of the whole frames at the beginning of some data, without a last one that is still being written."""
    return _whole_frames(data)[1]


def _whole_frames(data: bytes) -> tuple[bytes, int]:
    while data:
        try:
            return bytes(_cramjam().zstd.decompress(data)), len(data)
        except _cramjam().DecompressionError:
            data = data[: max(0, data.rfind(_ZSTD_FRAME))]
    return b"", 0


@functools.cache
def _cramjam() -> ModuleType:
    import cramjam

    return cramjam


def _call(function: Callable[..., Any], *arguments: object, **options: object) -> Any:
    """Call cramjam; the text of its exception becomes the reason."""
    try:
        return function(*arguments, **options)
    except _cramjam().DecompressionError as error:
        raise _RefusedError(str(error).rstrip(".")) from None


def _call_bounded(function: Callable[..., Any], data: Buffer, max_bytes: int) -> bytes:
    """Call one of cramjam's readers with an output buffer of the size of the bound.

    Fresh pages cost nothing until they are written.
    """
    output = bytearray(max_bytes)
    try:
        size = _call(function, data, output)
    except _RefusedError as refused:
        raise (_too_large(max_bytes) if "write whole buffer" in str(refused) else refused) from None
    return bytes(memoryview(output)[:size])


def _too_large(max_bytes: int) -> _RefusedError:
    return _RefusedError(f"more than {max_bytes} bytes come out")


# --- none -------------------------------------------------------------------------------------------------------------


def _read_none(data: memoryview, max_bytes: int, magic: int) -> bytes:
    if len(data) > max_bytes:
        raise _too_large(max_bytes)
    return bytes(data)


def _write_none(data: Buffer, level: int | None, magic: int) -> bytes:
    return bytes(data)


# --- gzip -------------------------------------------------------------------------------------------------------------

# Deflate's best: 258 bytes for a match of two bits.
_DEFLATE_RATIO: Final = 1032
# Java looks for another member only if more bytes than this follow (a whole one is longer).
_GZIP_TAIL_IGNORED: Final = 18
_GZIP_MAGIC: Final = b"\x1f\x8b\x08"


def _read_gzip(data: memoryview, max_bytes: int, magic: int) -> bytes:
    if len(data) < _GZIP_TAIL_IGNORED:
        raise _RefusedError("the stream ends early")
    hint: int = int.from_bytes(data[-4:], "little")
    if hint <= max_bytes and hint <= len(data) * _DEFLATE_RATIO:
        output = bytearray(hint)
        try:
            if _cramjam().gzip.decompress_into(data, output) == hint:
                return bytes(output)
        except _cramjam().DecompressionError:
            pass  # several members, bytes after the trailer, or damage: zlib tells which
    return b"".join(_gzip_members(data, max_bytes))


def _gzip_members(data: memoryview, max_bytes: int) -> Iterator[bytes]:
    rest = max_bytes
    while True:
        stream = zlib.decompressobj(wbits=31)
        try:
            # One byte beyond the bound distinguishes a full output from one that is too large.
            piece = stream.decompress(data, rest + 1)
        except zlib.error as error:
            raise _RefusedError(str(error)) from None
        if len(piece) > rest:
            raise _too_large(max_bytes)
        if not stream.eof:
            raise _RefusedError("the stream ends early")
        yield piece
        rest -= len(piece)
        data = data[len(data) - len(stream.unused_data) :]
        if len(data) <= _GZIP_TAIL_IGNORED or bytes(data[:3]) != _GZIP_MAGIC:
            return


def _write_gzip(data: Buffer, level: int | None, magic: int) -> bytes:
    return zlib.compress(data, -1 if level is None else level, wbits=31)


# --- snappy -----------------------------------------------------------------------------------------------------------

_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_CHUNK_BYTES: Final = 32 * 1024
_INT32: Final = struct.Struct(">i")


def _read_snappy(data: memoryview, max_bytes: int, magic: int) -> bytes:
    if len(data) < len(_XERIAL_HEADER) or bytes(data[:8]) != _XERIAL_MAGIC:
        return _read_snappy_block(data, max_bytes, max_bytes)
    chunks: list[bytes] = []
    rest = max_bytes
    for chunk in _xerial_chunks(data):
        chunks.append(_read_snappy_block(chunk, rest, max_bytes))
        rest -= len(chunks[-1])
    return b"".join(chunks)


def _xerial_chunks(data: memoryview) -> Iterator[memoryview]:
    position = len(_XERIAL_HEADER)
    # Fewer than four bytes at the end are no chunk; the Java reader treats them as the end of the stream.
    while len(data) - position >= 4:
        if bytes(data[position : position + 4]) == _XERIAL_MAGIC[:4]:
            position = _skip_second_header(data, position)
            continue
        (size,) = _INT32.unpack_from(data, position)
        position += 4
        if not 0 <= size <= len(data) - position:
            raise _RefusedError(f"a chunk of {size} bytes where {len(data) - position} are left")
        yield data[position : position + size]
        position += size


def _skip_second_header(data: memoryview, position: int) -> int:
    """Streams may be concatenated: then the header comes again instead of a chunk's size."""
    if len(data) - position < len(_XERIAL_HEADER) or bytes(data[position : position + 8]) != _XERIAL_MAGIC:
        raise _RefusedError("a second stream header is broken")
    return position + len(_XERIAL_HEADER)


def _read_snappy_block(data: memoryview, rest: int, max_bytes: int) -> bytes:
    size = _call(_cramjam().snappy.decompress_raw_len, data)
    if size > rest:
        raise _too_large(max_bytes)
    if size * 3 > len(data) * 64:
        raise _RefusedError(f"{len(data)} bytes cannot hold the {size} they claim")
    return bytes(_call(_cramjam().snappy.decompress_raw, data))


def _write_snappy(data: Buffer, level: int | None, magic: int) -> bytes:
    view = memoryview(data)
    parts: list[Buffer] = [_XERIAL_HEADER]
    for start in range(0, len(view), _XERIAL_CHUNK_BYTES):
        block = bytes(_cramjam().snappy.compress_raw(view[start : start + _XERIAL_CHUNK_BYTES]))
        parts += (_INT32.pack(len(block)), block)
    return b"".join(parts)


# --- lz4 --------------------------------------------------------------------------------------------------------------

_LZ4_MAGIC: Final = b"\x04\x22\x4d\x18"
_LZ4_STORED: Final = 0x80000000
_LZ4_RATIO: Final = 255
_LZ4_CONTENT_CHECKSUM: Final = 0x04
_LZ4_CONTENT_SIZE: Final = 0x08
_LZ4_BLOCK_CHECKSUMS: Final = 0x10
# What Kafka writes: version 1, independent blocks, no checksums, no content size; blocks of 64 KiB.
_LZ4_FLAGS: Final = 0x60
_LZ4_SIZES: Final = 0x40
_LZ4_BLOCK_BYTES: Final = 64 * 1024
_UINT32_LE: Final = struct.Struct("<I")


class _Lz4Block(NamedTuple):
    data: memoryview
    is_stored: bool
    bytes_max: int


def _read_lz4(data: memoryview, max_bytes: int, magic: int) -> bytes:
    flags, block_bytes, start = _read_lz4_descriptor(data, magic)
    blocks = _lz4_blocks(data, start, flags, block_bytes)
    if flags & _LZ4_BLOCK_CHECKSUMS:
        return _read_checked_lz4(list(blocks), data[start:], data[5], max_bytes)
    parts: list[Buffer] = []
    rest = max_bytes
    for block in blocks:
        parts.append(block.data if block.is_stored else _read_lz4_block(block, rest))
        rest -= len(parts[-1])
        if rest < 0:
            raise _too_large(max_bytes)
    return b"".join(parts)


def _read_checked_lz4(blocks: list[_Lz4Block], data: memoryview, sizes: int, max_bytes: int) -> bytes:
    """Reads blocks with checksums, as aiokafka writes them.

    The library verifies the checksums, in a frame without optional fields.
    """
    descriptor = bytes((_LZ4_FLAGS | _LZ4_BLOCK_CHECKSUMS, sizes))
    covered = sum(len(block.data) + 8 for block in blocks)
    frame = b"".join((_lz4_header(descriptor), data[:covered], bytes(4)))
    if sum(block.bytes_max for block in blocks) <= max_bytes:
        return bytes(_call(_cramjam().lz4.decompress, frame))
    return _call_bounded(_cramjam().lz4.decompress_into, frame, max_bytes)


def _lz4_blocks(data: memoryview, position: int, flags: int, block_bytes: int) -> Iterator[_Lz4Block]:
    """Each block of a frame up to its end mark."""
    checksum_bytes = 4 if flags & _LZ4_BLOCK_CHECKSUMS else 0
    while True:
        size, is_stored = _read_lz4_block_size(data, position)
        position += 4
        if size == 0:
            break
        if size > block_bytes:
            raise _RefusedError(f"a block of {size} bytes in a frame whose blocks have at most {block_bytes}")
        if size + checksum_bytes > len(data) - position:
            raise _RefusedError(f"a block of {size} bytes where {len(data) - position} are left")
        bytes_max = size if is_stored else min(block_bytes, size * _LZ4_RATIO)
        yield _Lz4Block(data[position : position + size], is_stored, bytes_max)
        position += size + checksum_bytes
    # Like Kafka's reader, skip the content's checksum; the batch has its own.
    if flags & _LZ4_CONTENT_CHECKSUM and len(data) - position < 4:
        raise _RefusedError("the stream ends early")


def _read_lz4_descriptor(data: memoryview, magic: int) -> tuple[int, int, int]:
    """The frame's flags, the largest size of a block, and where the blocks begin."""
    if len(data) < 7:
        raise _RefusedError("the stream ends early")
    if bytes(data[:4]) != _LZ4_MAGIC:
        raise _RefusedError("no frame begins here")
    flags, sizes = data[4], data[5]
    # Version 1 with independent blocks; bits 0 and 1 (dictionary, reserved) must be clear. Kafka reads no other frames.
    if flags & 0xE3 != _LZ4_FLAGS or sizes & 0x8F or not 4 <= sizes >> 4 <= 7:
        raise _RefusedError(f"a frame with flags {flags:#04x} and block size {sizes:#04x} is not read")
    end = 14 if flags & _LZ4_CONTENT_SIZE else 6
    if len(data) <= end:
        raise _RefusedError("the stream ends early")
    if magic > 0 and data[end] != _short_xxh32(data[4:end]) >> 8 & 0xFF:
        raise _RefusedError("the frame header's checksum is wrong")
    return flags, 1 << 2 * (sizes >> 4) + 8, end + 1


def _read_lz4_block_size(data: memoryview, position: int) -> tuple[int, bool]:
    if len(data) - position < 4:
        raise _RefusedError("the stream ends early")
    (word,) = _UINT32_LE.unpack_from(data, position)
    return word & ~_LZ4_STORED, bool(word & _LZ4_STORED)


def _read_lz4_block(block: _Lz4Block, rest: int) -> Buffer:
    room = min(block.bytes_max, rest)
    output = bytearray(room)
    try:
        size = _cramjam().lz4.decompress_block_into(block.data, output, output_len=room)
    except _cramjam().DecompressionError:
        beyond = f", or it yields more than the {rest} bytes still allowed" if room == rest else ""
        raise _RefusedError(f"a block is damaged{beyond}") from None
    return memoryview(output)[:size]


def _lz4_header(descriptor: bytes, magic: int = 2) -> bytes:
    # Magic 0: the checksum wrongly covers the magic number, too, as the first Java clients computed it.
    covered = _LZ4_MAGIC + descriptor if magic == 0 else descriptor
    return _LZ4_MAGIC + descriptor + bytes((_short_xxh32(covered) >> 8 & 0xFF,))


def _write_lz4(data: Buffer, level: int | None, magic: int) -> bytes:
    parts: list[Buffer] = [_lz4_header(bytes((_LZ4_FLAGS, _LZ4_SIZES)), magic)]
    # Kafka's default level, 9, means the fast compressor; every other one the high-compression one.
    blocks = _fast_lz4_blocks(data) if level in (None, 9) else _thorough_lz4_blocks(data, level)
    for block, is_stored in blocks:
        parts += (_UINT32_LE.pack(len(block) | (_LZ4_STORED if is_stored else 0)), block)
    parts.append(bytes(4))
    return b"".join(parts)


def _fast_lz4_blocks(data: Buffer) -> Iterator[tuple[Buffer, bool]]:
    view = memoryview(data)
    for start in range(0, len(view), _LZ4_BLOCK_BYTES):
        plain = view[start : start + _LZ4_BLOCK_BYTES]
        block = bytes(_cramjam().lz4.compress_block(plain, store_size=False))
        yield (plain, True) if len(block) >= len(plain) else (block, False)


def _thorough_lz4_blocks(data: Buffer, level: int | None) -> Iterator[tuple[Buffer, bool]]:
    """Only the library's frames have levels.

    Their blocks are extracted, because the frames have checksums that are not needed.
    """
    compressor = _cramjam().lz4.Compressor(level=level, content_checksum=False, block_linked=False)
    compressor.compress(data)
    frame = memoryview(bytes(compressor.finish()))
    flags, block_bytes, start = _read_lz4_descriptor(frame, magic=2)
    return ((block.data, block.is_stored) for block in _lz4_blocks(frame, start, flags, block_bytes))


_P1: Final = 0x9E3779B1
_P2: Final = 0x85EBCA77
_P3: Final = 0xC2B2AE3D
_P4: Final = 0x27D4EB2F
_P5: Final = 0x165667B1
_MASK: Final = 0xFFFFFFFF


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> 32 - bits) & _MASK


def _short_xxh32(data: Buffer) -> int:
    """XXH32 with seed 0 of fewer than 16 bytes; frame headers have 2, 6 or 10."""
    state = _P5 + len(data) & _MASK
    words = len(data) & ~3
    for (word,) in _UINT32_LE.iter_unpack(data[:words]):
        state = _rotate(state + word * _P3 & _MASK, 17) * _P4 & _MASK
    for byte in data[words:]:
        state = _rotate(state + byte * _P5 & _MASK, 11) * _P1 & _MASK
    state = (state ^ state >> 15) * _P2 & _MASK
    state = (state ^ state >> 13) * _P3 & _MASK
    return state ^ state >> 16


# --- zstd -------------------------------------------------------------------------------------------------------------

_ZSTD_MAGIC: Final = 0xFD2FB528
_ZSTD_SKIPPABLE: Final = 0x184D2A50
_ZSTD_BLOCK_BYTES: Final = 128 * 1024
_ZSTD_DICTIONARY_BYTES: Final = (0, 1, 2, 4)
_ZSTD_CONTENT_SIZE_BYTES: Final = (0, 2, 4, 8)
_ZSTD_BLOCK_RLE: Final = 1
_ZSTD_BLOCK_COMPRESSED: Final = 2


def _read_zstd(data: memoryview, max_bytes: int, magic: int) -> bytes:
    if not data:
        return b""
    if _zstd_upper_bound(data, max_bytes) <= max_bytes:
        return bytes(_call(_cramjam().zstd.decompress, data))
    return _call_bounded(_cramjam().zstd.decompress_into, data, max_bytes)


def _zstd_upper_bound(data: memoryview, enough: int) -> int:
    """An upper bound of the output size; counting stops once it is above `enough`."""
    bound = 0
    position = 0
    while bound <= enough and len(data) - position >= 9:
        (word,) = _UINT32_LE.unpack_from(data, position)
        if word & ~0xF == _ZSTD_SKIPPABLE:
            position += 8 + _UINT32_LE.unpack_from(data, position + 4)[0]
        elif word == _ZSTD_MAGIC:
            yielded, position = _zstd_frame_bound(data, position, enough - bound)
            bound += yielded
        else:
            break  # not a frame: the library will reject it
    return bound


def _zstd_frame_bound(data: memoryview, position: int, enough: int) -> tuple[int, int]:
    descriptor = data[position + 4]
    single_segment = descriptor >> 5 & 1
    content_size_bytes = _ZSTD_CONTENT_SIZE_BYTES[descriptor >> 6] or single_segment
    position += 5 + (1 - single_segment) + _ZSTD_DICTIONARY_BYTES[descriptor & 3] + content_size_bytes
    bound = 0
    last = 0
    while not last and bound <= enough and len(data) - position >= 3:
        word = int.from_bytes(data[position : position + 3], "little")
        last, kind, size = word & 1, word >> 1 & 3, word >> 3
        bound += _ZSTD_BLOCK_BYTES if kind == _ZSTD_BLOCK_COMPRESSED else size
        position += 3 + (1 if kind == _ZSTD_BLOCK_RLE else size)
    return bound, position + (4 if descriptor & 4 else 0)


def _write_zstd(data: Buffer, level: int | None, magic: int) -> bytes:
    return bytes(_cramjam().zstd.compress(data, level=3 if level is None else level))


_READERS: Final[dict[int, Callable[[memoryview, int, int], bytes]]] = {
    Compression.NONE: _read_none,
    Compression.GZIP: _read_gzip,
    Compression.SNAPPY: _read_snappy,
    Compression.LZ4: _read_lz4,
    Compression.ZSTD: _read_zstd,
}
_WRITERS: Final[dict[int, Callable[[Buffer, int | None, int], bytes]]] = {
    Compression.NONE: _write_none,
    Compression.GZIP: _write_gzip,
    Compression.SNAPPY: _write_snappy,
    Compression.LZ4: _write_lz4,
    Compression.ZSTD: _write_zstd,
}
# Kafka's own ranges of the three `compression.*.level` settings; -1 is gzip's default there.
_LEVELS: Final[dict[Compression, Container[int]]] = {
    Compression.NONE: range(0),
    Compression.GZIP: (-1, *range(1, 10)),
    Compression.SNAPPY: range(0),
    Compression.LZ4: range(1, 18),
    Compression.ZSTD: range(-131072, 23),
}
