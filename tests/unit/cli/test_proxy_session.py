"""One proxied connection without sockets: what passes untouched, what is rewritten, what is seen."""

from collections.abc import Iterable

import pytest

from ottla.cli.proxy.session import Session, may_lead_away
from ottla.explain.exchanges import Exchange, Side
from ottla.wire import frames, types

METADATA = types.MetadataResponse
BROKERS = (METADATA.MetadataResponseBroker(1, "kafka-1", 9092), METADATA.MetadataResponseBroker(2, "kafka-2", 9092))
METADATA_REQUEST = frames.write_request(types.MetadataRequest(topics=None), 12, correlation_id=7, client_id="me")
METADATA_RESPONSE = frames.write_response(
    METADATA(brokers=BROKERS, cluster_id="c", controller_id=1), 12, correlation_id=7
)
HEARTBEAT_REQUEST = frames.write_request(types.HeartbeatRequest(group_id="g"), 4, correlation_id=8, client_id="me")
HEARTBEAT_RESPONSE = frames.write_response(types.HeartbeatResponse(error_code=27), 4, correlation_id=8)


def mapping(host: str, port: int, node_id: int) -> tuple[str, int]:
    assert (host, port) == (f"kafka-{node_id}", 9092)
    return "localhost", 10_000 + node_id


def unchanged(host: str, port: int, node_id: int) -> tuple[str, int]:
    return host, port


def answer(session: Session, pieces: Iterable[bytes]) -> tuple[bytes, list[Exchange]]:
    """What the client gets, and the exchanges."""
    sent, exchanges = [], []
    for piece in pieces:
        passed = session.from_broker(piece, 2_000)
        sent += passed.forward
        exchanges += passed.exchanges
    return b"".join(sent), exchanges


def sliced(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


@pytest.mark.parametrize("size", [1, 3, 7, 8, 9, 1_000])
def test_addresses_are_rewritten_however_the_bytes_are_cut(size: int):
    session = Session(mapping)
    for piece in sliced(METADATA_REQUEST + HEARTBEAT_REQUEST, size):
        assert session.from_client(piece, 1_000) == []
    sent, exchanges = answer(session, sliced(METADATA_RESPONSE + HEARTBEAT_RESPONSE, size))
    first, *_ = frames.split(sent)[0]
    brokers = frames.read_response(first, 3, 12).body.brokers
    assert [(broker.host, broker.port) for broker in brokers] == [("localhost", 10_001), ("localhost", 10_002)]
    assert sent.endswith(HEARTBEAT_RESPONSE)
    assert [(each.first.api, each.outcome, each.latency_ns) for each in exchanges] == [
        ("Metadata", "answered", 1_000),
        ("Heartbeat", "answered", 1_000),
    ]


def test_a_response_whose_addresses_stay_keeps_its_bytes():
    session = Session(unchanged)
    session.from_client(METADATA_REQUEST, 0)
    assert answer(session, [METADATA_RESPONSE])[0] == METADATA_RESPONSE


def test_a_response_without_addresses_goes_on_before_it_is_whole():
    session = Session(mapping)
    session.from_client(HEARTBEAT_REQUEST, 0)
    assert answer(session, [HEARTBEAT_RESPONSE[:-1]]) == (HEARTBEAT_RESPONSE[:-1], [])
    sent, exchanges = answer(session, [HEARTBEAT_RESPONSE[-1:]])
    assert sent == HEARTBEAT_RESPONSE[-1:]
    assert [each.first.api for each in exchanges] == ["Heartbeat"]


def test_a_response_with_addresses_waits_for_its_end():
    session = Session(mapping)
    session.from_client(METADATA_REQUEST, 0)
    assert answer(session, [METADATA_RESPONSE[:-1]]) == (b"", [])


def test_a_response_too_large_to_hold_goes_on_as_it_is():
    session = Session(mapping, hold_bytes=20)
    session.from_client(METADATA_REQUEST, 0)
    sent, (exchange,) = answer(session, sliced(METADATA_RESPONSE, 5))
    assert sent == METADATA_RESPONSE
    assert may_lead_away(exchange)


def test_an_unknown_api_passes_and_is_reported():
    request = frames.frame(b"\x03\xe7\x00\x01\x00\x00\x00\x09\x00\x02me" + b"body")
    response = frames.frame(b"\x00\x00\x00\x09" + b"answer")
    session = Session(mapping)
    assert session.from_client(request, 0) == []
    sent, (exchange,) = answer(session, [response])
    assert sent == response
    assert exchange.outcome == "answered"
    assert exchange.request is not None
    assert exchange.request.name == "Api999Request"
    assert exchange.request.error is not None
    assert not may_lead_away(exchange)


def test_a_version_that_we_do_not_know_may_lead_the_client_away():
    request = bytearray(METADATA_REQUEST)
    request[6:8] = (99).to_bytes(2)
    session = Session(mapping)
    session.from_client(bytes(request), 0)
    sent, (exchange,) = answer(session, [METADATA_RESPONSE])
    assert sent == METADATA_RESPONSE
    assert may_lead_away(exchange)


@pytest.mark.parametrize(
    ("hello", "why"),
    [(b"\x16\x03\x01\x02\x00" + bytes(512), "TLS"), (b"GET / HTTP/1.1\r\n\r\n", "Kafka's protocol")],
)
def test_what_is_not_kafka_passes_unseen(hello: bytes, why: str):
    session = Session(mapping)
    assert session.from_client(hello, 0) == []
    assert why in session.foreign[Side.CLIENT]
    assert answer(session, sliced(hello, 2)) == (hello, [])
    assert why in session.foreign[Side.BROKER]
    assert answer(session, [HEARTBEAT_RESPONSE]) == (HEARTBEAT_RESPONSE, [])
    assert session.from_client(HEARTBEAT_REQUEST, 0) == []


def test_tiny_frames_pass():
    session = Session(mapping)
    tiny = frames.frame(b"") + frames.frame(b"\x01")
    sent, exchanges = answer(session, sliced(tiny, 3))
    assert sent == tiny
    assert [each.outcome for each in exchanges] == ["unpaired", "unpaired"]


def test_bare_sasl_tokens_pass():
    session = Session(mapping)
    session.from_client(
        frames.write_request(types.SaslHandshakeRequest(mechanism="PLAIN"), 0, correlation_id=1, client_id="me"), 0
    )
    shake = frames.write_response(types.SaslHandshakeResponse(mechanisms=("PLAIN",)), 0, correlation_id=1)
    assert answer(session, [shake])[0] == shake
    session.from_client(frames.frame(b"\0me\0secret"), 0)
    sent, (exchange,) = answer(session, [frames.frame(b"")])
    assert sent == frames.frame(b"")
    assert exchange.first.name == "SaslToken"


def test_the_end_tells_what_was_not_answered():
    session = Session(mapping)
    session.from_client(HEARTBEAT_REQUEST, 0)
    assert [(each.first.api, each.outcome) for each in session.close()] == [("Heartbeat", "unanswered")]


def test_a_produce_without_acks_ends_at_once():
    request = frames.write_request(types.ProduceRequest(acks=0), 9, correlation_id=1, client_id="me")
    assert [each.outcome for each in Session(mapping).from_client(request, 0)] == ["one-way"]
