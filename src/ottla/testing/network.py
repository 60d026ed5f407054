"""The network between clients and the coordinator, which is slow and sometimes unreliable.

Requests of one client arrive in the order in which they were sent, as on a connection. The faults, each with its own
probability:

* a request or its response is lost: the client gets nothing and gives up after its timeout;
* a request arrives twice in a row; the sender gets the response to the first;
* a request arrives *late*: the client has given it up long ago and has sent it again on another connection.

The last one breaks the order that the newer protocols rely on (a heartbeat lists what a member owns), so worlds choose
whether it happens; then invariants about what clients believe do not hold.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import msgspec

from ottla import wire
from ottla.wire.index import MESSAGES

__all__ = ["Chances", "InFlightRequest", "Network"]

Then = Callable[[Any], None]
"""Takes the response, or None if there was none in time."""


class Chances(msgspec.Struct, frozen=True):
    """The probability of each fault for a message, from 0 to 1."""

    request_lost: float = 0.0
    answer_lost: float = 0.0
    doubled: float = 0.0
    late: float = 0.0
    slow: float = 0.0
    """A response that takes seconds."""


class Sender(Protocol):
    @property
    def name(self) -> str: ...


class InFlightRequest(NamedTuple):
    """A request in flight, and its sender."""

    number: int
    sender: str
    version: int
    request: Any
    is_echo: bool = False
    """Whether it arrives for the second time, so that its response is ignored."""


class NetworkPorts(Protocol):
    """The ports of the network to its world."""

    def now_ms(self) -> int: ...
    def after(self, delay_ms: int, action: Callable[[], None]) -> None: ...
    def deliver(self, in_flight: InFlightRequest) -> None: ...
    def note(self, line: str) -> None: ...
    def note_fault(self, kind: str, detail: str) -> None: ...


class Network:
    def __init__(self, surface: NetworkPorts, chance: random.Random) -> None:
        self.chances = Chances()
        self._surface = surface
        self._random = chance
        self._waiting: dict[int, Then] = {}
        self._numbers = 0
        self._arrives_at_ms: dict[str, int] = {}
        """Client -> when its last request arrives: later ones must not arrive before."""

    def send(self, sender: str, request: Any, version: int, then: Then, timeout_ms: int) -> None:  # noqa: ANN401
        self._numbers += 1
        in_flight = InFlightRequest(self._numbers, sender, version, _through_codec(request, version))
        self._waiting[in_flight.number] = then
        self._surface.note(f"{sender} -> {type(request).__name__.removesuffix('Request')} #{in_flight.number}")
        self._surface.after(timeout_ms, lambda: self._give_up(in_flight.number))
        self._carry(in_flight)

    def _carry(self, in_flight: InFlightRequest) -> None:
        chances, draw = self.chances, self._random.random
        if draw() < chances.request_lost:
            self._surface.note_fault("request lost", f"#{in_flight.number}")
            return
        if draw() < chances.late:
            self._surface.note_fault("request late", f"#{in_flight.number}")
            self._surface.after(self._random.randint(2_000, 20_000), lambda: self._surface.deliver(in_flight))
            return
        at_ms = max(self._surface.now_ms() + self._random.randint(0, 20), self._arrives_at_ms.get(in_flight.sender, 0))
        self._arrives_at_ms[in_flight.sender] = at_ms
        delay_ms = at_ms - self._surface.now_ms()
        self._surface.after(delay_ms, lambda: self._surface.deliver(in_flight))
        if draw() < chances.doubled:
            self._surface.note_fault("request doubled", f"#{in_flight.number}")
            self._surface.after(delay_ms, lambda: self._surface.deliver(in_flight._replace(is_echo=True)))

    def answer(self, in_flight: InFlightRequest, message: Any) -> None:  # noqa: ANN401
        """Carry a response back to the sender of the request."""
        chances, draw = self.chances, self._random.random
        if in_flight.is_echo:
            return
        if draw() < chances.answer_lost:
            self._surface.note_fault("answer lost", f"#{in_flight.number}")
            return
        delay_ms = self._random.randint(0, 20)
        if draw() < chances.slow:
            delay_ms = self._random.randint(500, 8_000)
            self._surface.note_fault("answer slow", f"#{in_flight.number}")
        self._surface.after(delay_ms, lambda: self._arrive(in_flight.number, message))

    def _arrive(self, number: int, message: Any) -> None:  # noqa: ANN401
        then = self._waiting.pop(number, None)
        if then is not None:  # else the client has given up, or has a response already
            then(message)

    def _give_up(self, number: int) -> None:
        then = self._waiting.pop(number, None)
        if then is not None:
            then(None)

    def forget(self, sender: str) -> None:
        """A client is gone; its requests may still arrive."""
        self._arrives_at_ms.pop(sender, None)


def _through_codec(message: Any, version: int) -> Any:  # noqa: ANN401
    """A message as the other side decodes it. Requests that are not Kafka's are passed unchanged."""
    name = type(message).__name__
    return wire.decode(name, version, wire.encode(message, version)) if name in MESSAGES else message
