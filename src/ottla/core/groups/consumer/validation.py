"""Heartbeats that cannot be served: what a request may say, and which epochs are fenced."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.core.coordinator.contract import Authorize, World
from ottla.core.groups.consumer.members import ConsumerGroupMember
from ottla.core.groups.consumer.reconciliation import OwnedTopic
from ottla.core.groups.modern.members import LEAVE_GROUP_MEMBER_EPOCH, LEAVE_GROUP_STATIC_MEMBER_EPOCH
from ottla.core.groups.modern.rights import check_group, check_topics
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject
from ottla.wire.types.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

__all__ = ["check_epoch", "check_heartbeat", "check_instance", "check_released", "check_request"]

CLIENT_MAKES_ID_VERSION = 1
"""From this version on the client makes its member id itself."""


def check_heartbeat(request: ConsumerGroupHeartbeatRequest, world: World, authorize: Authorize) -> None:
    check_group(request.group_id, authorize)
    if request.subscribed_topic_names:
        check_topics(request.subscribed_topic_names, authorize)


def check_request(request: ConsumerGroupHeartbeatRequest, api_version: int, assignors: Sequence[str]) -> None:
    has_id = request.member_epoch > 0 or request.member_epoch == LEAVE_GROUP_MEMBER_EPOCH
    if has_id or api_version >= CLIENT_MAKES_ID_VERSION:
        _check_text("MemberId", request.member_id)
    _check_text("GroupId", request.group_id)
    _check_text("InstanceId", request.instance_id)
    _check_text("RackId", request.rack_id)
    if request.member_epoch == 0:
        _check_join(request)
    elif request.member_epoch == LEAVE_GROUP_STATIC_MEMBER_EPOCH:
        if request.instance_id is None:
            raise _invalid("Only a member with an InstanceId can step away.")
    elif request.member_epoch < LEAVE_GROUP_STATIC_MEMBER_EPOCH:
        raise _invalid(f"There is no MemberEpoch {request.member_epoch}.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise Reject(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.server_assignor} is not one of {', '.join(assignors)}.",
        )


def _check_text(name: str, value: str | None) -> None:
    if value is not None and not value.strip():
        raise _invalid(f"{name} must not be blank.")


def _check_join(request: ConsumerGroupHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == -1:
        raise _invalid("Who joins must give a RebalanceTimeoutMs.")
    if request.topic_partitions is None or request.topic_partitions:
        raise _invalid("Who joins owns nothing: TopicPartitions must be empty, and not null.")
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        raise _invalid("Who joins must give SubscribedTopicNames or SubscribedTopicRegex.")


def _invalid(message: str) -> Reject:
    return Reject(ErrorCode.INVALID_REQUEST, message)


def check_epoch(member: ConsumerGroupMember, epoch: int, owned: Sequence[OwnedTopic] | None) -> None:
    """An epoch of 0 joins anew. The one before the last is accepted once more if the member may have missed the answer
    that told it the last: then it owns nothing beyond what that answer gave it."""
    if epoch in (0, member.member_epoch):
        return
    if epoch > member.member_epoch or epoch != member.previous_member_epoch or not _is_subset(owned, member):
        raise Reject(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"Member {member.member_id} has epoch {member.member_epoch}, not {epoch}. "
            "It must give up all partitions and join again.",
        )


def _is_subset(owned: Sequence[OwnedTopic] | None, member: ConsumerGroupMember) -> bool:
    if owned is None:
        return False
    return all(member.assigned.get(topic.topic_id, {}).keys() >= set(topic.partitions) for topic in owned)


def check_instance(member: ConsumerGroupMember | None, instance_id: str, member_id: str) -> ConsumerGroupMember:
    """The static member of that name, if it is the one who asks."""
    if member is None:
        raise Reject(ErrorCode.UNKNOWN_MEMBER_ID, f"There is no member with instance id {instance_id}.")
    if member.member_id != member_id:
        raise Reject(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Member {member_id} was replaced by {member.member_id}, which has its instance id {instance_id} now.",
        )
    return member


def check_released(existing: ConsumerGroupMember, member_id: str) -> None:
    """A static member gives its place to another only after it has stepped away; even to itself, as in Kafka."""
    if existing.member_epoch != LEAVE_GROUP_STATIC_MEMBER_EPOCH:
        raise Reject(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Member {member_id} cannot join: instance id {existing.instance_id} belongs to {existing.member_id}.",
        )
