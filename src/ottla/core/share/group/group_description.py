"""A share group as ShareGroupDescribe shows it, and the share partitions of which it has state."""

from __future__ import annotations

from typing import Final, NamedTuple

from ottla.core.coordinator.contract import Context, Topics
from ottla.core.groups.topic_sets import named
from ottla.core.share.group.group import ShareGroup
from ottla.core.share.group.members import ShareGroupMember
from ottla.wire.types.share_group_describe import ShareGroupDescribeResponseAssignment as Assignment
from ottla.wire.types.share_group_describe import ShareGroupDescribeResponseDescribedGroup as DescribedGroup
from ottla.wire.types.share_group_describe import ShareGroupDescribeResponseMember as DescribedMember
from ottla.wire.types.share_group_describe import ShareGroupDescribeResponseTopicPartitions as TopicPartitions

__all__ = ["DescribeShareGroup", "ListShareState", "describe"]

ASSIGNOR: Final = "simple"


class DescribeShareGroup(NamedTuple):
    """A request of our own: one group of a ShareGroupDescribe, which is answered with its DescribedGroup."""

    group_id: str


class ListShareState(NamedTuple):
    """A request of our own: the answer is a mapping of topic ids to the partitions that have state, as `StateTopic`.
    A group that is not there has none."""

    group_id: str


def describe(group: ShareGroup, context: Context) -> DescribedGroup:
    topics = context.world.topics
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name(),
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=ASSIGNOR,
        members=tuple(_member(group.members[member_id], topics) for member_id in sorted(group.members)),
    )


def _member(member: ShareGroupMember, topics: Topics) -> DescribedMember:
    return DescribedMember(
        member_id=member.member_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=tuple(sorted(member.names)),
        assignment=_assignment(member, topics),
    )


def _assignment(member: ShareGroupMember, topics: Topics) -> Assignment:
    found = named(member.assigned, topics)
    return Assignment(tuple(TopicPartitions(topic_id, name, member.assigned[topic_id]) for name, topic_id in found))
