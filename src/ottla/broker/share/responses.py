"""Parts that the responses to ShareFetch and ShareAcknowledge have in common."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeVar

from ottla.broker.network.request import Request
from ottla.broker.replicas.lookup import Endpoint, Leader
from ottla.broker.share.edge import Edge
from ottla.core.share.sessions import Partition
from ottla.wire.errors import ErrorCode

__all__ = ["Leaders", "by_topic"]

_MOVED: Final = frozenset([ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH])
_NONE: Final = Leader(0, 0)
"""What an answer has where no leader is named."""

Data = TypeVar("Data")


class Leaders:
    """The current leaders of partitions that other nodes lead, and their endpoints."""

    def __init__(self, edge: Edge, request: Request) -> None:
        self._edge = edge
        self._request = request
        self._ids: set[int] = set()

    def named(self, where: Partition, *errors: ErrorCode) -> Leader:
        """The leader of a partition, if one of these errors says that it is not here."""
        if _MOVED.isdisjoint(errors):
            return _NONE
        name = self._edge.topic_name(where[0])
        if name is None:
            return _NONE
        leader = self._edge.leader_of(name, where[1])
        self._ids.add(leader.leader_id)
        return leader

    def endpoints(self) -> Iterable[Endpoint]:
        return self._edge.endpoints(self._request, self._ids) if self._ids else ()


def by_topic(answered: Iterable[tuple[Partition, Data]]) -> list[tuple[bytes, tuple[Data, ...]]]:
    """The entries of partitions, grouped by topic id."""
    topics: dict[bytes, list[Data]] = {}
    for (topic_id, _), data in answered:
        topics.setdefault(topic_id, []).append(data)
    return [(topic_id, tuple(partitions)) for topic_id, partitions in topics.items()]
