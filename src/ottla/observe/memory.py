"""What looks tell each other: which groups and topics there are, and where a tail was read to. All of it is bounded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ottla.client import Client, TopicPartition
from ottla.client.errors import ClientError
from ottla.client.groups import ListedGroup
from ottla.client.metadata import Topic
from ottla.health.series import Shelf
from ottla.observe.changes import Presence
from ottla.observe.sighting import error_of

__all__ = ["Bounds", "Memory", "Moment", "by_coordinator", "rounds"]

TIMED_PARTITIONS: Final = 100_000


class Bounds(NamedTuple):
    """How much is looked at."""

    groups: int = 10_000
    partitions_per_round: int = 200
    """How many partitions are asked for at once."""
    open_partitions: int = 10_000
    """How many partitions are searched for transactions that nobody knows of."""


class Timed(NamedTuple):
    """The time of a record that a group has committed, and when it was read."""

    offset: int
    time_ms: int | None
    read_at_ms: int


@dataclass
class Memory:
    groups: list[ListedGroup] = field(default_factory=list)
    topics: Mapping[str, Topic] = field(default_factory=dict)
    apis: dict[str, int] = field(default_factory=dict)
    """The highest version of each API that all nodes have, as last seen."""
    features: Mapping[str, int] = field(default_factory=dict)
    groups_present: Presence = field(default_factory=lambda: Presence("group"))
    topics_present: Presence = field(default_factory=lambda: Presence("topic"))
    transactions_present: Presence = field(default_factory=lambda: Presence("transaction"))
    described_at_ms: int | None = None
    """When the descriptions of topologies were last asked for."""
    descriptions: dict[str, str] = field(default_factory=dict)
    committed_places: set[TopicPartition] = field(default_factory=set)
    """The partitions that groups had committed offsets of, when last seen."""
    times: Shelf[tuple[str, TopicPartition], Timed] = field(default_factory=lambda: Shelf(TIMED_PARTITIONS))
    counted: dict[str, set[str]] = field(default_factory=dict)
    """The share groups that each page of metrics told of, when last read."""
    tail: dict[TopicPartition, int] = field(default_factory=dict)
    """Where the share groups' state was read to."""

    def topic_id(self, name: str) -> bytes | None:
        topic = self.topics.get(name)
        return topic.topic_id if topic is not None else None


class Moment(NamedTuple):
    """What a look has at hand."""

    client: Client
    memory: Memory
    now_ms: int
    bounds: Bounds = Bounds()
    metrics: tuple[str, ...] = ()
    """Pages with the numbers of ottla brokers."""

    def error_of(self, error: ClientError) -> str:
        return error_of(error, is_connected=self.client.is_connected)


def by_coordinator(groups: Iterable[ListedGroup], at_a_time: int = 100) -> Iterator[tuple[int, list[str]]]:
    """Groups by the node that coordinates them, so many at a time as one request may name."""
    nodes: dict[int, list[str]] = {}
    for each in groups:
        nodes.setdefault(each.coordinator, []).append(each.group_id)
    for node_id, names in nodes.items():
        for begin in range(0, len(names), at_a_time):
            yield node_id, names[begin : begin + at_a_time]


def rounds(partitions: Iterable[TopicPartition], size: int) -> Iterator[list[TopicPartition]]:
    ordered = sorted(set(partitions))
    for begin in range(0, len(ordered), size):
        yield ordered[begin : begin + size]
