"""Packet captures made up for tests: TCP connections written down packet by packet, then lost, shuffled or cut."""

import io
import struct
from collections.abc import Iterable, Sequence
from ipaddress import ip_address
from typing import NamedTuple

import dpkt

from ottla.explain.capture import Capture, Notice, Seen
from ottla.explain.capture_file import read_packets
from ottla.explain.exchanges import Exchange, Loss, Side
from ottla.wire import frames, types

START_NS = 1_763_179_200_000_000_000
STEP_NS = 1_000_000
SEGMENT_BYTES = 1448
ETHERNET, NULL, RAW, LOOP, COOKED, COOKED_2 = 1, 0, 101, 108, 113, 276
SYN, ACK, FIN, RST, PUSH = 0x02, 0x10, 0x01, 0x04, 0x08
WRAP = 1 << 32


class Packet(NamedTuple):
    """An IP packet and when it was seen."""

    at_ns: int
    data: bytes


class Talk:
    """A connection between a client and a broker; what they say is appended to `packets`."""

    def __init__(
        self,
        client: tuple[str, int] = ("10.0.0.1", 40_000),
        broker: tuple[str, int] = ("10.0.0.2", 9092),
        *,
        first_sequences: tuple[int, int] = (1_000, 5_000),
        segment_bytes: int = SEGMENT_BYTES,
        packets: list[Packet] | None = None,
    ) -> None:
        self.packets: list[Packet] = [] if packets is None else packets
        self.ends = {Side.CLIENT: client, Side.BROKER: broker}
        self.sequences = dict(zip(Side, first_sequences, strict=True))
        self.segment_bytes = segment_bytes

    def open(self) -> "Talk":
        self.packet(Side.CLIENT, b"", SYN)
        self.packet(Side.BROKER, b"", SYN | ACK)
        self.packet(Side.CLIENT, b"", ACK)
        return self

    def say(self, side: Side, data: bytes) -> "Talk":
        for start in range(0, len(data), self.segment_bytes):
            self.packet(side, data[start : start + self.segment_bytes], PUSH | ACK)
        return self

    def close(self) -> "Talk":
        self.packet(Side.CLIENT, b"", FIN | ACK)
        self.packet(Side.BROKER, b"", FIN | ACK)
        self.packet(Side.CLIENT, b"", ACK)
        return self

    def packet(self, side: Side, data: bytes, flags: int) -> None:
        tcp = dpkt.tcp.TCP(
            sport=self.ends[side][1],
            dport=self.ends[side.other][1],
            seq=self.sequences[side],
            ack=self.sequences[side.other] if flags & ACK else 0,
            flags=flags,
            data=data,
        )
        self.sequences[side] = (self.sequences[side] + len(data) + bool(flags & (SYN | FIN))) % WRAP
        at_ns = START_NS + STEP_NS * len(self.packets)
        self.packets.append(Packet(at_ns, ip_packet(self.ends[side][0], self.ends[side.other][0], tcp)))


def ip_packet(source: str, target: str, tcp: dpkt.tcp.TCP) -> bytes:
    src, dst = ip_address(source).packed, ip_address(target).packed
    if len(src) == 16:
        return bytes(dpkt.ip6.IP6(src=src, dst=dst, nxt=6, plen=len(tcp), data=tcp))
    return bytes(dpkt.ip.IP(src=src, dst=dst, p=6, data=tcp))


def linked(link_type: int, packet: bytes, *, vlans: int = 0) -> bytes:
    """A packet behind the header of its link."""
    kind = 0x86DD if packet[0] >> 4 == 6 else 0x0800
    if link_type == ETHERNET:
        tags = b"".join(struct.pack(">HH", 0x8100, 7) for _ in range(vlans))
        return bytes(12) + tags + struct.pack(">H", kind) + packet
    if link_type == COOKED:
        return struct.pack(">HHH8sH", 0, 1, 6, bytes(8), kind) + packet
    if link_type == COOKED_2:
        return struct.pack(">HHiHBB8s", kind, 0, 1, 1, 0, 6, bytes(8)) + packet
    if link_type == NULL:
        return struct.pack("<I", 24 if kind == 0x86DD else 2) + packet
    if link_type == LOOP:
        return struct.pack(">I", 24 if kind == 0x86DD else 2) + packet
    return packet


def pcap(packets: Iterable[Packet], link_type: int = ETHERNET, *, vlans: int = 0, snap_bytes: int = 1 << 20) -> bytes:
    """A capture file in nanoseconds; packets are cut to `snap_bytes`."""
    out = [struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, snap_bytes, link_type)]
    for packet in packets:
        data = linked(link_type, packet.data, vlans=vlans)
        kept = data[:snap_bytes]
        out += [struct.pack("<IIII", *divmod(packet.at_ns, 10**9), len(kept), len(data)), kept]
    return b"".join(out)


def pcapng(packets: Iterable[Packet]) -> bytes:
    """The same by dpkt's writer, in pcapng."""
    out = io.BytesIO()
    writer = dpkt.pcapng.Writer(out)
    for packet in packets:
        writer.writepkt(linked(ETHERNET, packet.data), packet.at_ns / 10**9)
    return out.getvalue()


def read(data: bytes, ports: Sequence[int] = ()) -> tuple[list[Seen | Notice], Capture]:
    capture = Capture(ports)
    return list(capture.read(read_packets(io.BytesIO(data)))), capture


def exchanges(data: bytes) -> list[Exchange]:
    return [seen.event for seen in read(data)[0] if isinstance(seen, Seen) and isinstance(seen.event, Exchange)]


def losses(data: bytes) -> list[Loss]:
    return [seen.event for seen in read(data)[0] if isinstance(seen, Seen) and isinstance(seen.event, Loss)]


# --- things to say ----------------------------------------------------------------------------------------------------


def metadata_request(number: int, *topics: str, client_id: str = "me") -> bytes:
    asked = tuple(types.MetadataRequest.MetadataRequestTopic(name=topic) for topic in topics)
    return frames.write_request(types.MetadataRequest(topics=asked), 12, correlation_id=number, client_id=client_id)


def metadata_response(number: int, *topics: str, brokers: int = 1) -> bytes:
    response = types.MetadataResponse(
        brokers=tuple(
            types.MetadataResponse.MetadataResponseBroker(node_id=node, host=f"broker-{node}.example", port=9092)
            for node in range(brokers)
        ),
        cluster_id="cluster",
        controller_id=0,
        topics=tuple(
            types.MetadataResponse.MetadataResponseTopic(name=topic, topic_id=topic_id(topic)) for topic in topics
        ),
    )
    return frames.write_response(response, 12, correlation_id=number)


def topic_id(name: str) -> bytes:
    """A version 4 uuid, always the same for a name."""
    raw = bytearray(name.encode().ljust(16, b"."))[:16]
    raw[6], raw[8] = 0x40 | raw[6] & 0x0F, 0x80 | raw[8] & 0x3F
    return bytes(raw)


def heartbeat_request(number: int, group: str, client_id: str = "me") -> bytes:
    body = types.HeartbeatRequest(group_id=group, member_id="m-1", generation_id=3)
    return frames.write_request(body, 4, correlation_id=number, client_id=client_id)


def heartbeat_response(number: int, error_code: int = 0) -> bytes:
    return frames.write_response(types.HeartbeatResponse(error_code=error_code), 4, correlation_id=number)


def ask_and_answer(talk: Talk, count: int, *, first: int = 0, brokers: int = 1) -> Talk:
    """So many Metadata exchanges, one after the other."""
    for number in range(first, first + count):
        talk.say(Side.CLIENT, metadata_request(number, "orders"))
        talk.say(Side.BROKER, metadata_response(number, "orders", brokers=brokers))
    return talk
