"""Requests and responses become exchanges."""

import pytest

from ottla.explain.exchanges import (
    SASL_TOKEN,
    Connection,
    Conversation,
    Event,
    Exchange,
    Loss,
    Side,
    read_request,
)
from ottla.explain.stream import Frame
from ottla.wire import frames, types
from ottla.wire.frames import frame
from tests.unit.explain import packets as made


def framed(data: bytes, at_ns: int = 0) -> Frame:
    """The frame that some bytes with their size are."""
    return Frame(data[4:], len(data), at_ns)


def talk(*said: tuple[Side, bytes], in_sync: bool = True) -> list[Event]:
    connection = Connection(in_sync=in_sync)
    found = [event for at, (side, data) in enumerate(said) for event in connection.receive(side, data, at)]
    return found + connection.close(len(said))


def test_a_response_is_read_in_the_version_of_its_request():
    for version in (0, 1, 8, 9, 12):
        request = frames.write_request(types.MetadataRequest(), version, correlation_id=7, client_id="me")
        response = frames.write_response(types.MetadataResponse(controller_id=3), version, correlation_id=7)
        [exchange] = talk((Side.CLIENT, request), (Side.BROKER, response))
        assert isinstance(exchange, Exchange)
        assert exchange.outcome == "answered"
        assert exchange.response is not None
        assert exchange.response.version == version
        assert exchange.response.body == types.MetadataResponse(controller_id=3 if version else -1)
        assert exchange.response.client_id == "me"


def test_many_requests_may_be_under_way():
    asked = [(Side.CLIENT, made.metadata_request(number)) for number in range(5)]
    answered = [(Side.BROKER, made.metadata_response(number)) for number in range(5)]
    found = talk(*asked, *answered)
    assert [event.latency_ns for event in found if isinstance(event, Exchange)] == [5] * 5


def test_the_oldest_request_of_an_id_is_answered_first():
    conversation = Conversation()
    conversation.request(framed(made.metadata_request(1), 10))
    conversation.request(framed(made.heartbeat_request(1, "g"), 20))
    [first] = conversation.response(framed(made.metadata_response(1), 30))
    [second] = conversation.response(framed(made.heartbeat_response(1), 40))
    assert [exchange.first.api for exchange in (first, second)] == ["Metadata", "Heartbeat"]


def test_a_produce_that_asks_for_no_answer_is_one_way():
    request = frames.write_request(types.ProduceRequest(acks=0), 9, correlation_id=1)
    response = made.metadata_response(2)
    found = talk((Side.CLIENT, request), (Side.CLIENT, made.metadata_request(2)), (Side.BROKER, response))
    assert [event.outcome for event in found if isinstance(event, Exchange)] == ["one-way", "answered"]


def test_requests_without_a_response_are_told_at_the_end():
    [exchange] = talk((Side.CLIENT, made.metadata_request(1)))
    assert isinstance(exchange, Exchange)
    assert (exchange.outcome, exchange.latency_ns) == ("unanswered", None)


def test_a_response_without_its_request_has_no_name():
    conversation = Conversation()
    [exchange] = conversation.response(framed(made.metadata_response(9)))
    assert exchange.outcome == "unpaired"
    assert exchange.response is not None
    assert (exchange.response.name, exchange.response.correlation_id) == ("", 9)


def test_api_versions_falls_back_to_version_0():
    request = frames.write_request(types.ApiVersionsRequest(client_software_name="x"), 4, correlation_id=1)
    refused = types.ApiVersionsResponse(error_code=35, api_keys=(types.ApiVersionsResponse.ApiVersion(18, 0, 3),))
    [exchange] = talk((Side.CLIENT, request), (Side.BROKER, frames.write_response(refused, 0, correlation_id=1)))
    assert isinstance(exchange, Exchange)
    assert exchange.response is not None
    assert (exchange.response.version, exchange.response.error) == (0, None)
    assert exchange.response.body == refused


def test_api_versions_in_a_version_that_does_not_exist_yet():
    header = b"\x00\x12\x00\x63\x00\x00\x00\x01\x00\x02me\x00"
    request = frame(header + b"\x06otter\x021\x00\x00\x00")
    refused = types.ApiVersionsResponse(error_code=35)
    [exchange] = talk((Side.CLIENT, request), (Side.BROKER, frames.write_response(refused, 0, correlation_id=1)))
    assert isinstance(exchange, Exchange)
    assert exchange.request is not None
    assert exchange.request.client_id == "me"
    assert "there is no version 99" in str(exchange.request.error)
    assert exchange.response is not None
    assert exchange.response.body == refused


@pytest.mark.parametrize("version", [0, 2])
def test_versions_that_were_withdrawn_are_paired_but_not_read(version: int):
    request = frame(b"\x00\x00" + version.to_bytes(2, "big") + b"\x00\x00\x00\x05\x00\x02me" + bytes(10))
    found = talk((Side.CLIENT, request), (Side.BROKER, frame(b"\x00\x00\x00\x05" + bytes(20))))
    [exchange] = found
    assert isinstance(exchange, Exchange)
    assert exchange.outcome == "answered"
    assert exchange.first.name == "ProduceRequest"
    assert exchange.first.body is None


def test_an_api_that_is_not_known_does_not_put_the_stream_out_of_step():
    unknown = frame(b"\x00\x60\x00\x00\x00\x00\x00\x05\x00\x02me\x00\x00")
    found = talk(
        (Side.CLIENT, unknown),
        (Side.CLIENT, made.metadata_request(6)),
        (Side.BROKER, frame(b"\x00\x00\x00\x05rest")),
        (Side.BROKER, made.metadata_response(6)),
    )
    assert [event.first.name for event in found if isinstance(event, Exchange)] == ["Api96Request", "MetadataRequest"]


def test_half_a_request_still_says_what_it_was():
    message = read_request(Frame(made.metadata_request(1, "orders")[4:20], 60, 0, missing_bytes=40))
    assert (message.name, message.client_id, message.body) == ("MetadataRequest", "me", None)
    assert "40 bytes of the message are missing" in str(message.error)


def test_damaged_requests_are_told_and_reading_goes_on():
    broken = made.metadata_request(1, "orders")
    broken = broken[:-8] + b"\xff" * 8
    found = talk(
        (Side.CLIENT, broken),
        (Side.BROKER, made.metadata_response(1)),
        (Side.CLIENT, made.metadata_request(2)),
        (Side.BROKER, made.metadata_response(2)),
    )
    assert [event.first.error is None for event in found if isinstance(event, Exchange)] == [False, True]


def test_a_stream_that_is_out_of_step_is_searched():
    found = talk(
        (Side.CLIENT, made.metadata_request(1)),
        (Side.BROKER, made.metadata_response(1)),
        (Side.CLIENT, b"\x00\x00\x00\x0cgarbage bytes"),
        (Side.CLIENT, made.metadata_request(2)),
        (Side.BROKER, made.metadata_response(2)),
    )
    assert [type(event) for event in found] == [Exchange, Loss, Exchange]
    assert found[1] == Loss(Side.CLIENT, 0, 17, 3)


def test_tokens_follow_the_old_handshake_until_the_first_request():
    handshake = frames.write_request(types.SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), 0, correlation_id=1)
    accepted = frames.write_response(types.SaslHandshakeResponse(), 0, correlation_id=1)
    found = talk(
        (Side.CLIENT, handshake),
        (Side.BROKER, accepted),
        (Side.CLIENT, frame(b"n,,n=alice,r=nonce")),
        (Side.BROKER, frame(b"r=nonce,s=salt,i=4096")),
        (Side.CLIENT, frame(b"c=biws,r=nonce,p=proof")),
        (Side.BROKER, frame(b"v=signature")),
        (Side.CLIENT, made.metadata_request(2)),
        (Side.BROKER, made.metadata_response(2)),
    )
    names = [event.first.name for event in found if isinstance(event, Exchange)]
    assert names == ["SaslHandshakeRequest", SASL_TOKEN, SASL_TOKEN, "MetadataRequest"]


def test_the_newer_handshake_is_followed_by_ordinary_requests():
    handshake = frames.write_request(types.SaslHandshakeRequest(mechanism="PLAIN"), 1, correlation_id=1)
    accepted = frames.write_response(types.SaslHandshakeResponse(), 1, correlation_id=1)
    login = frames.write_request(types.SaslAuthenticateRequest(auth_bytes=b"\0a\0b"), 2, correlation_id=2)
    welcome = frames.write_response(types.SaslAuthenticateResponse(), 2, correlation_id=2)
    found = talk((Side.CLIENT, handshake), (Side.BROKER, accepted), (Side.CLIENT, login), (Side.BROKER, welcome))
    assert [event.first.api for event in found if isinstance(event, Exchange)] == ["SaslHandshake", "SaslAuthenticate"]


def test_a_refused_handshake_starts_no_tokens():
    conversation = Conversation()
    handshake = frames.write_request(types.SaslHandshakeRequest(mechanism="NONE"), 0, correlation_id=1)
    conversation.request(framed(handshake))
    conversation.response(
        framed(frames.write_response(types.SaslHandshakeResponse(error_code=33), 0, correlation_id=1))
    )
    assert not conversation.is_token_phase


def test_the_number_of_waiting_requests_is_bounded():
    conversation = Conversation(pending_max=3)
    ended = [e for number in range(5) for e in conversation.request(framed(made.metadata_request(number)))]
    assert [exchange.first.correlation_id for exchange in ended] == [0, 1]
    assert {exchange.outcome for exchange in ended} == {"unanswered"}
    assert len(conversation.pending) == 3


def test_the_bytes_of_waiting_requests_are_bounded_but_pairing_goes_on():
    conversation = Conversation(pending_bytes_max=60)
    for number in range(4):
        conversation.request(framed(made.metadata_request(number, "orders")))
    assert sum(len(message.frame.data) for message in conversation.pending) <= 60
    [exchange] = conversation.response(framed(made.metadata_response(0, "orders")))
    assert exchange.outcome == "answered"
    assert exchange.request is not None
    assert exchange.request.body is None
    assert exchange.request.size_bytes == len(made.metadata_request(0, "orders"))
    assert exchange.response is not None
    assert exchange.response.body is not None


def test_in_mid_stream_the_first_whole_request_is_found():
    tail = made.metadata_request(1, "a-topic-with-a-long-name")[15:]
    found = talk(
        (Side.CLIENT, tail + made.metadata_request(2)), (Side.BROKER, made.metadata_response(2)), in_sync=False
    )
    assert [type(event) for event in found] == [Loss, Exchange]


def test_a_response_is_found_by_the_id_that_is_waited_for():
    connection = Connection()
    connection.receive(Side.CLIENT, made.metadata_request(1) + made.metadata_request(2), 0)
    connection.receive_gap(Side.BROKER, 10, 0)
    lost_tail = made.metadata_response(1, "orders", brokers=3)[10:]
    found = connection.receive(Side.BROKER, lost_tail + made.metadata_response(2, "orders"), 0)
    assert [type(event) for event in found] == [Loss, Exchange]
    exchange = found[1]
    assert isinstance(exchange, Exchange)
    assert exchange.first.correlation_id == 2
