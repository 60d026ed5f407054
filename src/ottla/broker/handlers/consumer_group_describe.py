"""ConsumerGroupDescribe (69): consumer groups with their epochs, members, and what each has and is to have (KIP-848).

Versions 0 and 1: from 1 on it is told which protocol a member speaks. Groups that the asker must not describe come
first. A group with a topic that he must not describe is refused as a whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.handlers.group_describing import Describing, describe, refusal
from ottla.broker.network.request import Later, Request
from ottla.core.groups.consumer.describing import DescribeConsumerGroup
from ottla.core.groups.consumer.settings import check_served
from ottla.wire.types.consumer_group_describe import (
    ConsumerGroupDescribeResponse,
    ConsumerGroupDescribeResponseDescribedGroup,
)

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Groups

API_KEY: Final = 69
VERSIONS: Final = (0, 1)


def handle(node: Groups, request: Request) -> Later:
    check_served(node.groups.world)
    return describe(node, request, _KIND)


def refuse(request: Request, code: int, message: str | None) -> ConsumerGroupDescribeResponse:
    response: ConsumerGroupDescribeResponse = refusal(request, _KIND, code, message)
    return response


def _topics(group: ConsumerGroupDescribeResponseDescribedGroup) -> set[str]:
    return {
        topic.topic_name
        for member in group.members
        for assignment in (member.assignment, member.target_assignment)
        for topic in assignment.topic_partitions
    }


_KIND: Final = Describing(DescribeConsumerGroup, ConsumerGroupDescribeResponse, _topics)
