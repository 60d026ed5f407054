"""The same conversation with two brokers at once: whatever one answers, the other has to answer, field by field.

A step is sent to both brokers. Ids that brokers make up (members', topics') are different at each; both sides call them
by the same symbol, which stands for the id of each side in what is sent and in what comes back.

Joins and syncs may be held back; both brokers must hold them back, and let them go at the same step. Nobody guesses by
the clock whether they do: `Side.settle` asks until everything before it is decided and its answers are sent.
"""

from __future__ import annotations

import re
import select
import socket
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ottla import wire
from ottla.wire import uuid_text
from ottla.wire.types import (
    ApiVersionsRequest,
    CreateTopicsRequest,
    DescribeGroupsRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    ListGroupsResponse,
    SyncGroupRequest,
)
from tests.component.broker.raw_client import Connection, RawClient, key_of

LATE_S = 20.0
"""So long an answer is waited for that has to come, before the broker is said to hold it back."""
ONE_THREAD = {"num.network.threads": "1", "num.io.threads": "1"}
"""What makes Apache Kafka handle requests in the order in which they come, over all connections."""
MAY_WAIT = (JoinGroupRequest, SyncGroupRequest)
SORTED_BY = ("memberId", "groupId", "name", "topic", "topicId", "partitionIndex", "key", "groupInstanceId")
MADE_UP = re.compile(r"^(.*)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
SETS = ("subscribedTopicNames", "partitions")
TEXTS = ("errorMessage", "message")
"""What is written for people differs (`error-texts`); whether there is something does not."""

Build = Callable[["Side"], object]


class Sent(NamedTuple):
    number: int
    """Of the step."""
    message: object
    version: int
    correlation_id: int


class Side:
    """One broker, the connections to it, and its ids by symbol."""

    def __init__(self, name: str, servers: str) -> None:
        host, _, port = servers.rpartition(":")
        self.name = name
        self.client = RawClient(host, int(port))
        self.ids: dict[str, str] = {}
        self.symbols: dict[str, str] = {servers: "SERVERS", port: "PORT"}
        self.port = int(port)
        self.own = ""
        """What the names of groups begin with that this conversation is about; there are others."""
        self._connections: dict[str, Connection] = {}
        self._sent: dict[str, Sent] = {}

    def id(self, symbol: str) -> str:
        """What this broker calls it; a symbol that nobody has named is sent as it is."""
        return self.ids.get(symbol, symbol)

    def call(self, symbol: str, actual: str) -> None:
        self.ids[symbol] = actual
        self.symbols[actual] = symbol

    def topic_id(self, symbol: str) -> bytes:
        return wire.uuid_bytes(self.ids[symbol]) if symbol in self.ids else bytes(15) + b"\1"

    def create_topic(self, name: str, partitions: int) -> None:
        topic = CreateTopicsRequest.CreatableTopic(name, partitions, 1)
        (answer,) = self.client.ask(CreateTopicsRequest((topic,), 10_000), 7).topics
        assert answer.error_code == 0, answer
        self.client._wait_for(name, partitions)
        self.call(f"id of {name}", uuid_text(answer.topic_id))

    def send(self, connection: str, step: Sent) -> None:
        if connection not in self._connections:
            opened = self._connections[connection] = self.client.connect(connection)
            opened.ask(ApiVersionsRequest(), 0)  # until it is answered, requests of other connections may overtake it
        correlation_id = self._connections[connection].send(step.message, step.version)
        self._sent[connection] = step._replace(correlation_id=correlation_id)

    def settle(self) -> None:
        """Return when all that was sent before is decided, and every answer to it that is not held back is there.

        A heartbeat of nobody is an event of the same coordinator, so it is answered after all that came before it, and
        after what that has written is committed. The first may overtake answers that leave in the same turn of the
        network thread, the second may not.
        """
        for _ in range(2):
            self.client.ask(HeartbeatRequest(self.own, 1, "nobody"), 4)

    def is_empty(self) -> bool:
        """Whether the group has no members, or is not there."""
        (group,) = self.client.ask(DescribeGroupsRequest((self.own,)), 5).groups
        return group.group_state in ("Empty", "Dead")

    def socket(self, client_id: str) -> socket.socket:
        return self._connections[client_id]._sock

    def has_answer(self, client_id: str, seconds: float) -> bool:
        return not self._connections[client_id].is_silent(seconds)

    def answer(self, client_id: str) -> tuple[Sent, Any]:
        sent = self._sent.pop(client_id)
        body = self._connections[client_id].receive(key_of(sent.message), sent.version, sent.correlation_id)
        return sent, body

    @property
    def waiting(self) -> list[str]:
        """Clients whose answers are held back."""
        return list(self._sent)

    def close(self) -> None:
        self.client.close_all()


class Different(AssertionError):
    """The brokers do not agree; the message has the whole conversation."""


class Conversation:
    """Both brokers, and what was said so far."""

    def __init__(self, ours: Side, theirs: Side) -> None:
        self.sides = (ours, theirs)
        self.log: list[str] = []
        self.number = 0
        """Of the last step."""
        self.joined: set[str] = set()
        """Symbols of members that were let in."""
        self.leader = ""
        self.generation = 0

    @property
    def waiting(self) -> list[str]:
        return self.sides[0].waiting

    def say(self, client_id: str, version: int, build: Build) -> Any:
        """Send a request to both; the answer of ours (which theirs equals), or None if it is held back."""
        self.number += 1
        requests = [build(side) for side in self.sides]
        must_answer = not isinstance(requests[0], MAY_WAIT) or self._begins_a_group(requests[0])
        self.log.append(f"{self.number:3} {client_id} > v{version} {_shown(requests[0], version, self.sides[0])}")
        for side, request in zip(self.sides, requests, strict=True):
            side.send(client_id, Sent(self.number, request, version, 0))
        answers = {client_id: self._take_from_both(client_id)} if must_answer else {}
        if self.waiting:
            for side in self.sides:
                side.settle()
        while (answered := self._answered_client(client_id)) is not None:
            answers[answered] = self._take_from_both(answered)
        return answers.get(client_id)

    def _begins_a_group(self, request: object) -> bool:
        """The first join of an empty group is the one that no event answers but a timer, even where the initial delay
        is 0: who asks meanwhile may be answered before or after it. So it is waited for, and nobody asks meanwhile."""
        return isinstance(request, JoinGroupRequest) and self.sides[0].is_empty()

    def _answered_client(self, first: str) -> str | None:
        """A client whom at least one broker has answered: the one that asked last before others."""
        sockets = {side.socket(client_id): client_id for side in self.sides for client_id in self.waiting}
        ready, _, _ = select.select([*sockets], [], [], 0)
        client_ids = {sockets[each] for each in ready}
        return first if first in client_ids else min(client_ids, default=None)

    def _take_from_both(self, client_id: str) -> Any:
        self._wait_for_both(client_id)
        return self._take(client_id)

    def _wait_for_both(self, client_id: str) -> None:
        deadline = time.monotonic() + LATE_S
        for side in self.sides:
            if not side.has_answer(client_id, max(0.01, deadline - time.monotonic())):
                other = next(each for each in self.sides if each is not side)
                _, body = other.answer(client_id)
                self.log.append(f"    {client_id} < {other.name} alone: {body}")
                raise self._different(f"{side.name} holds the answer back")

    def _take(self, client_id: str) -> Any:
        bodies = []
        shown = []
        for side in self.sides:
            sent, body = side.answer(client_id)
            member_id = getattr(body, "member_id", None)
            if isinstance(body, JoinGroupResponse) and member_id and member_id not in side.symbols:
                side.call(f"M{sent.number}", member_id)
            bodies.append(body)
            shown.append(canonical(body, sent.version, side))
        ours, theirs = shown
        if ours != theirs:
            self.log.append(f"    {client_id} < {self.sides[0].name}: {ours}")
            self.log.append(f"    {client_id} < {self.sides[1].name}: {theirs}")
            raise self._different("the answers differ: " + "; ".join(differences(ours, theirs)))
        self.log.append(f"    {client_id} < {theirs}")
        if isinstance(bodies[0], JoinGroupResponse) and not bodies[0].error_code:
            self.joined.add(theirs["memberId"])
            self.leader, self.generation = theirs["leader"], theirs["generationId"]
        return bodies[0]

    def _different(self, what: str) -> Different:
        return Different("\n".join([what, *self.log]))


def canonical(body: Any, version: int, side: Side) -> Any:
    """An answer as plain values that both brokers would give."""
    shown = wire.to_json(body, version)
    if isinstance(body, ListGroupsResponse):
        shown["groups"] = [each for each in shown["groups"] if each["groupId"].startswith(side.own)]
    return _masked(shown, side)


def _masked(value: Any, side: Side) -> Any:
    if isinstance(value, Mapping):
        return {key: _field(key, each, side) for key, each in value.items()}
    if isinstance(value, list):
        items = [_masked(each, side) for each in value]
        return sorted(items, key=_sort_key) if items and isinstance(items[0], Mapping) else items
    return _symbol(value, side) if isinstance(value, str) else value


def _symbol(text: str, side: Side) -> str:
    """An id that is told to others before its owner has heard of it is known by what it begins with."""
    return side.symbols.get(text) or MADE_UP.sub(r"new \1", text)


def _field(key: str, value: Any, side: Side) -> Any:
    if key in TEXTS and isinstance(value, str):
        return "text" if value else ""
    if key == "port" and value == side.port:
        return "PORT"
    if key in SETS and value and not isinstance(value[0], Mapping):
        return sorted(value)
    return _masked(value, side)


def _sort_key(item: Mapping[str, Any]) -> list[str]:
    return [f"{item[key]:>12}" for key in SORTED_BY if item.get(key) is not None]


def differences(ours: Any, theirs: Any, path: str = "") -> list[str]:
    """Where two plain values differ."""
    if isinstance(ours, dict) and isinstance(theirs, dict) and ours.keys() == theirs.keys():
        return [each for key in ours for each in differences(ours[key], theirs[key], f"{path}.{key}")]
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        pairs = enumerate(zip(ours, theirs, strict=True))
        return [each for at, (a, b) in pairs for each in differences(a, b, f"{path}[{at}]")]
    return [] if ours == theirs else [f"{path}: ottla {ours!r}, Apache Kafka {theirs!r}"]


def _shown(request: object, version: int, side: Side) -> str:
    return f"{type(request).__name__} {_masked(wire.to_json(request, version), side)}"
