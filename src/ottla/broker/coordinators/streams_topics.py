"""Creates the internal topics of Kafka Streams applications, on behalf of the client that sent the heartbeat."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from ottla.broker.coordinators.edge import Perform
from ottla.broker.coordinators.ports import TopicCreation
from ottla.core.coordinator.contract import Outcome
from ottla.core.groups.streams.effects import CreateInternalTopics, InternalTopic
from ottla.wire.errors import ErrorCode
from ottla.wire.types.create_topics import CreateTopicsRequest, CreateTopicsResponse

__all__ = ["performers"]

_VERSION: Final = 7
_DEFAULT: Final = -1


def performers(node: TopicCreation) -> dict[type, Perform]:
    """The performers of the effects of streams groups."""
    return {CreateInternalTopics: lambda effect, done: _create(node, effect, done)}


def _create(node: TopicCreation, effect: CreateInternalTopics, done: Callable[[Outcome], None]) -> None:
    def created(reply: CreateTopicsResponse) -> None:
        done(Outcome(value=_errors(reply)))

    node.controller_channel.send(_request(effect.topics), _VERSION, created, client=effect.token.request)


def _request(topics: Iterable[InternalTopic]) -> CreateTopicsRequest:
    kind = CreateTopicsRequest
    return kind(
        topics=tuple(
            kind.CreatableTopic(
                topic.name,
                num_partitions=topic.partition_count,
                replication_factor=topic.replication_factor or _DEFAULT,
                configs=tuple(kind.CreatableTopicConfig(name, value) for name, value in topic.configs),
            )
            for topic in topics
        )
    )


def _errors(reply: CreateTopicsResponse) -> dict[str, str]:
    """The errors of topics that could not be created. A topic that exists already is no error."""
    fine = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
    return {
        topic.name: f"Topic {topic.name}: {topic.error_message or ErrorCode(topic.error_code).name}"
        for topic in reply.topics
        if topic.error_code not in fine
    }
