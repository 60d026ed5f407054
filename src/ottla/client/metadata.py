"""What a client knows about the cluster: its brokers, and the topics that somebody asked for.

Values only; who asks the cluster, and when, is the client's matter. A partition's leader is replaced only by one of a
later epoch (KIP-320), since brokers learn of elections at different times and any of them may be asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, Protocol

from ottla.client.address import Address, Peer
from ottla.wire.types.metadata import (
    MetadataResponse,
    MetadataResponseMetadataResponsePartition,
    MetadataResponseMetadataResponseTopic,
)

__all__ = ["NO_NODE", "Broker", "Metadata", "Partition", "Topic", "TopicPartition"]

NO_NODE: Final = -1
NO_TOPIC_ID: Final = bytes(16)


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class Broker(NamedTuple):
    node_id: int
    host: str
    port: int
    rack: str | None = None

    @property
    def peer(self) -> Peer:
        return Peer(Address(self.host, self.port), self.node_id)


class Partition(NamedTuple):
    partition: int
    leader: int
    """The node that leads; -1 while nobody does."""
    leader_epoch: int
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()
    offline_replicas: tuple[int, ...] = ()


class Topic(NamedTuple):
    name: str
    topic_id: bytes
    is_internal: bool
    partitions: Mapping[int, Partition]

    @property
    def available(self) -> list[int]:
        """The partitions that have a leader; all of them while none has, for then all have to be waited for."""
        led = [each.partition for each in self.partitions.values() if each.leader >= 0]
        return sorted(led or self.partitions)


class Endpoint(Protocol):
    """A broker's address, in the answers to Produce and Fetch as in Metadata's."""

    @property
    def node_id(self) -> int: ...
    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...
    @property
    def rack(self) -> str | None: ...


class Metadata:
    """The cache. Times are seconds on the monotonic clock."""

    def __init__(self) -> None:
        self.cluster_id: str | None = None
        self.controller_id = NO_NODE
        self.brokers: dict[int, Broker] = {}
        self.topics: dict[str, Topic] = {}
        self.refreshed_at_s = float("-inf")
        self._known_since_s: dict[str, float] = {}

    def take(self, answer: MetadataResponse, now_s: float, *, is_complete: bool = False) -> dict[str, int]:
        """Learn from an answer; gives the error codes of the topics that have one.

        With `is_complete`, there are no other topics.
        """
        self._take_brokers(answer, now_s)
        for gone in self.topics.keys() - {topic.name for topic in answer.topics} if is_complete else ():
            self.forget(gone)
        errors: dict[str, int] = {}
        for topic in answer.topics:
            name = topic.name or ""
            if topic.error_code:
                errors[name] = topic.error_code
                self.forget(name)
            else:
                self.topics[name] = _merged(self.topics.get(name), topic)
                self._known_since_s[name] = now_s
        return errors

    def _take_brokers(self, answer: MetadataResponse, now_s: float) -> None:
        self.cluster_id = answer.cluster_id
        self.controller_id = answer.controller_id
        self.refreshed_at_s = now_s
        if answer.brokers:  # a broker that has just started may know of none yet
            brokers = [Broker(each.node_id, each.host, each.port, each.rack) for each in answer.brokers]
            self.brokers = {broker.node_id: broker for broker in brokers}

    def since_s(self, name: str) -> float:
        """When the topic was last learned; minus infinity if it is not known."""
        return self._known_since_s.get(name, float("-inf"))

    def expire(self, name: str) -> None:
        """What is known about the topic is doubtful: ask before using it again."""
        self._known_since_s.pop(name, None)

    def expire_brokers(self) -> None:
        """Where the brokers are is doubtful."""
        self.refreshed_at_s = float("-inf")

    def forget(self, name: str) -> None:
        self.topics.pop(name, None)
        self.expire(name)

    def partition(self, at: TopicPartition) -> Partition | None:
        topic = self.topics.get(at.topic)
        return None if topic is None else topic.partitions.get(at.partition)

    def id_of(self, name: str) -> bytes:
        """The id for requests. Zeros for a topic that was forgotten meanwhile: the broker says that it is unknown."""
        topic = self.topics.get(name)
        return NO_TOPIC_ID if topic is None else topic.topic_id

    def name_of(self, topic_id: bytes) -> str | None:
        return next((topic.name for topic in self.topics.values() if topic.topic_id == topic_id), None)

    def learn_leader(self, at: TopicPartition, leader: int, leader_epoch: int, endpoints: Iterable[Endpoint]) -> bool:
        """Take the new leader that the answer to a Produce or Fetch names (KIP-951); False if it is no news."""
        known = self.partition(at)
        if known is None or leader == NO_NODE or leader_epoch <= known.leader_epoch:
            return False
        for each in endpoints:
            self.brokers[each.node_id] = Broker(each.node_id, each.host, each.port, each.rack)
        topic = self.topics[at.topic]
        moved = known._replace(leader=leader, leader_epoch=leader_epoch)
        self.topics[at.topic] = topic._replace(partitions={**topic.partitions, at.partition: moved})
        return leader in self.brokers


def _merged(known: Topic | None, answer: MetadataResponseMetadataResponseTopic) -> Topic:
    name = answer.name or ""
    # Of a topic that was deleted and created again, nothing that we knew is true any more.
    older = known.partitions if known is not None and known.topic_id == answer.topic_id else {}
    partitions = {
        each.partition_index: _later(older.get(each.partition_index), _partition(each)) for each in answer.partitions
    }
    return Topic(name, answer.topic_id, answer.is_internal, partitions)


def _later(known: Partition | None, heard: Partition) -> Partition:
    return known if known is not None and known.leader_epoch > heard.leader_epoch >= 0 else heard


def _partition(answer: MetadataResponseMetadataResponsePartition) -> Partition:
    return Partition(
        answer.partition_index,
        answer.leader_id,
        answer.leader_epoch,
        answer.replica_nodes,
        answer.isr_nodes,
        answer.offline_replicas,
    )
