"""Clients without rights may name thousands of things: each is looked at once, not once for each other."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ottla.broker.handlers import describe_configs, describe_topic_partitions
from ottla.core.metadata.image import MetadataImage
from ottla.wire.errors import ErrorCode
from ottla.wire.types.describe_configs import DescribeConfigsRequest
from ottla.wire.types.describe_topic_partitions import DescribeTopicPartitionsRequest

COUNT = 300
TOPIC = 2


class Name(str):
    """A name that counts how often it is compared with others."""

    __slots__ = ()
    compared = 0

    def __eq__(self, other: object) -> bool:
        Name.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def names() -> list[Name]:
    Name.compared = 0
    return [Name(f"topic-{number}") for number in range(COUNT)]


def node() -> Any:
    limit = {"max.request.partition.size.limit": 2000}
    return SimpleNamespace(image=MetadataImage(), settings=limit, authorize=lambda *what: False)


def test_described_topics():
    kind = DescribeTopicPartitionsRequest
    request: Any = SimpleNamespace(body=kind(tuple(kind.TopicRequest(name) for name in names())))
    answer = describe_topic_partitions.handle(node(), request)
    assert [each.error_code for each in answer.topics] == [ErrorCode.TOPIC_AUTHORIZATION_FAILED] * COUNT
    assert Name.compared < 3 * COUNT


def test_described_settings():
    kind = DescribeConfigsRequest
    request: Any = SimpleNamespace(
        body=kind(tuple(kind.DescribeConfigsResource(TOPIC, name, None) for name in names()))
    )
    answer = describe_configs.handle(node(), request)
    assert [each.error_code for each in answer.results] == [ErrorCode.TOPIC_AUTHORIZATION_FAILED] * COUNT
    assert Name.compared < 3 * COUNT
