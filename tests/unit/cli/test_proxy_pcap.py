"""A saved capture holds every byte in order, in packets that other programs take."""

from pathlib import Path

import dpkt
import pytest

from ottla.cli.proxy.address import Address
from ottla.cli.proxy.pcap import PcapWriter
from ottla.cli.proxy.relay import Link
from ottla.explain.exchanges import Side

AT_NS = 1_700_000_000_123_456_789
LARGE = bytes(range(256)) * 400


def link(number: int = 1, client: str = "127.0.0.1", broker: str = "127.0.0.2") -> Link:
    return Link(number, Address(client, 50_000 + number), Address(broker, 9092), Address("kafka", 9092), None)


def segments(path: Path) -> list[tuple[float, dpkt.tcp.TCP]]:
    with path.open("rb") as file:
        return [(ts, dpkt.ethernet.Ethernet(raw).data.data) for ts, raw in dpkt.pcap.Reader(file)]


@pytest.mark.parametrize(
    ("client", "broker"), [("127.0.0.1", "127.0.0.2"), ("::1", "::1"), ("::1", "127.0.0.1"), ("fe80::1%eth0", "::1")]
)
def test_bytes_come_back_in_order(tmp_path: Path, client: str, broker: str):
    saved = PcapWriter(tmp_path / "saved.pcap")
    one = link(client=client, broker=broker)
    saved.connected(one, AT_NS)
    saved.moved(one, Side.CLIENT, b"question", AT_NS + 1)
    saved.moved(one, Side.BROKER, LARGE, AT_NS + 2)
    saved.moved(one, Side.CLIENT, b"thanks", AT_NS + 3)
    saved.closed(one, AT_NS + 4)
    saved.close()
    packets = segments(tmp_path / "saved.pcap")
    assert len(packets) == saved.packets
    assert int(packets[0][0] * 10**9) == AT_NS
    for sender_port, expected in ((50_001, b"questionthanks"), (9092, LARGE)):
        sent = [tcp for _, tcp in packets if tcp.sport == sender_port]
        at = sent[0].seq + 1
        for tcp in sent[1:]:
            assert tcp.seq == at % (1 << 32)
            at += len(tcp.data)
        assert b"".join(bytes(tcp.data) for tcp in sent) == expected


def test_checksums_are_right(tmp_path: Path):
    saved = PcapWriter(tmp_path / "saved.pcap")
    saved.connected(link(), AT_NS)
    saved.moved(link(), Side.CLIENT, b"odd", AT_NS)
    saved.close()
    with (tmp_path / "saved.pcap").open("rb") as file:
        *_, (_, raw) = dpkt.pcap.Reader(file)
    packet = dpkt.ethernet.Ethernet(raw).data
    stored = packet.sum, packet.data.sum
    packet.sum = packet.data.sum = 0
    bytes(packet)  # dpkt fills in what is 0
    assert (packet.sum, packet.data.sum) == stored
    assert 0 not in stored


def test_connections_side_by_side_keep_their_numbers_apart(tmp_path: Path):
    saved = PcapWriter(tmp_path / "saved.pcap")
    for number in (1, 2):
        saved.connected(link(number), AT_NS)
    for number in (1, 2, 1):
        saved.moved(link(number), Side.CLIENT, b"12345", AT_NS)
    saved.close()
    first, second, third = [tcp for _, tcp in segments(tmp_path / "saved.pcap") if tcp.data]
    assert [tcp.sport for tcp in (first, second, third)] == [50_001, 50_002, 50_001]
    assert third.seq == first.seq + 5
    assert first.seq != second.seq


def test_the_same_ends_again_are_another_connection(tmp_path: Path):
    saved = PcapWriter(tmp_path / "saved.pcap")
    one = link(1)
    again = one._replace(number=2)
    for each in (one, again):
        saved.connected(each, AT_NS)
        saved.closed(each, AT_NS)
    saved.close()
    syns = [tcp.seq for _, tcp in segments(tmp_path / "saved.pcap") if tcp.flags & dpkt.tcp.TH_SYN]
    assert len(set(syns)) == 4


def test_only_the_owner_may_read_it(tmp_path: Path):
    PcapWriter(tmp_path / "saved.pcap").close()
    assert (tmp_path / "saved.pcap").stat().st_mode & 0o077 == 0


def test_sequence_numbers_wrap(tmp_path: Path):
    saved = PcapWriter(tmp_path / "saved.pcap")
    saved.connected(link(), AT_NS)
    saved._sequences[1, Side.CLIENT] = (1 << 32) - 2
    saved.moved(link(), Side.CLIENT, b"1234", AT_NS)
    saved.moved(link(), Side.CLIENT, b"5", AT_NS)
    saved.close()
    assert [tcp.seq for _, tcp in segments(tmp_path / "saved.pcap") if tcp.data] == [(1 << 32) - 2, 2]
