"""StreamsGroupDescribe: one group as its row tells it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from ottla.core.coordinator.contract import Context
from ottla.core.groups.streams.group import StreamsGroup
from ottla.core.groups.streams.members import Offsets, StreamsGroupMember
from ottla.core.groups.streams.settings import assignor_name
from ottla.core.groups.streams.tasks import Tasks, task_lists
from ottla.core.groups.streams.topology import Subtopology, TopicInfo, topics_named
from ottla.wire.access import Operation, ResourceType
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import shortened
from ottla.wire.types.streams_group_describe import StreamsGroupDescribeResponse
from ottla.wire.types.streams_group_describe import StreamsGroupDescribeResponseAssignment as DescribedAssignment
from ottla.wire.types.streams_group_describe import StreamsGroupDescribeResponseDescribedGroup as DescribedGroup
from ottla.wire.types.streams_group_describe import StreamsGroupDescribeResponseMember as DescribedMember
from ottla.wire.types.streams_group_describe import StreamsGroupDescribeResponseSubtopology as DescribedSubtopology
from ottla.wire.types.streams_group_describe import StreamsGroupDescribeResponseTaskOffset as DescribedTaskOffset
from ottla.wire.types.streams_group_describe import StreamsGroupDescribeResponseTopicInfo as DescribedTopicInfo
from ottla.wire.types.streams_group_describe import StreamsGroupDescribeResponseTopology as DescribedTopology

__all__ = ["DescribeStreamsGroup", "describe", "not_describable"]

_Response = StreamsGroupDescribeResponse


class DescribeStreamsGroup(NamedTuple):
    """A request of our own: one row of StreamsGroupDescribe."""

    group_id: str
    include_topology_description: bool = False


def describe(group: StreamsGroup | None, request: DescribeStreamsGroup, context: Context) -> DescribedGroup:
    if group is None:
        text = shortened(f"Group {request.group_id} not found.")
        return DescribedGroup(int(ErrorCode.GROUP_ID_NOT_FOUND), text, request.group_id)
    if group.topology is not None:
        refused = not_describable(group.group_id, topics_named(group.topology), context.authorize)
        if refused is not None:
            return refused
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name(),
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        topology=_topology(group, context),
        members=tuple(_member(group, member) for member in group.members.values()),
        assignor_name=assignor_name(context.world, group.group_id),
    )


def not_describable(
    group_id: str, topics: Iterable[str], authorize: Callable[[Any, Any, str], bool]
) -> DescribedGroup | None:
    """The row of a group of whose topics not all may be described by who asks; None if they may."""
    if all(authorize(Operation.DESCRIBE, ResourceType.TOPIC, name) for name in topics):
        return None
    text = "not allowed to describe all topics of the topology"
    return DescribedGroup(int(ErrorCode.TOPIC_AUTHORIZATION_FAILED), text, group_id)


def _topology(group: StreamsGroup, context: Context) -> DescribedTopology | None:
    """With the partition counts that were decided once the group is ready, and as declared before."""
    if group.topology is None:
        return None
    configured = group.configuration(context.world.topics) if group.is_ready else None
    counts = configured.decided_counts if configured is not None and configured.is_ready else {}
    subtopologies = sorted(group.topology.subtopologies, key=lambda each: each.subtopology_id)
    return DescribedTopology(group.topology.epoch, tuple(_subtopology(each, counts) for each in subtopologies))


def _subtopology(subtopology: Subtopology, counts: Mapping[str, int]) -> DescribedSubtopology:
    return DescribedSubtopology(
        subtopology.subtopology_id,
        tuple(sorted(subtopology.source_topics)),
        tuple(sorted(subtopology.repartition_sink_topics)),
        _topic_infos(subtopology.state_changelog_topics, counts),
        _topic_infos(subtopology.repartition_source_topics, counts),
    )


def _topic_infos(topics: tuple[TopicInfo, ...], counts: Mapping[str, int]) -> tuple[DescribedTopicInfo, ...]:
    return tuple(
        DescribedTopicInfo(
            topic.name,
            counts.get(topic.name, topic.partitions),
            topic.replication_factor,
            tuple(_Response.KeyValue(each.key, each.value) for each in topic.topic_configs),
        )
        for topic in sorted(topics, key=lambda topic: topic.name)
    )


def _member(group: StreamsGroup, member: StreamsGroupMember) -> DescribedMember:
    metadata, assigned = member.metadata, member.current.assigned
    endpoint = metadata.user_endpoint
    return DescribedMember(
        member_id=member.member_id,
        member_epoch=member.current.member_epoch,
        instance_id=metadata.instance_id,
        rack_id=metadata.rack_id,
        client_id=metadata.client_id,
        client_host=metadata.client_host,
        topology_epoch=metadata.topology_epoch,
        process_id=metadata.process_id,
        user_endpoint=None if endpoint is None else _Response.Endpoint(endpoint.host, endpoint.port),
        client_tags=tuple(_Response.KeyValue(each.key, each.value) for each in metadata.client_tags),
        task_offsets=_offsets(member.report.offsets),
        task_end_offsets=_offsets(member.report.ends),
        assignment=_assignment(Tasks(frozenset(assigned.active), assigned.standby, assigned.warmup)),
        target_assignment=_assignment(group.target(member.member_id)),
    )


def _offsets(offsets: Offsets) -> tuple[DescribedTaskOffset, ...]:
    return tuple(DescribedTaskOffset(*task, offset) for task, offset in sorted(offsets.items()))


def _assignment(tasks: Tasks) -> DescribedAssignment:
    active, standby, warmup = (task_lists(_Response.TaskIds, each) for each in tasks)
    return DescribedAssignment(active, standby, warmup)
