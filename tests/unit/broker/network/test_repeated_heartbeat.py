"""Heartbeats that say the same again: each is answered as if it were the first."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ottla import wire
from ottla.broker.network.dispatch import Api, Dispatch
from ottla.broker.network.repeated_heartbeat import REPEATED_MAX_BYTES
from ottla.wire import frames
from ottla.wire.types import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse

KEY = 68
ANSWER = ConsumerGroupHeartbeatResponse(member_id="m", member_epoch=3)


class Client:
    """A connection, and what is answered to it."""

    def __init__(self) -> None:
        api = Api(KEY, "ConsumerGroupHeartbeat", 0, 1, lambda node, request: ANSWER, lambda *_: None)
        self.offered_apis = {KEY}
        self.client_id = ""
        self.repeated_heartbeat = None
        self._dispatch = Dispatch(SimpleNamespace(), lambda key, is_unstable: api)

    def read(self, message: Any, version: int = 1, correlation_id: int = 1, client_id: str = "c") -> Any:
        frame = frames.write_request(message, version, correlation_id=correlation_id, client_id=client_id)
        request, self._api = self._dispatch.read(self, frame[frames.SIZE_BYTES :], 0)
        return request

    def write(self, request: Any, answer: Any = ANSWER) -> tuple[int, Any]:
        """The correlation id of the response, and the answer that is in it."""
        (frame,) = self._dispatch.write(self._api, request, answer)
        response = frames.read_response(bytes(frame)[frames.SIZE_BYTES :], KEY, request.version)
        return response.header.correlation_id, response.body


def heartbeat(epoch: int = 3, topics: tuple[str, ...] | None = None) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest("g", "m", epoch, subscribed_topic_names=topics)


@pytest.fixture
def client() -> Client:
    return Client()


def decoded(client: Client, monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The bodies that are decoded from now on."""
    found: list[bytes] = []
    decoder = wire.decoder

    def counted(name: str, version: int) -> Any:
        decode = decoder(name, version)

        def count(data: bytes, start: int, whole: bool) -> Any:
            found.append(data[start:])
            return decode(data, start, whole)

        return count

    monkeypatch.setattr(wire, "decoder", counted)
    return found


def test_each_answer_belongs_to_its_request(client: Client):
    for correlation_id in (1, 2, 2**31 - 1, -1):
        request = client.read(heartbeat(), correlation_id=correlation_id)
        assert (request.body, request.client_id, request.version) == (heartbeat(), "c", 1)
        assert client.write(request) == (correlation_id, ANSWER)


def test_what_is_said_again_is_not_decoded_again(client: Client, monkeypatch: pytest.MonkeyPatch):
    bodies = decoded(client, monkeypatch)
    for number, message in enumerate([heartbeat(3)] * 4 + [heartbeat(4)] * 4 + [heartbeat(3)]):
        assert client.read(message, correlation_id=number).body == message
    # The first frame of a client id is read with its whole header, before anything is remembered.
    assert len(bodies) == 4


def test_a_client_of_another_name_is_known_by_it(client: Client):
    for name in ("c", "c", "d", "d", "c"):
        assert (client.read(heartbeat(), client_id=name).client_id, client.client_id) == (name, name)


def test_another_version_is_read_and_written_in_it(client: Client):
    for version in (1, 1, 0, 0, 1):
        request = client.read(heartbeat(), version)
        assert (request.version, client.write(request)) == (version, (1, ANSWER))


def test_another_answer_is_written(client: Client):
    for epoch in (3, 3, 4, 4, 3):
        answer = ConsumerGroupHeartbeatResponse(member_id="m", member_epoch=epoch)
        for _ in range(2):
            assert client.write(client.read(heartbeat()), answer) == (1, answer)


def test_long_heartbeats_are_not_kept(client: Client):
    message = heartbeat(topics=tuple(f"topic-{number}" for number in range(REPEATED_MAX_BYTES // 8)))
    for _ in range(3):
        assert client.read(message).body == message
    assert client.repeated_heartbeat is None
