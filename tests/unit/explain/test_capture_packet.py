"""From packets to TCP segments, whatever the link puts before them and whatever is wrong with them."""

import random

import dpkt
import pytest

from ottla.explain.capture_packet import LINK_TYPES, endpoint_text, read_segment
from tests.unit.explain import packets as made

TCP = dpkt.tcp.TCP(sport=1234, dport=9092, seq=77, ack=88, flags=made.ACK | made.FIN, data=b"payload")
V4 = made.ip_packet("10.0.0.1", "10.0.0.2", TCP)
V6 = made.ip_packet("fd00::1", "fd00::2", TCP)


def test_a_segment_says_who_and_what():
    segment = read_segment(made.RAW, V4)
    assert segment is not None
    assert endpoint_text(segment.source) == "10.0.0.1:1234"
    assert endpoint_text(segment.target) == "10.0.0.2:9092"
    assert (segment.sequence, segment.acknowledged, segment.payload) == (77, 88, b"payload")
    assert (segment.is_fin, segment.is_syn, segment.is_rst) == (True, False, False)


def test_an_acknowledgement_without_its_flag_is_none():
    tcp = dpkt.tcp.TCP(sport=1, dport=2, seq=3, ack=4, flags=made.SYN)
    segment = read_segment(made.RAW, made.ip_packet("10.0.0.1", "10.0.0.2", tcp))
    assert segment is not None
    assert segment.acknowledged is None
    assert segment.is_syn


def test_padding_behind_a_short_packet_is_no_payload():
    tcp = dpkt.tcp.TCP(sport=1, dport=2, seq=3, ack=4, flags=made.ACK)
    frame = made.linked(made.ETHERNET, made.ip_packet("10.0.0.1", "10.0.0.2", tcp)) + bytes(6)
    segment = read_segment(made.ETHERNET, frame)
    assert segment is not None
    assert segment.payload == b""


def test_a_length_of_zero_is_left_behind_by_offloading():
    packet = bytearray(V4)
    packet[2:4] = b"\0\0"
    segment = read_segment(made.RAW, bytes(packet))
    assert segment is not None
    assert segment.payload == b"payload"


def test_tcp_options_and_ip_options_are_passed_over():
    tcp = dpkt.tcp.TCP(sport=1, dport=2, seq=3, flags=made.ACK, off=8, opts=bytes(12), data=b"x")
    ip = dpkt.ip.IP(src=bytes(4), dst=bytes(4), p=6, hl=6, opts=bytes(4), data=tcp)
    segment = read_segment(made.RAW, bytes(ip))
    assert segment is not None
    assert segment.payload == b"x"


def test_ipv6_extension_headers_are_passed_over():
    hop_by_hop = bytes([6, 0, 1, 4, 0, 0, 0, 0])
    packet = bytearray(V6)
    packet[6] = 0  # hop-by-hop options come next
    packet[4:6] = (len(packet) - 40 + 8).to_bytes(2, "big")
    segment = read_segment(made.RAW, bytes(packet[:40]) + hop_by_hop + bytes(packet[40:]))
    assert segment is not None
    assert segment.payload == b"payload"


def test_fragments_are_left_out():
    packet = bytearray(V4)
    packet[6] = 0x20  # more fragments follow
    assert read_segment(made.RAW, bytes(packet)) is None


@pytest.mark.parametrize("link_type", sorted(LINK_TYPES))
@pytest.mark.parametrize("packet", [V4, V6], ids=["IPv4", "IPv6"])
def test_no_damage_makes_it_raise(link_type: int, packet: bytes):
    source = random.Random(link_type)
    whole = made.linked(link_type, packet)
    for length in range(len(whole)):
        read_segment(link_type, whole[:length])
    for _ in range(2_000):
        broken = bytearray(whole)
        for _ in range(source.randint(1, 6)):
            broken[source.randrange(len(broken))] = source.randrange(256)
        read_segment(link_type, bytes(broken))


def test_links_and_protocols_that_are_not_understood_give_nothing():
    assert read_segment(105, V4) is None
    assert read_segment(made.ETHERNET, bytes(12) + b"\x08\x06" + bytes(40)) is None
    assert read_segment(made.COOKED_2, b"\x08\x06" + bytes(60)) is None
    udp = dpkt.ip.IP(src=bytes(4), dst=bytes(4), p=17, data=dpkt.udp.UDP(sport=1, dport=2, data=b"x" * 20))
    assert read_segment(made.RAW, bytes(udp)) is None
