"""Saves the traffic of the proxy as a packet capture, as if the client had talked to the broker directly.

The bytes are those that each side sent, before any rewriting; the packets around them are synthetic, with correct
sequence numbers and checksums, so that `ottla decode --pcap` and other programs can read the file. dpkt is loaded when
it is needed.
"""

import os
from decimal import Decimal
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.cli.proxy.address import Address
from ottla.cli.proxy.relay import Link
from ottla.explain.exchanges import Side

if TYPE_CHECKING:
    from dpkt.tcp import TCP

SEGMENT_BYTES = 32 * 1024
SNAP_BYTES = 64 * 1024
_SEQUENCE_MODULUS = 1 << 32
_SPREAD = 0x9E3779B1
"""Initial sequence numbers differ: a reader would take the same endpoints with the same number for one connection."""
_FIN, _SYN, _PUSH, _ACK = 0x01, 0x02, 0x08, 0x10


class _Ends(NamedTuple):
    """The addresses of one direction, packed."""

    source: tuple[bytes, int]
    destination: tuple[bytes, int]


class PcapWriter:
    """Writes packets to a file that only its owner may read, because it may contain secrets."""

    def __init__(self, path: Path) -> None:
        from dpkt.pcap import Writer

        self._writer = Writer(open(path, "wb", opener=_private), snaplen=SNAP_BYTES, nano=True)  # noqa: SIM115 (see close)
        self._sequences: dict[tuple[int, Side], int] = {}
        self.packets = 0

    def connected(self, link: Link, at_ns: int) -> None:
        """The three packets that open a connection."""
        for side, salt in ((Side.CLIENT, 0), (Side.BROKER, 1)):
            self._sequences[link.number, side] = (2 * link.number + salt) * _SPREAD % _SEQUENCE_MODULUS
        self._packet(link, Side.CLIENT, _SYN, b"", at_ns)
        self._packet(link, Side.BROKER, _SYN | _ACK, b"", at_ns)
        self._packet(link, Side.CLIENT, _ACK, b"", at_ns)

    def moved(self, link: Link, sender: Side, data: bytes, at_ns: int) -> None:
        for start in range(0, len(data), SEGMENT_BYTES):
            self._packet(link, sender, _PUSH | _ACK, data[start : start + SEGMENT_BYTES], at_ns)

    def closed(self, link: Link, at_ns: int) -> None:
        for side in Side:
            self._packet(link, side, _FIN | _ACK, b"", at_ns)
        for side in Side:
            del self._sequences[link.number, side]

    def close(self) -> None:
        self._writer.close()

    def _packet(self, link: Link, sender: Side, flags: int, data: bytes, at_ns: int) -> None:
        from dpkt.tcp import TCP

        ends = _ends(link, sender)
        sequence = self._sequences[link.number, sender]
        segment = TCP(
            sport=ends.source[1],
            dport=ends.destination[1],
            seq=sequence,
            ack=self._sequences[link.number, sender.other] if flags & _ACK else 0,
            flags=flags,
            data=data,
        )
        taken = len(data) + bool(flags & (_SYN | _FIN))
        self._sequences[link.number, sender] = (sequence + taken) % _SEQUENCE_MODULUS
        self._writer.writepkt_time(_datagram(ends, segment), Decimal(at_ns).scaleb(-9))
        self.packets += 1


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, mode=0o600)


def _ends(link: Link, sender: Side) -> _Ends:
    client, broker = _packed(link.client, link.broker)
    return _Ends(client, broker) if sender is Side.CLIENT else _Ends(broker, client)


def _packed(*addresses: Address) -> list[tuple[bytes, int]]:
    """Both as IPv4, or both as IPv6 if one of them is."""
    parsed = [ip_address(each.host.partition("%")[0]) for each in addresses]
    if len({each.version for each in parsed}) > 1:
        parsed = [each if each.version == 6 else IPv6Address(f"::ffff:{each}") for each in parsed]
    return [(each.packed, address.port) for each, address in zip(parsed, addresses, strict=True)]


def _datagram(ends: _Ends, segment: "TCP") -> bytes:
    """The segment in an Ethernet frame, which every program can read."""
    from dpkt.ethernet import ETH_TYPE_IP, ETH_TYPE_IP6, Ethernet
    from dpkt.ip import IP, IP_PROTO_TCP
    from dpkt.ip6 import IP6

    source, destination = ends.source[0], ends.destination[0]
    if len(source) == len(IPv6Address(0).packed):
        packet: Any = IP6(src=source, dst=destination, nxt=IP_PROTO_TCP, hlim=64, plen=len(segment), data=segment)
        packet.extension_hdrs = {}
        return bytes(Ethernet(src=bytes(6), dst=bytes(6), type=ETH_TYPE_IP6, data=packet))
    packet = IP(src=source, dst=destination, p=IP_PROTO_TCP, data=segment)
    packet.len = len(packet)
    return bytes(Ethernet(src=bytes(6), dst=bytes(6), type=ETH_TYPE_IP, data=packet))
