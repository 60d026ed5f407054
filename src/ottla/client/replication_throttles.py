"""Throttles of replication while partitions move: brokers have a rate, topics say which replicas it is for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from ottla.client.client import Client
from ottla.client.configs import Change, Operation, Resource, ResourceType, alter
from ottla.client.errors import ClientError
from ottla.client.replica_plan import Move
from ottla.client.topics import is_unknown

__all__ = ["end_throttle", "throttle"]

_RATES: Final = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
_LEADERS: Final = "leader.replication.throttled.replicas"
_FOLLOWERS: Final = "follower.replication.throttled.replicas"


async def throttle(client: Client, moves: Sequence[Move], bytes_per_second: int) -> None:
    """Let no broker send or fetch more than this of what moves. It takes ALTER_CONFIGS on cluster and topics."""
    by_topic: dict[str, list[Move]] = {}
    for move in moves:
        by_topic.setdefault(move.at.topic, []).append(move)
    for topic, moved in by_topic.items():
        changes = [
            Change(Operation.SET, _LEADERS, ",".join(_entries(moved, lambda move: move.before))),
            Change(Operation.SET, _FOLLOWERS, ",".join(_entries(moved, lambda move: move.added))),
        ]
        await alter(client, Resource(ResourceType.TOPIC, topic), changes)
    rates = [Change(Operation.SET, name, str(bytes_per_second)) for name in _RATES]
    for broker in _brokers(moves):
        await alter(client, Resource(ResourceType.BROKER, str(broker)), rates)


async def end_throttle(client: Client, moves: Sequence[Move]) -> None:
    """Remove what `throttle` has set. Of topics that are gone nothing is left; other failures do not keep the rest."""
    replicas = [Change(Operation.DELETE, name) for name in (_LEADERS, _FOLLOWERS)]
    rates = [Change(Operation.DELETE, name) for name in _RATES]
    topics = dict.fromkeys(move.at.topic for move in moves)
    ended = [(Resource(ResourceType.TOPIC, topic), replicas) for topic in topics]
    ended += [(Resource(ResourceType.BROKER, str(broker)), rates) for broker in _brokers(moves)]
    failure: ClientError | None = None
    for resource, changes in ended:
        try:
            await alter(client, resource, changes)
        except ClientError as error:
            if not is_unknown(error):
                failure = failure or error
    if failure is not None:
        raise failure


def _entries(moves: Iterable[Move], brokers: Callable[[Move], tuple[int, ...]]) -> Iterator[str]:
    return (f"{move.at.partition}:{broker}" for move in moves for broker in brokers(move))


def _brokers(moves: Iterable[Move]) -> list[int]:
    return sorted({broker for move in moves for broker in (*move.before, *move.after)})
