"""Internal topics that members need: who waits for them, which are being created, and which could not be.

A heartbeat that finds topics missing asks the edge to create them once its records are committed, and is answered when
they are there, at most `WAIT_MS` later; so the member's next heartbeat has tasks. A topic that is being created is not
asked for twice. One that could not be created is tried again after two heartbeat intervals; until then the error stands
in the status of every member.

All of it is soft: after a restart members ask again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import count
from typing import Any, Final, NamedTuple

from ottla.core.coordinator.contract import Context
from ottla.core.groups.streams.effects import InternalTopic
from ottla.wire.access import CLUSTER_NAME, Operation, ResourceType
from ottla.wire.types.streams_group_heartbeat import StreamsGroupHeartbeatResponse

__all__ = ["WAIT_MS", "Creations", "Waiting", "denied_topics"]

WAIT_MS: Final = 1_000
_ERRORS_AT_MOST: Final = 3


class Waiting(NamedTuple):
    """A heartbeat whose answer waits for its topics, or only for its records."""

    token: Any
    response: StreamsGroupHeartbeatResponse
    topics: tuple[InternalTopic, ...]
    heartbeat_interval_ms: int


class Creations:
    def __init__(self) -> None:
        self._numbers = count(1)
        self._in_flight: set[str] = set()
        self._failed: dict[str, tuple[str, int]] = {}
        """The reason, and until when it is remembered."""
        self.waiting: dict[int, Waiting] = {}

    def wanted(self, missing: Iterable[InternalTopic], now_ms: int) -> tuple[InternalTopic, ...]:
        """Those to be asked for now."""
        self._forget_failures(now_ms)
        return tuple(each for each in missing if each.name not in self._in_flight and each.name not in self._failed)

    def errors(self, missing: Iterable[InternalTopic], now_ms: int) -> list[str]:
        """Why some could not be created lately."""
        self._forget_failures(now_ms)
        return [self._failed[each.name][0] for each in missing if each.name in self._failed][:_ERRORS_AT_MOST]

    def _forget_failures(self, now_ms: int) -> None:
        self._failed = {name: failed for name, failed in self._failed.items() if failed[1] > now_ms}

    def wait(self, waiting: Waiting) -> int:
        number = next(self._numbers)
        self.waiting[number] = waiting
        self._in_flight.update(each.name for each in waiting.topics)
        return number

    def ended(self, topics: Iterable[InternalTopic], errors: Mapping[str, str], until_ms: int) -> None:
        """Topics are no longer under way; `errors` are remembered until then."""
        names = {each.name for each in topics}
        self._in_flight -= names
        self._failed.update({name: (text, until_ms) for name, text in errors.items() if name in names})


def denied_topics(topics: Iterable[InternalTopic], context: Context) -> list[str]:
    """Those that the member must not create. CREATE on the cluster is good for all."""
    if context.authorize(Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME):
        return []
    return [each.name for each in topics if not context.authorize(Operation.CREATE, ResourceType.TOPIC, each.name)]
