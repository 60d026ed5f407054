"""One view of the four kinds of groups: who is in a group, what each member has, and who holds up a rebalance.

A classic group's members compute the assignment themselves, and the coordinator keeps it as bytes: those of consumers
are decoded here, those of other protocols (Kafka Connect's, for instance) are only counted. In the newer kinds the
coordinator computes a target, and members move towards it epoch by epoch: who has to give something up does so first
and confirms it, and only then the next owner gets it. So a rebalance waits for the members that have not reached the
epoch of the target yet.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from typing import Final, NamedTuple, TypeVar

from ottla import wire
from ottla.client.address import Peer
from ottla.client.metadata import TopicPartition
from ottla.wire import WireError
from ottla.wire.types.consumer_group_describe import (
    ConsumerGroupDescribeResponseAssignment,
    ConsumerGroupDescribeResponseDescribedGroup,
    ConsumerGroupDescribeResponseMember,
)
from ottla.wire.types.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from ottla.wire.types.describe_groups import (
    DescribeGroupsResponseDescribedGroup,
    DescribeGroupsResponseDescribedGroupMember,
)
from ottla.wire.types.share_group_describe import (
    ShareGroupDescribeResponseAssignment,
    ShareGroupDescribeResponseDescribedGroup,
    ShareGroupDescribeResponseMember,
)
from ottla.wire.types.streams_group_describe import (
    StreamsGroupDescribeResponseAssignment,
    StreamsGroupDescribeResponseDescribedGroup,
    StreamsGroupDescribeResponseMember,
)

__all__ = ["Blocker", "DescribedGroup", "GroupView", "MemberView", "Task", "rebalance_blockers", "view_of"]

DescribedGroup = (
    DescribeGroupsResponseDescribedGroup
    | ConsumerGroupDescribeResponseDescribedGroup
    | ShareGroupDescribeResponseDescribedGroup
    | StreamsGroupDescribeResponseDescribedGroup
)
"""What the coordinator says of a group; which of these it is depends on the group's type."""

CONSUMERS: Final = "consumer"
"""The protocol type of classic groups whose assignments are ConsumerProtocolAssignments."""
_CLASSIC_MEMBER: Final = 0
_INT16: Final = Struct(">h")


class Task(NamedTuple):
    """What a member of a streams group has: a part of the topology for one partition number."""

    subtopology_id: str
    partition: int
    role: str = "active"
    """active, standby or warmup."""

    def __str__(self) -> str:
        name = f"{self.subtopology_id}_{self.partition}"
        return name if self.role == "active" else f"{name} ({self.role})"


Share = TopicPartition | Task
T = TypeVar("T")


class MemberView(NamedTuple):
    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    rack_id: str | None = None
    epoch: int | None = None
    """How far it has come; None in classic groups, whose members all have the same generation."""
    is_classic: bool = False
    """Whether it speaks the classic protocol."""
    subscription: tuple[str, ...] = ()
    subscription_regex: str | None = None
    assignment: tuple[Share, ...] = ()
    target: tuple[Share, ...] | None = None
    """What it is to have when the rebalance is over; None where nobody computes a target."""
    unread_bytes: int = 0
    """The size of an assignment that cannot be read, since it is not a consumer's."""


class GroupView(NamedTuple):
    group_id: str
    type: str
    """classic, consumer, share or streams."""
    state: str
    coordinator: Peer
    protocol_type: str
    """Of classic groups: consumer, connect, or "" for a group that only keeps offsets."""
    assignor: str
    """The strategy; "" where none is chosen yet."""
    members: tuple[MemberView, ...]
    epoch: int | None = None
    """Grows whenever members, subscriptions or topics change; None in classic groups."""
    assignment_epoch: int | None = None
    """The epoch that the target was computed for."""
    topology_epoch: int | None = None


class Blocker(NamedTuple):
    """A member that the rebalance waits for."""

    member_id: str
    epoch: int
    awaited: tuple[Share, ...]
    """What others are to get and nobody has: one of the members that hold up the rebalance has to give it up first."""
    waiting: tuple[str, ...]
    """The members that wait for it."""


def view_of(group: DescribedGroup, coordinator: Peer) -> GroupView:
    """What one of the four kinds of description says."""
    if isinstance(group, DescribeGroupsResponseDescribedGroup):
        return _classic(group, coordinator)
    if isinstance(group, ConsumerGroupDescribeResponseDescribedGroup):
        members = tuple(map(_consumer_member, group.members))
        return _newer("consumer", group, coordinator, group.assignor_name, members)
    if isinstance(group, ShareGroupDescribeResponseDescribedGroup):
        return _newer("share", group, coordinator, group.assignor_name, tuple(map(_share_member, group.members)))
    streams = _newer("streams", group, coordinator, "", tuple(map(_streams_member, group.members)))
    return streams._replace(topology_epoch=None if group.topology is None else group.topology.epoch)


def rebalance_blockers(group: GroupView) -> list[Blocker]:
    """The members that have not reached the target's epoch, while others have or wait for what they give up."""
    target_epoch = group.assignment_epoch
    if target_epoch is None or all(member.target is None for member in group.members):
        return []
    taken = {share for member in group.members for share in member.assignment}
    late = [member for member in group.members if member.epoch is not None and member.epoch < target_epoch]
    found = []
    for member in late:
        wanted = {
            other.member_id: [share for share in _missing(other) if share not in taken or share in member.assignment]
            for other in group.members
            if other is not member
        }
        awaited = sorted({share for shares in wanted.values() for share in shares}, key=str)
        waiting = tuple(sorted(name for name, shares in wanted.items() if shares))
        assert member.epoch is not None
        found.append(Blocker(member.member_id, member.epoch, tuple(awaited), waiting))
    return found


def _missing(member: MemberView) -> list[Share]:
    return [share for share in member.target or () if share not in member.assignment]


# --- the kinds --------------------------------------------------------------------------------------------------------


def _classic(group: DescribeGroupsResponseDescribedGroup, coordinator: Peer) -> GroupView:
    members = tuple(_classic_member(each, group.protocol_type) for each in group.members)
    return GroupView(
        group.group_id, "classic", group.group_state, coordinator, group.protocol_type, group.protocol_data, members
    )


def _classic_member(each: DescribeGroupsResponseDescribedGroupMember, protocol_type: str) -> MemberView:
    view = MemberView(each.member_id, each.group_instance_id, each.client_id, each.client_host, is_classic=True)
    if protocol_type != CONSUMERS:
        return view._replace(unread_bytes=len(each.member_assignment))
    try:
        subscription = _decoded(ConsumerProtocolSubscription, each.member_metadata)
        assignment = _decoded(ConsumerProtocolAssignment, each.member_assignment)
    except WireError:  # a member may send what it likes; the coordinator does not look into it
        return view._replace(unread_bytes=len(each.member_assignment))
    return view._replace(
        rack_id=subscription.rack_id,
        subscription=subscription.topics,
        assignment=_partitions((each.topic, each.partitions) for each in assignment.assigned_partitions),
    )


def _decoded(kind: type[T], data: bytes) -> T:
    """A message with its version before it; empty bytes stand for an empty one, since nothing was given yet.

    A newer version than we know is read as the newest that we do: new fields only ever come last.
    """
    if not data:
        return kind()
    if len(data) < _INT16.size:
        raise WireError(kind.__name__, 0, "the version before the message is cut off")
    (version,) = _INT16.unpack_from(data)
    message = wire.decoder(kind.__name__, min(version, wire.versions(kind.__name__)[-1]))(data, _INT16.size, False)
    assert isinstance(message, kind)
    return message


def _newer(
    kind: str,
    group: ConsumerGroupDescribeResponseDescribedGroup
    | ShareGroupDescribeResponseDescribedGroup
    | StreamsGroupDescribeResponseDescribedGroup,
    coordinator: Peer,
    assignor: str,
    members: tuple[MemberView, ...],
) -> GroupView:
    return GroupView(
        group.group_id,
        kind,
        group.group_state,
        coordinator,
        kind,
        assignor,
        members,
        group.group_epoch,
        group.assignment_epoch,
    )


def _consumer_member(each: ConsumerGroupDescribeResponseMember) -> MemberView:
    return MemberView(
        each.member_id,
        each.instance_id,
        each.client_id,
        each.client_host,
        each.rack_id,
        each.member_epoch,
        each.member_type == _CLASSIC_MEMBER,
        each.subscribed_topic_names,
        each.subscribed_topic_regex or None,
        _assigned(each.assignment),
        _assigned(each.target_assignment),
    )


def _share_member(each: ShareGroupDescribeResponseMember) -> MemberView:
    return MemberView(
        each.member_id,
        None,
        each.client_id,
        each.client_host,
        each.rack_id,
        each.member_epoch,
        subscription=each.subscribed_topic_names,
        assignment=_assigned(each.assignment),
    )


def _streams_member(each: StreamsGroupDescribeResponseMember) -> MemberView:
    return MemberView(
        each.member_id,
        each.instance_id,
        each.client_id,
        each.client_host,
        each.rack_id,
        each.member_epoch,
        each.is_classic,
        assignment=_tasks(each.assignment),
        target=_tasks(each.target_assignment),
    )


def _assigned(
    assignment: ConsumerGroupDescribeResponseAssignment | ShareGroupDescribeResponseAssignment,
) -> tuple[TopicPartition, ...]:
    return _partitions((each.topic_name, each.partitions) for each in assignment.topic_partitions)


def _partitions(topics: Iterable[tuple[str, tuple[int, ...]]]) -> tuple[TopicPartition, ...]:
    return tuple(sorted(TopicPartition(name, index) for name, indexes in topics for index in indexes))


def _tasks(assignment: StreamsGroupDescribeResponseAssignment) -> tuple[Task, ...]:
    roles = {"active": assignment.active_tasks, "standby": assignment.standby_tasks, "warmup": assignment.warmup_tasks}
    return tuple(
        sorted(
            Task(each.subtopology_id, index, role)
            for role, tasks in roles.items()
            for each in tasks
            for index in each.partitions
        )
    )
