"""Requests in which many can be asked for together: while one is under way, others gather for the next.

A broker handles the requests of a connection one after the other. So whoever has many things to ask of a broker, each
of which takes a while, asks for all of them at once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from typing import Any, Final, Generic, NamedTuple, TypeVar

from ottla.broker.peers.broker_connections import Brokers, Done

__all__ = ["GatheredRequests"]

PARTS_MAX: Final = 500

Part = TypeVar("Part")


class _Asked(NamedTuple, Generic[Part]):
    part: Part
    done: Done


class _Lane(Generic[Part]):
    """What is asked of a broker and may go together."""

    __slots__ = ("is_busy", "queued")

    def __init__(self) -> None:
        self.queued: list[_Asked[Part]] = []
        self.is_busy = False


class GatheredRequests(Generic[Part]):
    def __init__(
        self,
        brokers: Brokers,
        versions: tuple[int, int],
        combine: Callable[[Sequence[Part]], object],
        subjects: Callable[[Part], Collection[Hashable]],
    ) -> None:
        """`combine` makes a request of parts. No two parts of a request have a subject in common; the later waits."""
        self._brokers = brokers
        self._versions = versions
        self._combine = combine
        self._subjects = subjects
        self._lanes: dict[tuple[int, Hashable], _Lane[Part]] = {}

    def ask(self, broker_id: int, part: Part, done: Done, *, lane: Hashable = None) -> None:
        """Ask a broker; `done` gets the response to the request with this part, or a PeerError.

        Only parts of one lane go together, and lanes do not wait for each other.
        """
        key = (broker_id, lane)
        found = self._lanes.setdefault(key, _Lane())
        found.queued.append(_Asked(part, done))
        if not found.is_busy:
            self._send(key, found)

    def _send(self, key: tuple[int, Hashable], lane: _Lane[Part]) -> None:
        asked = self._take(lane)
        if not asked:
            del self._lanes[key]
            return
        lane.is_busy = True

        def answered(response: Any) -> None:  # noqa: ANN401
            lane.is_busy = False
            self._send(key, lane)
            for each in asked:
                each.done(response)

        self._brokers.send(key[0], self._combine([each.part for each in asked]), self._versions, answered)

    def _take(self, lane: _Lane[Part]) -> list[_Asked[Part]]:
        """The parts of the next request, in the order in which they came."""
        taken: list[_Asked[Part]] = []
        left: list[_Asked[Part]] = []
        named: set[Hashable] = set()
        for each in lane.queued:
            subjects = self._subjects(each.part)
            is_next = len(taken) < PARTS_MAX and named.isdisjoint(subjects)
            (taken if is_next else left).append(each)
            named.update(subjects)
        lane.queued = left
        return taken
