"""The way between clients and the coordinator: slow, and at times unreliable.

Requests of one client arrive in the order in which they were sent, as on a connection. Faults, each with its own
chance:

* a request is lost, or its answer is: the client hears nothing and gives up after its time-out;
* a request arrives twice, one behind the other; who sent it hears the answer to the first;
* a request arrives *late*: the client gave it up long ago and has asked again on another connection.

The last one breaks the order on which the newer protocols rest (a heartbeat tells what a member owns), so worlds choose
whether it happens; invariants about what clients believe do not hold in those.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import msgspec

from ottla import wire
from ottla.wire.index import MESSAGES

__all__ = ["Chances", "Network", "Parcel"]

Then = Callable[[Any], None]
"""Takes the answer, or None if there was none in time."""


class Chances(msgspec.Struct, frozen=True):
    """How likely a message meets each fault, from 0 to 1."""

    request_lost: float = 0.0
    answer_lost: float = 0.0
    doubled: float = 0.0
    late: float = 0.0
    slow: float = 0.0
    """An answer that takes seconds."""


class Sender(Protocol):
    @property
    def name(self) -> str: ...


class Parcel(NamedTuple):
    """A request under way, and who waits for its answer."""

    number: int
    sender: str
    version: int
    request: Any
    is_echo: bool = False
    """It arrives for the second time, and nobody waits for the answer."""


class Surface(Protocol):
    """The world, as far as the network needs it."""

    def now_ms(self) -> int: ...
    def after(self, delay_ms: int, action: Callable[[], None]) -> None: ...
    def deliver(self, parcel: Parcel) -> None: ...
    def note(self, line: str) -> None: ...
    def note_fault(self, kind: str, detail: str) -> None: ...


class Network:
    def __init__(self, surface: Surface, chance: random.Random) -> None:
        self.chances = Chances()
        self._surface = surface
        self._random = chance
        self._waiting: dict[int, Then] = {}
        self._numbers = 0
        self._arrives_at_ms: dict[str, int] = {}
        """By client: nothing that is sent later may arrive before this."""

    def send(self, sender: str, request: Any, version: int, then: Then, timeout_ms: int) -> None:  # noqa: ANN401
        self._numbers += 1
        parcel = Parcel(self._numbers, sender, version, _through_codec(request, version))
        self._waiting[parcel.number] = then
        self._surface.note(f"{sender} -> {type(request).__name__.removesuffix('Request')} #{parcel.number}")
        self._surface.after(timeout_ms, lambda: self._give_up(parcel.number))
        self._carry(parcel)

    def _carry(self, parcel: Parcel) -> None:
        chances, draw = self.chances, self._random.random
        if draw() < chances.request_lost:
            self._surface.note_fault("request lost", f"#{parcel.number}")
            return
        if draw() < chances.late:
            self._surface.note_fault("request late", f"#{parcel.number}")
            self._surface.after(self._random.randint(2_000, 20_000), lambda: self._surface.deliver(parcel))
            return
        at_ms = max(self._surface.now_ms() + self._random.randint(0, 20), self._arrives_at_ms.get(parcel.sender, 0))
        self._arrives_at_ms[parcel.sender] = at_ms
        delay_ms = at_ms - self._surface.now_ms()
        self._surface.after(delay_ms, lambda: self._surface.deliver(parcel))
        if draw() < chances.doubled:
            self._surface.note_fault("request doubled", f"#{parcel.number}")
            self._surface.after(delay_ms, lambda: self._surface.deliver(parcel._replace(is_echo=True)))

    def answer(self, parcel: Parcel, message: Any) -> None:  # noqa: ANN401
        """Bring an answer back to whoever sent the request."""
        chances, draw = self.chances, self._random.random
        if parcel.is_echo:
            return
        if draw() < chances.answer_lost:
            self._surface.note_fault("answer lost", f"#{parcel.number}")
            return
        delay_ms = self._random.randint(0, 20)
        if draw() < chances.slow:
            delay_ms = self._random.randint(500, 8_000)
            self._surface.note_fault("answer slow", f"#{parcel.number}")
        self._surface.after(delay_ms, lambda: self._arrive(parcel.number, message))

    def _arrive(self, number: int, message: Any) -> None:  # noqa: ANN401
        then = self._waiting.pop(number, None)
        if then is not None:  # else it was given up, or was answered already
            then(message)

    def _give_up(self, number: int) -> None:
        then = self._waiting.pop(number, None)
        if then is not None:
            then(None)

    def forget(self, sender: str) -> None:
        """A client is gone; what it sent may still arrive."""
        self._arrives_at_ms.pop(sender, None)


def _through_codec(message: Any, version: int) -> Any:  # noqa: ANN401
    """As the other side reads it. Requests of our own do not travel."""
    name = type(message).__name__
    return wire.decode(name, version, wire.encode(message, version)) if name in MESSAGES else message
