"""The internal topics, in which coordinators keep their state: their settings and their creation.

Apache Kafka tells the first client to retry and creates the topic meanwhile. Here the first request waits until the
topic exists, unless no controller is found within a second. The topic gets as many replicas as the setting says, but
no more than there are brokers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, NamedTuple

from ottla.broker.controller.channel import SEARCH_MS
from ottla.broker.coordinators.ports import TopicCreation
from ottla.wire.errors import ErrorCode
from ottla.wire.types.create_topics import (
    CreateTopicsRequest,
    CreateTopicsRequestCreatableTopic,
    CreateTopicsResponse,
)

__all__ = ["ALL", "GROUPS", "SHARE_STATE", "TRANSACTIONS", "InternalTopic", "InternalTopics"]

_CREATE_VERSION: Final = 7


class InternalTopic(NamedTuple):
    """An internal topic, and the broker settings for its partitions, replicas and segments."""

    name: str
    partitions: str
    replication: str
    write_timeout: str
    compression: str | None
    configs: Mapping[str, str]
    """Setting of the topic -> its value, or the setting of the broker that has it in angle brackets."""


GROUPS: Final = InternalTopic(
    "__consumer_offsets",
    "offsets.topic.num.partitions",
    "offsets.topic.replication.factor",
    "offsets.commit.timeout.ms",
    "offsets.topic.compression.codec",
    {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": "<offsets.topic.segment.bytes>",
    },
)
TRANSACTIONS: Final = InternalTopic(
    "__transaction_state",
    "transaction.state.log.num.partitions",
    "transaction.state.log.replication.factor",
    "request.timeout.ms",
    None,
    {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "min.insync.replicas": "<transaction.state.log.min.isr>",
        "segment.bytes": "<transaction.state.log.segment.bytes>",
        "unclean.leader.election.enable": "false",
    },
)
SHARE_STATE: Final = InternalTopic(
    "__share_group_state",
    "share.coordinator.state.topic.num.partitions",
    "share.coordinator.state.topic.replication.factor",
    "share.coordinator.write.timeout.ms",
    "share.coordinator.state.topic.compression.codec",
    {
        # Never compacted: a snapshot and the updates that follow it have the same key. What is older is pruned.
        "cleanup.policy": "delete",
        "compression.type": "producer",
        "min.insync.replicas": "<share.coordinator.state.topic.min.isr>",
        "retention.ms": "-1",
        "segment.bytes": "<share.coordinator.state.topic.segment.bytes>",
    },
)

ALL: Final = {topic.name: topic for topic in (GROUPS, TRANSACTIONS, SHARE_STATE)}

Created = Callable[[ErrorCode], None]


class InternalTopics:
    """Creates internal topics, each once."""

    def __init__(self, node: TopicCreation) -> None:
        self._node = node
        self._waiting: dict[str, list[Created]] = {}

    def ensure(self, topic: InternalTopic, done: Created) -> None:
        """Create a topic if it does not exist; `done` gets NONE as soon as this node knows the topic, or the error.

        Another node may create it meanwhile. A request that waited on, for the controller's reply, would be overtaken
        by later ones: an old commit of an offset would replace a newer one.
        """
        name = topic.name
        if self._exists(name):
            done(ErrorCode.NONE)
            return
        if name in self._waiting:
            self._waiting[name].append(done)
            return
        waiting = self._waiting[name] = [done]

        def settle(code: ErrorCode = ErrorCode.NONE) -> None:
            if self._waiting.get(name) is waiting:
                del self._waiting[name]
                self._node.publisher.forget(settle)
                for each in waiting:
                    each(code)

        self._node.publisher.when(partial(self._exists, name), settle)
        request = CreateTopicsRequest((self.creatable(topic),))

        def replied(reply: CreateTopicsResponse) -> None:
            settle(_code_of(reply))

        self._node.controller_channel.send(request, _CREATE_VERSION, replied, search_ms=SEARCH_MS)

    def _exists(self, name: str) -> bool:
        return self._node.image.topic(name) is not None

    def creatable(self, topic: InternalTopic) -> CreateTopicsRequestCreatableTopic:
        """The topic with its settings, to create it."""
        node, kind = self._node, CreateTopicsRequest
        # A voter is a broker, too, and may only not have registered yet: a topic made before would lack its replica.
        nodes = {*node.image.brokers, *node.raft.quorum.control.voters.ids}
        replication_factor = min(node.settings[topic.replication], len(nodes))
        configs = {name: self._value(value) for name, value in topic.configs.items()}
        return kind.CreatableTopic(
            topic.name,
            num_partitions=node.settings[topic.partitions],
            replication_factor=replication_factor,
            configs=tuple(kind.CreatableTopicConfig(name, value) for name, value in configs.items()),
        )

    def _value(self, value: str) -> str:
        return str(self._node.settings[value[1:-1]]) if value.startswith("<") else value


def _code_of(reply: CreateTopicsResponse) -> ErrorCode:
    code = ErrorCode(reply.topics[0].error_code)
    return ErrorCode.NONE if code == ErrorCode.TOPIC_ALREADY_EXISTS else code
