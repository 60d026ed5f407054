"""Captures as they happen: every link, packets lost, doubled, swapped, cut; connections begun in the middle."""

import io
import random
from collections.abc import Callable, Iterator

import pytest

from ottla.explain.capture import Capture, Notice
from ottla.explain.capture_file import CaptureError, RawPacket, read_packets
from ottla.explain.exchanges import SASL_TOKEN, Loss, Side
from ottla.wire import frames, types
from tests.unit.explain import packets as made
from tests.unit.explain.packets import Packet, Talk


def conversation(count: int = 3, **how: object) -> Talk:
    return made.ask_and_answer(Talk(**how).open(), count).close()  # type: ignore[arg-type]


def assert_answered(data: bytes, count: int) -> None:
    found = made.exchanges(data)
    assert [exchange.outcome for exchange in found] == ["answered"] * count
    assert [exchange.first.correlation_id for exchange in found] == list(range(count))
    assert not made.losses(data)


# --- links and formats ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("link_type", [made.ETHERNET, made.NULL, made.RAW, made.LOOP, made.COOKED, made.COOKED_2])
@pytest.mark.parametrize("addresses", [("10.0.0.1", "10.0.0.2"), ("fd00::1", "fd00::2")], ids=["IPv4", "IPv6"])
def test_every_link_and_both_kinds_of_addresses(link_type: int, addresses: tuple[str, str]):
    talk = conversation(client=(addresses[0], 40_000), broker=(addresses[1], 9092))
    assert_answered(made.pcap(talk.packets, link_type), 3)


@pytest.mark.parametrize("vlans", [1, 2])
def test_vlan_tags_are_passed_over(vlans: int):
    assert_answered(made.pcap(conversation().packets, vlans=vlans), 3)


def test_pcapng_reads_like_pcap():
    talk = conversation()
    assert_answered(made.pcapng(talk.packets), 3)
    [first, *_] = made.exchanges(made.pcapng(talk.packets))
    assert abs(first.first.at_ns - talk.packets[3].at_ns) < 1_000_000  # dpkt writes times as floats


def test_times_and_latencies_are_those_of_the_packets():
    talk = conversation(1)
    [exchange] = made.exchanges(made.pcap(talk.packets))
    assert exchange.request is not None
    assert exchange.request.at_ns == talk.packets[3].at_ns
    assert exchange.latency_ns == made.STEP_NS


def test_labels_name_client_and_broker():
    seen, _ = made.read(made.pcap(conversation(1, client=("fd00::1", 5_000), broker=("fd00::2", 6_000)).packets))
    assert [item.label[1:] for item in seen] == [("[fd00::1]:5000", "[fd00::2]:6000")]


# --- order and loss ---------------------------------------------------------------------------------------------------


def test_packets_that_are_sent_twice_count_once():
    talk = conversation(5)
    doubled = [packet for packet in talk.packets for _ in range(2)]
    assert_answered(made.pcap(doubled), 5)


def test_packets_out_of_order_are_put_in_order():
    talk = conversation(20, segment_bytes=20)
    shuffled = talk.packets[:3] + _shuffled(talk.packets[3:-3], window=6) + talk.packets[-3:]
    assert [packet.data for packet in shuffled] != [packet.data for packet in talk.packets]
    assert_answered(made.pcap(shuffled), 20)


def _shuffled(packets: list[Packet], window: int) -> list[Packet]:
    """Packets moved by a few places."""
    source = random.Random(7)
    order = sorted(range(len(packets)), key=lambda index: index + source.random() * window)
    return [packets[index] for index in order]


def test_sequence_numbers_wrap_around():
    top = (1 << 32) - 40
    assert_answered(made.pcap(conversation(10, first_sequences=(top, top - 20)).packets), 10)


def test_segments_that_overlap():
    talk = Talk().open()
    request = made.metadata_request(0, "orders")
    talk.say(Side.CLIENT, request[:20])
    talk.sequences[Side.CLIENT] -= 8  # sent again, with more
    talk.say(Side.CLIENT, request[12:])
    talk.say(Side.BROKER, made.metadata_response(0, "orders"))
    assert_answered(made.pcap(talk.packets), 1)


def test_a_lost_request_is_named_and_the_rest_is_read():
    talk = conversation(40)
    del talk.packets[3 + 2 * 5]  # the sixth request
    found = made.exchanges(made.pcap(talk.packets))
    by_outcome = {outcome: [e for e in found if e.outcome == outcome] for outcome in ("answered", "unpaired")}
    assert len(by_outcome["answered"]) == 39
    [unpaired] = by_outcome["unpaired"]
    assert unpaired.response is not None
    assert unpaired.response.correlation_id == 5
    [loss] = made.losses(made.pcap(talk.packets))
    assert loss == Loss(Side.CLIENT, len(made.metadata_request(5, "orders")), 0, loss.at_ns)


def test_a_lost_response_leaves_its_request_unanswered():
    talk = conversation(40)
    del talk.packets[4 + 2 * 5]
    found = made.exchanges(made.pcap(talk.packets))
    assert sorted(exchange.outcome for exchange in found) == ["answered"] * 39 + ["unanswered"]
    [loss] = made.losses(made.pcap(talk.packets))
    assert (loss.sender, loss.lost_bytes) == (Side.BROKER, len(made.metadata_response(5, "orders")))


def test_a_hole_in_a_large_response_damages_that_response_alone():
    talk = made.ask_and_answer(Talk().open(), 1, brokers=200)
    answer_packets = [index for index, packet in enumerate(talk.packets) if len(packet.data) > 1_000]
    made.ask_and_answer(talk, 30, first=1).close()
    lost = talk.packets.pop(answer_packets[2])
    found = made.exchanges(made.pcap(talk.packets))
    assert [exchange.outcome for exchange in found] == ["answered"] * 31
    [broken] = [exchange.response for exchange in found if exchange.response and exchange.response.error]
    assert broken.name == "MetadataResponse"
    assert broken.frame.missing_bytes == len(lost.data) - 40
    assert not made.losses(made.pcap(talk.packets))  # the frame's size says where the next one begins


def test_a_hole_over_the_end_of_a_frame_is_searched_past():
    talk = Talk(segment_bytes=100).open()
    for number in range(60):
        talk.say(Side.CLIENT, made.metadata_request(number, "orders"))
        talk.say(Side.BROKER, made.metadata_response(number, "orders", brokers=4))
    broker = [i for i, packet in enumerate(talk.packets) if len(packet.data) > 40 and packet.data[12:16] == b"\n\0\0\2"]
    kept = [packet for index, packet in enumerate(talk.packets) if index not in broker[9:14]]
    found = made.exchanges(made.pcap(kept))
    assert sum(exchange.outcome == "answered" and exchange.response.error is None for exchange in found) > 50  # type: ignore[union-attr]
    assert {exchange.first.api for exchange in found} == {"Metadata"}
    assert sum(loss.lost_bytes for loss in made.losses(made.pcap(kept))) > 0


def test_short_packets_of_a_small_snap_length_are_loss_and_not_nonsense():
    talk = made.ask_and_answer(Talk().open(), 30, brokers=10)
    found = made.exchanges(made.pcap(talk.packets, snap_bytes=200))
    answered = [exchange for exchange in found if exchange.outcome == "answered"]
    assert len(answered) == 30
    assert all(exchange.response and exchange.response.frame.missing_bytes for exchange in answered)


# --- beginnings and ends ----------------------------------------------------------------------------------------------


def test_a_capture_may_begin_in_the_middle():
    talk = conversation(12)
    found = made.exchanges(made.pcap(talk.packets[3 + 4 :]))
    assert [exchange.outcome for exchange in found] == ["answered"] * 10


def test_a_capture_may_begin_in_the_middle_of_a_response():
    talk = made.ask_and_answer(Talk().open(), 1, brokers=200)
    made.ask_and_answer(talk, 10, first=1).close()
    first_answer = next(index for index, packet in enumerate(talk.packets) if len(packet.data) > 1_000)
    data = made.pcap(talk.packets[first_answer + 1 :])
    assert [exchange.outcome for exchange in made.exchanges(data)] == ["answered"] * 10
    [loss] = made.losses(data)
    assert loss.sender is Side.BROKER
    assert loss.lost_bytes == 0
    assert loss.passed_bytes > 1_000


def test_in_mid_stream_the_side_that_asks_is_the_client_whatever_its_port():
    talk = conversation(5, client=("10.0.0.1", 80), broker=("10.0.0.2", 50_000))
    seen, _ = made.read(made.pcap(talk.packets[3:]))
    assert {item.label.client for item in seen} == {"10.0.0.1:80"}
    assert len(made.exchanges(made.pcap(talk.packets[3:]))) == 5


def test_an_answer_before_the_first_request_is_guessed():
    talk = conversation(5)
    found = made.exchanges(made.pcap(talk.packets[4:]))
    assert found[0].outcome == "unpaired"
    assert [exchange.outcome for exchange in found[1:]] == ["answered"] * 4


def test_a_reset_ends_a_connection_and_what_was_asked_stays_unanswered():
    talk = Talk().open().say(Side.CLIENT, made.metadata_request(0))
    talk.packet(Side.BROKER, b"", made.RST)
    assert [exchange.outcome for exchange in made.exchanges(made.pcap(talk.packets))] == ["unanswered"]


def test_ports_are_used_again_after_a_connection_is_over():
    talk = conversation(2)
    again = made.ask_and_answer(Talk(first_sequences=(99, 77), packets=talk.packets).open(), 2)
    seen, capture = made.read(made.pcap(again.packets))
    assert [(item.label.number, item.event.first.correlation_id) for item in seen] == [(1, 0), (1, 1), (2, 0), (2, 1)]  # type: ignore[union-attr]
    assert capture.tally.connection_count == 2


def test_a_reused_port_is_seen_even_if_the_end_was_not_captured():
    talk = made.ask_and_answer(Talk().open(), 2)
    again = made.ask_and_answer(Talk(first_sequences=(99, 77), packets=talk.packets).open(), 2)
    _, capture = made.read(made.pcap(again.packets))
    assert capture.tally.connection_count == 2


def test_a_lost_fin_is_no_missing_byte():
    talk = conversation(30)
    del talk.packets[-3]
    assert_answered(made.pcap(talk.packets), 30)


def test_late_packets_of_an_ended_connection_are_ignored():
    talk = conversation(2)
    talk.packets.append(talk.packets[3])
    assert_answered(made.pcap(talk.packets), 2)


# --- what is Kafka ----------------------------------------------------------------------------------------------------


def test_kafka_is_recognised_on_any_port_and_other_protocols_are_not_shown():
    talk = conversation(2, broker=("10.0.0.2", 31_337))
    web = Talk(client=("10.0.0.1", 41_000), broker=("10.0.0.3", 80), packets=talk.packets).open()
    web.say(Side.CLIENT, b"GET / HTTP/1.1\r\nHost: example\r\n\r\n").say(
        Side.BROKER, b"HTTP/1.1 200 OK\r\n\r\n" * 9
    ).close()
    shell = Talk(client=("10.0.0.1", 42_000), broker=("10.0.0.3", 22), packets=talk.packets).open()
    shell.say(Side.BROKER, b"SSH-2.0-OpenSSH_9.9\r\n").close()
    seen, capture = made.read(made.pcap(talk.packets))
    assert len(seen) == 2
    assert (capture.tally.connection_count, capture.tally.foreign_count) == (1, 2)


def test_tls_is_named_and_not_read():
    talk = Talk().open().say(Side.CLIENT, b"\x16\x03\x01\x02\x00\x01\x00" + bytes(500)).close()
    seen, capture = made.read(made.pcap(talk.packets))
    assert [type(item) for item in seen] == [Notice]
    assert capture.tally.tls_count == 1


def test_ports_restrict_what_is_read_and_name_the_broker():
    talk = conversation(2)
    other = made.ask_and_answer(Talk(broker=("10.0.0.2", 9093), packets=talk.packets).open(), 2)
    seen, capture = made.read(made.pcap(other.packets), ports=[9093])
    assert {item.label.broker for item in seen} == {"10.0.0.2:9093"}
    assert capture.tally.connection_count == 1


def test_udp_and_other_packets_are_passed_over():
    talk = conversation(2)
    talk.packets.insert(
        2, Packet(made.START_NS, bytes.fromhex("4500001c000100004011 0000 0a000001 0a000002 0035 0035 0008 0000"))
    )
    talk.packets.insert(5, Packet(made.START_NS, b"\x45"))
    seen, capture = made.read(made.pcap(talk.packets))
    assert len(seen) == 2
    assert capture.tally.packet_count == capture.tally.segment_count + 2


def test_a_link_that_is_not_understood_is_counted():
    _, capture = made.read(made.pcap(conversation().packets, 147))
    assert capture.tally.unknown_links == {147}


# --- bare SASL tokens -------------------------------------------------------------------------------------------------


def sasl_talk(password: bytes) -> Talk:
    talk = Talk().open()
    handshake = types.SaslHandshakeRequest(mechanism="PLAIN")
    talk.say(Side.CLIENT, frames.write_request(handshake, 0, correlation_id=1, client_id="me"))
    talk.say(
        Side.BROKER, frames.write_response(types.SaslHandshakeResponse(mechanisms=("PLAIN",)), 0, correlation_id=1)
    )
    talk.say(Side.CLIENT, frames.frame(b"\0alice\0" + password))
    talk.say(Side.BROKER, frames.frame(b""))
    return talk


def test_bare_tokens_after_the_old_handshake_are_recognised_and_pairing_goes_on():
    talk = made.ask_and_answer(sasl_talk(b"opensesame"), 2).close()
    found = made.exchanges(made.pcap(talk.packets))
    assert [exchange.first.name for exchange in found] == [
        "SaslHandshakeRequest",
        SASL_TOKEN,
        "MetadataRequest",
        "MetadataRequest",
    ]
    assert all(exchange.outcome == "answered" for exchange in found)
    assert found[1].request is not None
    assert found[1].request.body is None


# --- files ------------------------------------------------------------------------------------------------------------


def test_what_comes_before_the_cut_is_shown_and_then_the_cut_is_named():
    data = made.pcap(conversation(5).packets)
    capture = Capture()
    found: list[object] = []
    with pytest.raises(CaptureError, match=r"cut off in a packet: \d+ of \d+ bytes are there"):
        found.extend(capture.read(read_packets(io.BytesIO(data[:-20]))))
    assert len(found) == 5


def test_flows_are_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ottla.explain.capture.FLOWS_MAX", 3)
    talk = Talk()
    for port in range(6):
        made.ask_and_answer(Talk(client=("10.0.0.1", 40_000 + port), packets=talk.packets).open(), 1)
    capture, flow_counts = Capture(), []
    seen = list(capture.read(_watched(talk.packets, lambda: flow_counts.append(len(capture._flows)))))
    assert len(seen) == 6
    assert max(flow_counts) == 3


def test_bytes_that_are_held_are_bounded():
    """Flows with a hole that nothing fills hold bytes; with too many of them the oldest are ended."""
    talk = Talk()
    for port in range(20):
        flow = Talk(client=("10.0.0.1", 50_000 + port), packets=talk.packets).open()
        flow.sequences[Side.CLIENT] += 10
        flow.say(Side.CLIENT, bytes(20 * made.SEGMENT_BYTES))
    capture, held = Capture(held_bytes_max=100_000), []
    list(capture.read(_watched(talk.packets, lambda: held.append(capture.held_bytes))))
    assert 50_000 < max(held) <= 100_000


def _watched(packets: list[Packet], look: Callable[[], None]) -> Iterator[RawPacket]:
    """The packets, with a look at the reader before each."""
    for packet in read_packets(io.BytesIO(made.pcap(packets))):
        look()
        yield packet
