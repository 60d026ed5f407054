"""ShareGroupDescribe (77): share groups with their epochs, members, and what each of these may fetch (KIP-932).

Version 1. Groups that the asker must not describe come first. A group with a topic that he must not describe is refused
as a whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.handlers.group_describing import Describing, describe, refusal
from ottla.broker.network.request import Later, Request
from ottla.core.share.group.describing import DescribeShareGroup
from ottla.core.share.group.settings import check_served
from ottla.wire.types.share_group_describe import ShareGroupDescribeResponse, ShareGroupDescribeResponseDescribedGroup

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Groups

API_KEY: Final = 77
VERSIONS: Final = (1, 1)


def handle(node: Groups, request: Request) -> Later:
    check_served(node.groups.world)
    return describe(node, request, _KIND)


def refuse(request: Request, code: int, message: str | None) -> ShareGroupDescribeResponse:
    response: ShareGroupDescribeResponse = refusal(request, _KIND, code, message)
    return response


def _topics(group: ShareGroupDescribeResponseDescribedGroup) -> set[str]:
    return {topic.topic_name for member in group.members for topic in member.assignment.topic_partitions}


_KIND: Final = Describing(DescribeShareGroup, ShareGroupDescribeResponse, _topics)
