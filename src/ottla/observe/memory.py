"""The memory of the probes: which groups and topics exist, and how far `__share_group_state` was read. All of it is
bounded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ottla.client import Client, TopicPartition
from ottla.client.errors import ClientError
from ottla.client.groups import ListedGroup
from ottla.client.metadata import Topic
from ottla.health.series import LruDict
from ottla.observe.changes import Presence
from ottla.observe.probe_result import error_of

__all__ = ["Bounds", "Memory", "ProbeContext", "by_coordinator", "rounds"]

TIMED_PARTITIONS: Final = 100_000


class Bounds(NamedTuple):
    """Limits on how much is probed."""

    groups: int = 10_000
    partitions_per_round: int = 200
    """How many partitions one request names."""
    open_partitions: int = 10_000
    """How many partitions are searched for hanging transactions."""


class RecordTime(NamedTuple):
    """The timestamp of the record at which a group is, and when it was read."""

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
    """When topology descriptions were last requested."""
    descriptions: dict[str, str] = field(default_factory=dict)
    committed_partitions: set[TopicPartition] = field(default_factory=set)
    """The partitions for which groups had committed offsets, at the last probe."""
    times: LruDict[tuple[str, TopicPartition], RecordTime] = field(default_factory=lambda: LruDict(TIMED_PARTITIONS))
    counted: dict[str, set[str]] = field(default_factory=dict)
    """The share groups on each page of metrics, at the last probe."""
    tail: dict[TopicPartition, int] = field(default_factory=dict)
    """The next offset to read of each partition of `__share_group_state`."""

    def topic_id(self, name: str) -> bytes | None:
        topic = self.topics.get(name)
        return topic.topic_id if topic is not None else None


class ProbeContext(NamedTuple):
    """The arguments of a probe: the client, the memory, the time and the limits."""

    client: Client
    memory: Memory
    now_ms: int
    bounds: Bounds = Bounds()
    metrics: tuple[str, ...] = ()
    """URLs of the metrics pages of ottla brokers."""

    def error_of(self, error: ClientError) -> str:
        return error_of(error, is_connected=self.client.is_connected)


def by_coordinator(groups: Iterable[ListedGroup], at_a_time: int = 100) -> Iterator[tuple[int, list[str]]]:
    """Groups by the node that coordinates them, at most `at_a_time` for one request."""
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
