"""Turns the coordinators' descriptions of groups into facts: one function for each of the four types of groups."""

from __future__ import annotations

from collections.abc import Iterable
from functools import singledispatch
from typing import Any, Final

import msgspec

from ottla.client.address import Peer
from ottla.client.group_view import view_of
from ottla.client.metadata import TopicPartition
from ottla.health.facts import Group, GroupMember, Subtopology, Tasks, TopicPartitions
from ottla.wire import uuid_text
from ottla.wire.types.consumer_group_describe import ConsumerGroupDescribeResponseDescribedGroup as ConsumerGroup
from ottla.wire.types.consumer_group_describe import ConsumerGroupDescribeResponseMember as ConsumerMember
from ottla.wire.types.describe_groups import DescribeGroupsResponseDescribedGroup as ClassicGroup
from ottla.wire.types.share_group_describe import ShareGroupDescribeResponseDescribedGroup as ShareGroup
from ottla.wire.types.share_group_describe import ShareGroupDescribeResponseMember as ShareMember
from ottla.wire.types.streams_group_describe import StreamsGroupDescribeResponseAssignment as Assignment
from ottla.wire.types.streams_group_describe import StreamsGroupDescribeResponseDescribedGroup as StreamsGroup
from ottla.wire.types.streams_group_describe import StreamsGroupDescribeResponseMember as StreamsMember
from ottla.wire.types.streams_group_describe import StreamsGroupDescribeResponseSubtopology as DescribedSubtopology

__all__ = ["group_fact", "with_topic_ids"]

DESCRIPTIONS: Final = {1: "not_stored", 2: "error", 3: "available"}
"""By the status of a topology's description."""


@singledispatch
def group_fact(group: Any, coordinator: Peer) -> Group:  # noqa: ANN401
    """The fact about a group that its coordinator has described."""
    raise TypeError(f"{type(group).__name__} describes no group")


@group_fact.register
def _(group: ClassicGroup, coordinator: Peer) -> Group:
    view = view_of(group, coordinator)
    return Group(
        group=group.group_id,
        type="classic",
        state=group.group_state,
        protocol=group.protocol_type,
        assignor=group.protocol_data or None,
        coordinator=coordinator.node_id,
        members=tuple(
            GroupMember(
                member=each.member_id,
                instance=each.instance_id,
                rack=each.rack_id,
                client=each.client_id,
                host=each.host,
                subscribed=each.subscription or None,
                assigned=_by_topic(at for at in each.assignment if isinstance(at, TopicPartition)),
            )
            for each in view.members
        ),
    )


@group_fact.register
def _(group: ConsumerGroup, coordinator: Peer) -> Group:
    return _with_epochs(group, "consumer", coordinator, map(_consumer_member, group.members))


def _with_epochs(
    group: ConsumerGroup | ShareGroup | StreamsGroup, kind: str, coordinator: Peer, members: Iterable[GroupMember]
) -> Group:
    """The fields that consumer, share and streams groups have in common."""
    return Group(
        group=group.group_id,
        type=kind,
        state=group.group_state,
        protocol=kind,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor=group.assignor_name or None,
        coordinator=coordinator.node_id,
        members=tuple(members),
    )


def _consumer_member(each: ConsumerMember) -> GroupMember:
    pattern = (f"/{each.subscribed_topic_regex}/",) if each.subscribed_topic_regex else ()
    return GroupMember(
        member=each.member_id,
        epoch=each.member_epoch,
        instance=each.instance_id,
        rack=each.rack_id,
        client=each.client_id,
        host=each.client_host,
        subscribed=(*sorted(each.subscribed_topic_names), *pattern),
        assigned=_assigned(each.assignment),
        target=_assigned(each.target_assignment),
    )


@group_fact.register
def _(group: ShareGroup, coordinator: Peer) -> Group:
    return _with_epochs(group, "share", coordinator, map(_share_member, group.members))


def _share_member(each: ShareMember) -> GroupMember:
    return GroupMember(
        member=each.member_id,
        epoch=each.member_epoch,
        rack=each.rack_id,
        client=each.client_id,
        host=each.client_host,
        subscribed=tuple(sorted(each.subscribed_topic_names)),
        assigned=_assigned(each.assignment),
    )


@group_fact.register
def _(group: StreamsGroup, coordinator: Peer) -> Group:
    topology = group.topology
    return msgspec.structs.replace(
        _with_epochs(group, "streams", coordinator, map(_streams_member, group.members)),
        assignor=group.assignor_name,
        topology_epoch=None if topology is None else topology.epoch,
        subtopologies=None if topology is None else tuple(map(_subtopology, topology.subtopologies or ())),
        topology_description=DESCRIPTIONS.get(group.topology_description_status),
    )


def _streams_member(each: StreamsMember) -> GroupMember:
    return GroupMember(
        member=each.member_id,
        epoch=each.member_epoch,
        instance=each.instance_id,
        rack=each.rack_id,
        client=each.client_id,
        host=each.client_host,
        topology_epoch=each.topology_epoch,
        process=each.process_id or None,
        tasks=_tasks(each.assignment),
        target_tasks=_tasks(each.target_assignment),
        task_offsets=_offsets(each.task_offsets),
        task_end_offsets=_offsets(each.task_end_offsets),
    )


def _subtopology(each: DescribedSubtopology) -> Subtopology:
    return Subtopology(
        id=each.subtopology_id,
        source=tuple(each.source_topics),
        repartition_source=tuple(topic.name for topic in each.repartition_source_topics),
        changelog=tuple(topic.name for topic in each.state_changelog_topics),
    )


def _tasks(assignment: Assignment) -> Tasks:
    return Tasks(
        active=_names(assignment.active_tasks),
        standby=_names(assignment.standby_tasks),
        warmup=_names(assignment.warmup_tasks),
    )


def _names(tasks: Iterable[Any]) -> tuple[str, ...]:
    numbered = sorted((each.subtopology_id, number) for each in tasks for number in each.partitions)
    return tuple(f"{subtopology}_{number}" for subtopology, number in numbered)


def _offsets(told: Iterable[Any]) -> dict[str, int] | None:
    return {f"{each.subtopology_id}_{each.partition}": each.offset for each in told} or None


def _assigned(assignment: Any) -> tuple[TopicPartitions, ...]:  # noqa: ANN401 - four messages have the same shape
    return tuple(
        TopicPartitions(
            topic=each.topic_name, partitions=tuple(sorted(each.partitions)), topic_id=uuid_text(each.topic_id)
        )
        for each in sorted(assignment.topic_partitions, key=lambda each: str(each.topic_name))
    )


def _by_topic(partitions: Iterable[TopicPartition]) -> tuple[TopicPartitions, ...]:
    topics: dict[str, list[int]] = {}
    for at in partitions:
        topics.setdefault(at.topic, []).append(at.partition)
    return tuple(TopicPartitions(topic=name, partitions=tuple(sorted(each))) for name, each in sorted(topics.items()))


def with_topic_ids(fact: Group, ids: dict[str, str]) -> Group:
    """Add the ids of topics, which coordinators of classic groups do not know."""
    members = tuple(
        msgspec.structs.replace(
            member,
            assigned=tuple(
                each if each.topic_id else msgspec.structs.replace(each, topic_id=ids.get(each.topic))
                for each in member.assigned
            ),
        )
        for member in fact.members
    )
    return msgspec.structs.replace(fact, members=members)
