"""The five codecs: round trips, the framings that Kafka uses, and the bound on what comes out."""

import struct
import zlib
from collections.abc import Callable

import cramjam
import pytest

from ottla.wire import WireError
from ottla.wire.compress import Compression, _short_xxh32, compress, decompress

CODECS = [codec for codec in Compression if codec is not Compression.NONE]
SAMPLES = {
    "empty": b"",
    "short": b"x",
    "text": b"the quick brown fox " * 50,
    "blocks": bytes(range(256)) * 1000,
    "noise": b"".join(zlib.crc32(bytes([i & 255, i >> 8])).to_bytes(4, "big") for i in range(30_000)),
}
XERIAL = b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1)


def raw_snappy(data: bytes) -> bytes:
    return bytes(cramjam.snappy.compress_raw(data))


def xerial_chunk(data: bytes) -> bytes:
    block = raw_snappy(data)
    return struct.pack(">i", len(block)) + block


def lz4_frame(descriptor: bytes, *blocks: bytes) -> bytes:
    checksum = bytes([_short_xxh32(descriptor) >> 8 & 0xFF])
    return b"\x04\x22\x4d\x18" + descriptor + checksum + b"".join(blocks) + bytes(4)


def stored(data: bytes) -> bytes:
    return struct.pack("<I", len(data) | 0x80000000) + data


@pytest.mark.parametrize("codec", list(Compression))
@pytest.mark.parametrize("sample", SAMPLES)
def test_round_trip(codec: Compression, sample: str):
    packed = compress(codec, SAMPLES[sample])
    assert decompress(codec, packed) == SAMPLES[sample]
    assert decompress(codec, memoryview(bytearray(packed))) == SAMPLES[sample]


LEVELS = [
    *((Compression.GZIP, level) for level in (-1, 1, 9)),
    *((Compression.LZ4, level) for level in (1, 9, 17)),
    *((Compression.ZSTD, level) for level in (-7, 1, 22)),
]


@pytest.mark.parametrize(("codec", "level"), LEVELS)
def test_levels(codec: Compression, level: int):
    assert decompress(codec, compress(codec, SAMPLES["blocks"], level=level)) == SAMPLES["blocks"]


def test_higher_levels_pack_tighter():
    text = b"".join(b"%d quick brown foxes " % (i * i) for i in range(5000))
    for codec, low, high in ((Compression.GZIP, 1, 9), (Compression.LZ4, None, 17), (Compression.ZSTD, -7, 19)):
        assert len(compress(codec, text, level=high)) < len(compress(codec, text, level=low))


@pytest.mark.parametrize(
    ("codec", "level"),
    [
        (Compression.GZIP, 0),
        (Compression.GZIP, 10),
        (Compression.LZ4, 0),
        (Compression.LZ4, 18),
        (Compression.ZSTD, 23),
        (Compression.SNAPPY, 1),
        (Compression.NONE, 1),
    ],
)
def test_levels_that_kafka_does_not_have(codec: Compression, level: int):
    with pytest.raises(WireError, match="has no level"):
        compress(codec, b"x", level=level)


@pytest.mark.parametrize("codec", [5, 6, 7, -1])
def test_codecs_that_do_not_exist(codec: int):
    with pytest.raises(WireError, match="does not exist") as caught:
        decompress(codec, b"x", path="here", byte_offset=61)
    assert (caught.value.path, caught.value.byte_offset) == ("here", 61)
    with pytest.raises(WireError, match="does not exist"):
        compress(codec, b"x")


@pytest.mark.parametrize("codec", CODECS)
def test_the_bound_is_exact(codec: Compression):
    for size in (1, 999, 70_000, 300_000):
        packed = compress(codec, bytes(size))
        assert len(decompress(codec, packed, max_bytes=size)) == size
        with pytest.raises(WireError):
            decompress(codec, packed, max_bytes=size - 1)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("sample", ["text", "blocks", "noise"])
def test_every_cut_is_refused(codec: Compression, sample: str):
    packed = compress(codec, SAMPLES[sample])
    cuts = {*range(1, 40), *range(1, len(packed), 997), *range(len(packed) - 8, len(packed))}
    for end in sorted(cut for cut in cuts if cut < len(packed)):
        try:
            plain = decompress(codec, packed[:end])
        except WireError:
            continue
        # Only snappy has no end mark: a stream cut between its chunks is a shorter stream.
        assert codec is Compression.SNAPPY
        assert len(plain) < len(SAMPLES[sample])
        assert SAMPLES[sample].startswith(plain)


# --- gzip -------------------------------------------------------------------------------------------------------------


def test_gzip_members_are_joined_and_what_follows_is_ignored():
    one, two = zlib.compress(b"first ", wbits=31), zlib.compress(b"second", wbits=31)
    assert decompress(Compression.GZIP, one + two) == b"first second"
    assert decompress(Compression.GZIP, one + bytes(4)) == b"first "
    assert decompress(Compression.GZIP, one + b"\xee" * 100) == b"first "


def test_gzip_checksums_count():
    packed = bytearray(zlib.compress(b"x" * 100, wbits=31))
    for position in (-8, -1):
        broken = bytearray(packed)
        broken[position] ^= 1
        with pytest.raises(WireError, match="gzip"):
            decompress(Compression.GZIP, broken)


def test_gzip_size_in_the_trailer_is_only_a_hint():
    packed = zlib.compress(bytes(50_000), wbits=31)
    lying = packed + struct.pack("<I", 2**32 - 1)
    assert len(decompress(Compression.GZIP, lying)) == 50_000


# --- snappy -----------------------------------------------------------------------------------------------------------


def test_snappy_is_written_in_chunks_of_32_kib():
    packed = compress(Compression.SNAPPY, SAMPLES["blocks"])
    assert packed.startswith(XERIAL)
    position, sizes = 16, []
    while position < len(packed):
        (size,) = struct.unpack_from(">i", packed, position)
        sizes.append(cramjam.snappy.decompress_raw_len(packed[position + 4 : position + 4 + size]))
        position += 4 + size
    assert sizes == [32 * 1024] * 7 + [len(SAMPLES["blocks"]) - 7 * 32 * 1024]


def test_snappy_without_framing():
    for sample in ("short", "text", "blocks"):
        assert decompress(Compression.SNAPPY, raw_snappy(SAMPLES[sample])) == SAMPLES[sample]


def test_snappy_streams_may_follow_each_other():
    packed = XERIAL + xerial_chunk(b"one ") + XERIAL + xerial_chunk(b"two ") + xerial_chunk(b"three")
    assert decompress(Compression.SNAPPY, packed) == b"one two three"
    assert decompress(Compression.SNAPPY, packed + b"\0\0\0") == b"one two three"


@pytest.mark.parametrize(
    "tail", [bytes(4), struct.pack(">i", -1), struct.pack(">i", 2**31 - 1), XERIAL[:10], b"\x82SNAP---" + XERIAL[8:]]
)
def test_snappy_tails_that_are_no_chunks(tail: bytes):
    with pytest.raises(WireError, match="snappy"):
        decompress(Compression.SNAPPY, XERIAL + xerial_chunk(b"data") + tail)


def test_snappy_sizes_that_no_input_reaches():
    claim = b"\xff\xff\xff\xff\x07" + b"\x00x"  # 2 GiB - 1
    for packed in (claim, XERIAL + struct.pack(">i", len(claim)) + claim):
        with pytest.raises(WireError, match="come out"):
            decompress(Compression.SNAPPY, packed)
        with pytest.raises(WireError, match="cannot hold"):
            decompress(Compression.SNAPPY, packed, max_bytes=2**33)


# --- lz4 --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", 0x02CC5D05),
        (b"a", 0x550D7456),
        (b"abc", 0x32D153FF),
        (b"abcdefghijklmno", 0xB918A375),
    ],
)
def test_xxh32(data: bytes, expected: int):
    assert _short_xxh32(data) == expected


def test_lz4_frames_begin_as_kafkas_do():
    assert compress(Compression.LZ4, b"x").startswith(bytes.fromhex("04224d18604082"))
    # The checksum of magic 0 covers the magic number, too.
    assert compress(Compression.LZ4, b"x", magic=0).startswith(bytes.fromhex("04224d186040"))


def test_lz4_header_checksum_of_magic_0_is_not_looked_at():
    new, old = compress(Compression.LZ4, b"x", magic=1), compress(Compression.LZ4, b"x", magic=0)
    assert new != old
    for packed in (new, old):
        assert decompress(Compression.LZ4, packed, magic=0) == b"x"
    with pytest.raises(WireError, match="header's checksum"):
        decompress(Compression.LZ4, old, magic=1)


def test_lz4_frames_of_other_writers():
    compressor = cramjam.lz4.Compressor(block_linked=False, content_checksum=True)
    compressor.compress(SAMPLES["blocks"])
    frame = bytes(compressor.finish())
    assert decompress(Compression.LZ4, frame) == SAMPLES["blocks"]
    assert len(decompress(Compression.LZ4, frame, max_bytes=len(SAMPLES["blocks"]))) == len(SAMPLES["blocks"])
    with pytest.raises(WireError, match="come out"):
        decompress(Compression.LZ4, frame, max_bytes=len(SAMPLES["blocks"]) - 1)


def test_lz4_with_content_size_and_block_checksums():
    checksum = struct.pack("<I", _short_xxh32(b"data"))
    frame = lz4_frame(b"\x7c\x40" + struct.pack("<Q", 4), stored(b"data") + checksum) + b"some"
    assert decompress(Compression.LZ4, frame) == b"data"
    with pytest.raises(WireError, match="blockChecksum"):
        decompress(Compression.LZ4, lz4_frame(b"\x70\x40", stored(b"data") + bytes(4)))


@pytest.mark.parametrize(
    "descriptor", [b"\x40\x40", b"\x61\x40", b"\x62\x40", b"\xa0\x40", b"\x60\x30", b"\x60\x80", b"\x60\x41"]
)
def test_lz4_frames_that_kafka_does_not_read(descriptor: bytes):
    with pytest.raises(WireError, match="not read"):
        decompress(Compression.LZ4, lz4_frame(descriptor, stored(b"data")))


def test_lz4_blocks_are_not_larger_than_the_frame_says():
    with pytest.raises(WireError, match="at most 65536"):
        decompress(Compression.LZ4, lz4_frame(b"\x60\x40", stored(bytes(65537))))


def test_lz4_end_mark_ends_the_frame():
    frame = lz4_frame(b"\x60\x40", stored(b"data"))
    assert decompress(Compression.LZ4, frame + b"anything") == b"data"
    with pytest.raises(WireError, match="ends early"):
        decompress(Compression.LZ4, frame[:-1])


# --- zstd -------------------------------------------------------------------------------------------------------------


def test_zstd_frames_may_follow_each_other_and_nothing_else_may():
    one, two = (compress(Compression.ZSTD, data) for data in (b"first ", b"second"))
    skippable = struct.pack("<II", 0x184D2A53, 3) + b"abc"
    assert decompress(Compression.ZSTD, one + skippable + two) == b"first second"
    for tail in (b"\0", bytes(4), b"garbage, a lot of it"):
        with pytest.raises(WireError, match="zstd"):
            decompress(Compression.ZSTD, one + tail)


def test_zstd_bound_sees_through_many_frames():
    packed = compress(Compression.ZSTD, bytes(100_000)) * 10
    assert len(decompress(Compression.ZSTD, packed, max_bytes=1_000_000)) == 1_000_000
    with pytest.raises(WireError, match="more than 999999 bytes come out"):
        decompress(Compression.ZSTD, packed, max_bytes=999_999)


# --- bombs ------------------------------------------------------------------------------------------------------------


def refused(function: Callable[[], object]) -> bool:
    try:
        function()
    except WireError:
        return True
    return False


@pytest.mark.parametrize("codec", CODECS)
def test_noise_is_refused_as_a_wire_error(codec: Compression):
    noise = SAMPLES["noise"]
    pieces = [noise[start : start + 64] for start in range(0, 64_000, 64)]
    assert all(refused(lambda piece=piece: decompress(codec, piece)) for piece in pieces)  # type: ignore[misc]
