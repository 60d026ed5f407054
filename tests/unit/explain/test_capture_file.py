"""Capture files: both formats in both byte orders, all units of time, several interfaces, and damage."""

import io
import struct

import pytest

from ottla.explain.capture_file import CaptureError, RawPacket, read_packets

NS = 10**9


def pcap(order: str, magic: int, *packets: tuple[int, int, bytes], link_type: int = 1, extra: bytes = b"") -> bytes:
    head = struct.pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, 65_535, link_type)
    return head + b"".join(
        struct.pack(f"{order}IIII", seconds, fraction, len(data), len(data)) + extra + data
        for seconds, fraction, data in packets
    )


def block(order: str, kind: int, content: bytes) -> bytes:
    content += bytes(-len(content) % 4)
    length = struct.pack(f"{order}I", len(content) + 12)
    return struct.pack(f"{order}I", kind) + length + content + length


def section(order: str) -> bytes:
    return block(order, 0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1))


def interface(order: str, link_type: int, *options: tuple[int, bytes]) -> bytes:
    content = struct.pack(f"{order}HHI", link_type, 0, 0)
    for code, value in options:
        content += struct.pack(f"{order}HH", code, len(value)) + value + bytes(-len(value) % 4)
    return block(order, 1, content + bytes(4))


def enhanced(order: str, number: int, ticks: int, data: bytes) -> bytes:
    head = struct.pack(f"{order}IIIII", number, ticks >> 32, ticks & 0xFFFFFFFF, len(data), len(data))
    return block(order, 6, head + data + bytes(-len(data) % 4))


def packets(data: bytes) -> list[RawPacket]:
    return list(read_packets(io.BytesIO(data)))


def facts(data: bytes) -> list[tuple[int, int, bytes]]:
    return [packet[:3] for packet in packets(data)]


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(
    ("magic", "unit_ns", "extra"), [(0xA1B2C3D4, 1_000, 0), (0xA1B23C4D, 1, 0), (0xA1B2CD34, 1_000, 8)]
)
def test_pcap_in_both_byte_orders_and_all_kinds(order: str, magic: int, unit_ns: int, extra: int):
    data = pcap(order, magic, (7, 5, b"one"), (8, 6, b""), link_type=113, extra=bytes(extra))
    assert facts(data) == [(7 * NS + 5 * unit_ns, 113, b"one"), (8 * NS + 6 * unit_ns, 113, b"")]


def test_the_end_of_each_packet_is_told_for_progress():
    data = pcap("<", 0xA1B2C3D4, (7, 5, b"one"), (8, 6, b"three"))
    assert [packet.end for packet in packets(data)] == [24 + 16 + 3, len(data)]


def test_upper_bits_of_the_link_type_are_not_part_of_it():
    assert facts(pcap("<", 0xA1B2C3D4, (1, 0, b"x"), link_type=0x10000001))[0][1] == 1


@pytest.mark.parametrize("order", ["<", ">"])
def test_pcapng_with_two_interfaces_of_their_own_units(order: str):
    data = (
        section(order)
        + interface(order, 1)
        + interface(order, 276, (9, b"\x09"), (14, struct.pack(f"{order}q", 100)))
        + block(order, 99, b"unknown blocks are passed over")
        + enhanced(order, 0, 3_000_001, b"micro")
        + enhanced(order, 1, 3 * NS + 1, b"nano!")
    )
    assert facts(data) == [(3 * NS + 1_000, 1, b"micro"), (103 * NS + 1, 276, b"nano!")]


def test_pcapng_times_in_powers_of_two():
    data = section("<") + interface("<", 1, (9, bytes([0x80 | 10]))) + enhanced("<", 0, 1536, b"x")
    assert facts(data) == [(NS + NS // 2, 1, b"x")]


def test_a_second_section_may_have_another_byte_order_and_other_interfaces():
    data = (
        section("<")
        + interface("<", 1)
        + enhanced("<", 0, 1, b"a")
        + section(">")
        + interface(">", 101)
        + enhanced(">", 0, 2, b"b")
    )
    assert [(link, raw) for _, link, raw in facts(data)] == [(1, b"a"), (101, b"b")]


def test_simple_packets_have_no_time():
    data = section("<") + interface("<", 1) + block("<", 3, struct.pack("<I", 5) + b"hello")
    assert facts(data) == [(0, 1, b"hello")]


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "the file is empty"),
        (b"GIF89a", "neither pcap nor pcapng: it starts with 47 49 46 38"),
        (b"\x1f\x8b\x08\x00", "compressed with gzip"),
        (b"\x28\xb5\x2f\xfd", "compressed with zstd"),
        (pcap("<", 0xA1B2C3D4)[:10], "cut off in the file header: 6 of 20 bytes"),
        (pcap("<", 0xA1B2C3D4, (1, 1, b"abc"), (2, 2, b"defg"))[:-2], "cut off in a packet: 2 of 4 bytes"),
        (pcap("<", 0xA1B2C3D4, (1, 1, b"abc"))[:-8], "cut off in a packet's header: 11 of 16 bytes"),
        (pcap("<", 0xA1B2C3D4) + struct.pack("<IIII", 1, 1, 1 << 31, 1), "a packet of 2,147,483,648 bytes"),
        (section("<")[:8] + b"nope" + bytes(20), "a section without a byte order"),
        ((section("<") + interface("<", 1))[:-6], "cut off in a block"),
        (section("<") + enhanced("<", 0, 1, b"x"), "a packet of interface 0, which is not described"),
        (section("<") + interface("<", 1) + enhanced("<", 0, 1 << 62, b"x"), "a packet whose time is not between"),
        (
            section("<") + interface("<", 1, (14, (-9).to_bytes(8, "little", signed=True))) + enhanced("<", 0, 1, b"x"),
            "a packet whose time is not between",
        ),
        (section("<") + interface("<", 1) + struct.pack("<II", 6, 7), "a block of 7 bytes"),
        (
            section("<") + interface("<", 1) + block("<", 6, bytes(12) + struct.pack("<II", 99, 99)),
            "a packet of 99 bytes",
        ),
        (section("<") + block("<", 1, b""), "an interface without a link type"),
        (section("<") + interface("<", 1) + block("<", 6, bytes(8)), "a packet block without a header"),
    ],
)
def test_damage_is_named(data: bytes, says: str):
    with pytest.raises(CaptureError, match=says):
        packets(data)


def test_what_comes_before_the_damage_is_read_and_counted():
    data = pcap("<", 0xA1B2C3D4, (1, 1, b"abc"), (2, 2, b"defg"))
    found = []
    reader = read_packets(io.BytesIO(data[:-1]))
    found.append(next(reader))
    with pytest.raises(CaptureError, match=r"\(byte 59, after 1 packets\)"):
        next(reader)
    assert found[0].data == b"abc"
