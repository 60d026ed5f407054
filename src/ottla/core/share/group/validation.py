"""Heartbeats that cannot be served: what a request may say, and which epochs are fenced.

`check_heartbeat` looks at the request alone. It comes before the coordinator is looked for, so that any broker refuses
a request that makes no sense.
"""

from __future__ import annotations

from typing import Final

from ottla.core.coordinator.contract import Authorize, World
from ottla.core.groups.modern.members import LEAVE_GROUP_MEMBER_EPOCH
from ottla.core.groups.modern.rights import check_group, check_topics
from ottla.core.share.group.members import ShareGroupMember
from ottla.core.share.group.settings import check_served
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject
from ottla.wire.types.share_group_heartbeat import ShareGroupHeartbeatRequest

__all__ = ["check_epoch", "check_heartbeat"]

MEMBER_ID_LENGTH_MAX: Final = 36


def check_heartbeat(request: ShareGroupHeartbeatRequest, world: World, authorize: Authorize) -> None:
    check_served(world)
    check_group(request.group_id, authorize)
    _check_member_id(request.member_id)
    if request.subscribed_topic_names:
        check_topics(request.subscribed_topic_names, authorize)
    _check_request(request)


def _check_member_id(member_id: str) -> None:
    """Refused without a word, as Apache Kafka does."""
    if not member_id or len(member_id) > MEMBER_ID_LENGTH_MAX:
        raise Reject(ErrorCode.INVALID_REQUEST)


def _check_request(request: ShareGroupHeartbeatRequest) -> None:
    if not request.group_id.strip():
        raise _invalid("GroupId must not be blank.")
    if not request.member_id.strip():
        raise _invalid("MemberId must not be blank.")
    if request.rack_id is not None and not request.rack_id.strip():
        raise _invalid("RackId must not be blank.")
    if request.member_epoch == 0:
        if not request.subscribed_topic_names:
            raise _invalid("Who joins must give SubscribedTopicNames.")
    elif request.member_epoch < LEAVE_GROUP_MEMBER_EPOCH:
        raise _invalid(f"There is no MemberEpoch {request.member_epoch}.")


def _invalid(message: str) -> Reject:
    return Reject(ErrorCode.INVALID_REQUEST, message)


def check_epoch(member: ShareGroupMember, epoch: int) -> None:
    """An epoch of 0 joins anew. The one before the last is accepted once more, for the answer that told the last may
    have been lost."""
    if epoch not in (0, member.member_epoch, member.previous_member_epoch) or epoch > member.member_epoch:
        raise Reject(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"Member {member.member_id} has epoch {member.member_epoch}, not {epoch}. It must join again.",
        )
