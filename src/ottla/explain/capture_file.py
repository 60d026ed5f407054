"""Capture files: pcap and pcapng, packet by packet.

Written by hand although dpkt reads both, for three reasons: dpkt's readers know one interface and one section a file
(Wireshark writes several), give a cut last packet as if it were whole, and believe any length. The formats are small.

pcap: 24 bytes of file header, whose magic tells byte order and whether fractions are micro- or nanoseconds; then for
each packet seconds, fraction, captured length, original length, bytes.

pcapng: blocks of `type, length, content, length again`. A section header gives the byte order; each interface
description gives a link type and the unit of its timestamps; enhanced and simple packet blocks hold packets. All other
blocks are passed over.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct, unpack_from
from typing import BinaryIO, NamedTuple

__all__ = ["CaptureError", "RawPacket", "read_packets"]

PACKET_BYTES_MAX = 16 * 1024 * 1024
"""Larger than any packet; a greater length means that the file is damaged."""

TIME_NS_MAX = 253_402_300_800 * 1_000_000_000
"""The end of the year 9999."""

_NS = 1_000_000_000
_PCAP_MAGICS = {
    b"\xa1\xb2\xc3\xd4": (">", 1_000, 16),
    b"\xd4\xc3\xb2\xa1": ("<", 1_000, 16),
    b"\xa1\xb2\x3c\x4d": (">", 1, 16),
    b"\x4d\x3c\xb2\xa1": ("<", 1, 16),
    # "Modified" pcap: each packet has eight more bytes, which are not needed here.
    b"\xa1\xb2\xcd\x34": (">", 1_000, 24),
    b"\x34\xcd\xb2\xa1": ("<", 1_000, 24),
}
"""Magic -> byte order, nanoseconds in one unit of the fraction, bytes of a packet's header."""
_PCAPNG_MAGIC = b"\x0a\x0d\x0d\x0a"
_BYTE_ORDERS = {b"\x1a\x2b\x3c\x4d": ">", b"\x4d\x3c\x2b\x1a": "<"}
_SECTION, _INTERFACE, _SIMPLE, _ENHANCED = 0x0A0D0D0A, 1, 3, 6
_OPTION_END, _OPTION_RESOLUTION, _OPTION_OFFSET = 0, 9, 14
_LINK_TYPE_MASK = 0xFFFF


class CaptureError(ValueError):
    """The file is not a capture, or it is truncated or damaged. Packets that were read before are good."""


class RawPacket(NamedTuple):
    """A packet as captured; `link_type` says what its first header is."""

    at_ns: int
    link_type: int
    data: bytes
    end: int
    """How far the file has been read, for progress."""


def read_packets(file: BinaryIO) -> Iterator[RawPacket]:
    """The packets of a capture, in the order of the file. Raises CaptureError where reading cannot go on."""
    magic = file.read(4)
    if magic in _PCAP_MAGICS:
        return _read_pcap(_Source(file, 4), *_PCAP_MAGICS[magic])
    if magic == _PCAPNG_MAGIC:
        return _read_pcapng(_Source(file, 4))
    raise CaptureError(_not_a_capture(magic))


def _not_a_capture(magic: bytes) -> str:
    if not magic:
        return "the file is empty"
    if magic.startswith(b"\x1f\x8b"):
        return "the file is compressed with gzip; decompress it first (gunzip, or zcat FILE into -)"
    if magic.startswith(b"\x28\xb5\x2f\xfd"):
        return "the file is compressed with zstd; decompress it first (unzstd, or zstdcat FILE into -)"
    return f"the file is neither pcap nor pcapng: it starts with {magic.hex(' ')}"


class _Source:
    """A file that counts the bytes read and raises an error if it ends too early."""

    def __init__(self, file: BinaryIO, position: int) -> None:
        self.file = file
        self.position = position
        self.packets = 0

    def take(self, size: int, what: str) -> bytes:
        data = self.file.read(size)
        if len(data) < size:
            self.refuse(f"cut off in {what}: {len(data)} of {size} bytes are there")
        self.position += size
        return data

    def take_or_end(self, size: int, what: str) -> bytes | None:
        """None at the proper end of the file."""
        data = self.file.read(size)
        if not data:
            return None
        if len(data) < size:
            self.refuse(f"cut off in {what}: {len(data)} of {size} bytes are there")
        self.position += size
        return data

    def refuse(self, problem: str) -> None:
        raise CaptureError(f"{problem} (byte {self.position:,}, after {self.packets:,} packets)")


def _read_pcap(source: _Source, order: str, unit_ns: int, header_bytes: int) -> Iterator[RawPacket]:
    *_, link_type = Struct(f"{order}HHiIII").unpack(source.take(20, "the file header"))
    header = Struct(f"{order}IIII")
    while (raw := source.take_or_end(header_bytes, "a packet's header")) is not None:
        seconds, fraction, captured, _ = header.unpack_from(raw)
        if captured > PACKET_BYTES_MAX:
            source.refuse(f"damaged: a packet of {captured:,} bytes")
        data = source.take(captured, "a packet")
        source.packets += 1
        yield RawPacket(seconds * _NS + fraction * unit_ns, link_type & _LINK_TYPE_MASK, data, source.position)


# --- pcapng -----------------------------------------------------------------------------------------------------------


class _Interface(NamedTuple):
    link_type: int
    units_per_s: int
    offset_s: int
    snap_bytes: int


def _read_pcapng(source: _Source) -> Iterator[RawPacket]:
    order = _read_section(source, *_section_start(source, source.take(4, "the section header")))
    interfaces: list[_Interface] = []
    while (head := source.take_or_end(8, "a block's header")) is not None:
        if head[:4] == _PCAPNG_MAGIC:
            order = _read_section(source, *_section_start(source, head[4:]))
            interfaces.clear()
            continue
        kind, length = unpack_from(f"{order}II", head)
        if length < 12 or length % 4 or length > PACKET_BYTES_MAX:
            source.refuse(f"damaged: a block of {length:,} bytes")
        content = source.take(length - 8, "a block")[:-4]
        if kind == _INTERFACE:
            interfaces.append(_read_interface(source, order, content))
        elif kind in (_ENHANCED, _SIMPLE):
            source.packets += 1
            yield _read_packet(source, order, kind, content, interfaces)


def _section_start(source: _Source, length: bytes) -> tuple[bytes, str]:
    mark = source.take(4, "the section header")
    order = _BYTE_ORDERS.get(mark)
    if order is None:
        source.refuse("damaged: a section without a byte order")
    return length, order or ">"


def _read_section(source: _Source, length: bytes, order: str) -> str:
    """Pass over the rest of a section header: version, length of the section, options."""
    (total,) = unpack_from(f"{order}I", length)
    if total < 28 or total % 4 or total > PACKET_BYTES_MAX:
        source.refuse(f"damaged: a section header of {total:,} bytes")
    source.take(total - 12, "the section header")
    return order


def _read_interface(source: _Source, order: str, content: bytes) -> _Interface:
    if len(content) < 8:
        source.refuse("damaged: an interface without a link type")
    link_type, _, snap_bytes = unpack_from(f"{order}HHI", content)
    units, offset = 1_000_000, 0
    for code, value in _options(order, content[8:]):
        if code == _OPTION_RESOLUTION and value:
            # The highest bit selects powers of 2 or of 10.
            units = 2 ** (value[0] & 0x7F) if value[0] & 0x80 else 10 ** value[0]
        elif code == _OPTION_OFFSET and len(value) >= 8:
            (offset,) = unpack_from(f"{order}q", value)
    return _Interface(link_type, units, offset, snap_bytes)


def _options(order: str, data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 4 <= len(data):
        code, length = unpack_from(f"{order}HH", data, at)
        if code == _OPTION_END:
            return
        yield code, data[at + 4 : at + 4 + length]
        at += 4 + length + -length % 4


def _read_packet(source: _Source, order: str, kind: int, content: bytes, interfaces: list[_Interface]) -> RawPacket:
    if kind == _SIMPLE:  # it has no time and no interface number; it belongs to the first interface
        (original,) = unpack_from(f"{order}I", content) if len(content) >= 4 else (0,)
        number, ticks, start = 0, 0, 4
        captured = min(original, interfaces[0].snap_bytes or original) if interfaces else original
    else:
        if len(content) < 20:
            source.refuse("damaged: a packet block without a header")
        number, high, low, captured, _ = unpack_from(f"{order}IIIII", content)
        ticks, start = high << 32 | low, 20
    if number >= len(interfaces):
        source.refuse(f"damaged: a packet of interface {number}, which is not described")
    if captured > len(content) - start:
        source.refuse(f"damaged: a packet of {captured:,} bytes in a block of {len(content):,}")
    interface = interfaces[number]
    at_ns = ticks * _NS // interface.units_per_s + interface.offset_s * _NS
    if not 0 <= at_ns < TIME_NS_MAX:
        source.refuse("damaged: a packet whose time is not between the years 1970 and 9999")
    return RawPacket(at_ns, interface.link_type, content[start : start + captured], source.position)
