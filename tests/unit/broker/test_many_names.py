"""Requests may name thousands of things, each of which is looked at once, and by names as long as a text can be."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ottla.broker.handlers import describe_configs, describe_topic_partitions
from ottla.core.metadata.image import MetadataImage
from ottla.testing.disk import VirtualDisk
from ottla.testing.virtual_loop import VirtualLoop
from ottla.wire.errors import ErrorCode
from ottla.wire.types.describe_configs import DescribeConfigsRequest
from ottla.wire.types.describe_groups import DescribeGroupsRequest
from ottla.wire.types.describe_topic_partitions import DescribeTopicPartitionsRequest
from ottla.wire.types.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from ottla.wire.types.streams_group_describe import StreamsGroupDescribeRequest
from tests.unit.broker.virtual_node import Client, run, running

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


LONGEST = "x" * 32_767


@pytest.mark.parametrize(
    ("request_", "version", "code"),
    [
        (DescribeGroupsRequest((LONGEST,)), 6, ErrorCode.GROUP_ID_NOT_FOUND),
        (StreamsGroupDescribeRequest((LONGEST,)), 1, ErrorCode.GROUP_ID_NOT_FOUND),
        (
            DescribeUserScramCredentialsRequest((DescribeUserScramCredentialsRequest.UserName(LONGEST),)),
            0,
            ErrorCode.RESOURCE_NOT_FOUND,
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_message_that_quotes_the_longest_name_can_be_sent(request_: Any, version: int, code: ErrorCode) -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with running(loop, VirtualDisk()):
            answer = await Client(loop, 9092).ask(request_, version)
            (found,) = answer.results if hasattr(answer, "results") else answer.groups
            assert found.error_code == code

    run(scenario)
