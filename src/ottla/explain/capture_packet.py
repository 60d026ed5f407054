"""Reads the TCP segment in a captured packet.

This module reads the link header, of which only the length and the protocol matter: Ethernet with VLAN tags, Linux
"cooked" captures (tcpdump -i any), BSD loopback, raw IP. dpkt, which is loaded with the first packet, parses IP and
TCP: options, IPv6 extension headers, padding after the packet, lengths of 0 that offloading leaves.
"""

from __future__ import annotations

from functools import cache
from ipaddress import ip_address
from struct import error as struct_error
from types import SimpleNamespace
from typing import Any, NamedTuple

__all__ = ["LINK_TYPES", "Endpoint", "Segment", "endpoint_text", "read_segment"]

Endpoint = tuple[bytes, int]
"""A packed address and a port."""

FIN, SYN, RST, ACK = 0x01, 0x02, 0x04, 0x10
LINK_TYPES = {
    0: "BSD loopback",
    1: "Ethernet",
    12: "raw IP",
    14: "raw IP",
    101: "raw IP",
    108: "OpenBSD loopback",
    113: "Linux cooked",
    228: "raw IPv4",
    229: "raw IPv6",
    276: "Linux cooked 2",
}
"""The link types that are understood, by their number in capture files."""

_TCP = 6
_IPV4, _IPV6 = 0x0800, 0x86DD
_VLAN = (0x8100, 0x88A8, 0x9100)
_LOOPBACKS = (0, 108)
_RAW = (12, 14, 101, 228, 229)
_FRAGMENT = 44


class Segment(NamedTuple):
    """A TCP segment. `payload` may be shorter than what was sent, if the capture truncated packets."""

    source: Endpoint
    target: Endpoint
    sequence: int
    acknowledged: int | None
    flags: int
    payload: bytes

    @property
    def is_syn(self) -> bool:
        return bool(self.flags & SYN)

    @property
    def is_fin(self) -> bool:
        return bool(self.flags & FIN)

    @property
    def is_rst(self) -> bool:
        return bool(self.flags & RST)


def read_segment(link_type: int, data: bytes) -> Segment | None:
    """The TCP segment of a packet; None for a packet that holds none, or not enough of it."""
    at = _ip_start(link_type, data)
    if at is None or len(data) - at < 20:
        return None
    version = data[at] >> 4
    if version == 4 and data[at + 9] == _TCP:
        return _read_ip(_dpkt().ip.IP, data[at:])
    return _read_ip(_dpkt().ip6.IP6, data[at:]) if version == 6 else None


def endpoint_text(endpoint: Endpoint) -> str:
    """10.0.0.1:9092, [::1]:9092."""
    address = ip_address(endpoint[0])
    return f"[{address}]:{endpoint[1]}" if address.version == 6 else f"{address}:{endpoint[1]}"


def _ip_start(link_type: int, data: bytes) -> int | None:
    """Where the IP packet begins; None if the link carries something else."""
    if link_type == 1:
        return _behind_type(data, 12)
    if link_type == 113:
        return _behind_type(data, 14)
    if link_type == 276:
        # The protocol comes first, the packet after 20 bytes.
        return 20 if data[:2] in (b"\x08\x00", b"\x86\xdd") else None
    if link_type in _LOOPBACKS:
        return 4
    return 0 if link_type in _RAW else None


def _behind_type(data: bytes, at: int) -> int | None:
    """Where the packet begins, after an EtherType at `at` and any number of VLAN tags."""
    while at + 2 <= len(data):
        kind = int.from_bytes(data[at : at + 2], "big")
        if kind in (_IPV4, _IPV6):
            return at + 2
        if kind not in _VLAN:
            return None
        at += 4
    return None


@cache
def _dpkt() -> Any:
    """dpkt's modules; they take 40 ms to import."""
    import dpkt
    from dpkt import ip, ip6, tcp

    return SimpleNamespace(ip=ip, ip6=ip6, tcp=tcp, error=dpkt.Error)


def _read_ip(packet_class: Any, data: bytes) -> Segment | None:
    dpkt = _dpkt()
    try:
        packet = packet_class(data)
    except (dpkt.error, struct_error, KeyError, IndexError, AttributeError):
        return None  # dpkt raises all kinds of exceptions for a broken extension header
    tcp = packet.data
    if not isinstance(tcp, dpkt.tcp.TCP) or _is_fragment(packet):
        return None
    return Segment(
        (packet.src, tcp.sport),
        (packet.dst, tcp.dport),
        tcp.seq,
        tcp.ack if tcp.flags & ACK else None,
        tcp.flags,
        bytes(tcp.data),
    )


def _is_fragment(packet: Any) -> bool:
    """Whether it is an IP fragment: these are rare for TCP and are not reassembled."""
    if packet.v == 4:
        return bool(packet.mf or packet.offset)
    return _FRAGMENT in packet.extension_hdrs
