"""From what a member owns towards its target, one step at a time.

With A what the member owns and T its target, as far as it still subscribes to it:

========================  =================================================  =========================================
state                     situation                                          next
========================  =================================================  =========================================
stable                    its epoch is the target's                          stays; what it no longer subscribes to goes
stable, unreleased        A - T is not empty and the member still lists it   unrevoked: epoch stays, A = A and T
stable, unreleased        nothing (more) to revoke                           the target's epoch, T as far as it is free;
                                                                             unreleased if some is not
unrevoked                 it still lists something pending, or lists         stays
                          nothing at all (null)
unrevoked                 it lists none of it any more                       as "stable"
unknown                   lists nothing                                      as "stable"; otherwise it is fenced
========================  =================================================  =========================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import msgspec

from ottla.core.groups.assignors import Target
from ottla.core.groups.consumer.members import NO_PARTITIONS, ConsumerGroupMember, MemberState, Partitions
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject

__all__ = ["OwnedTopic", "Surroundings", "reconcile"]


class OwnedTopic(Protocol):
    """What a member reports to own of a topic."""

    @property
    def topic_id(self) -> bytes: ...
    @property
    def partitions(self) -> Sequence[int]: ...


class Surroundings(msgspec.Struct, frozen=True):
    """What a reconciliation depends on beside the member itself."""

    target_epoch: int
    target: Target
    owned: Sequence[OwnedTopic] | None
    """What the member reports; None if it does not say."""
    has_subscription_changed: bool
    is_subscribed: Callable[[bytes], bool]
    """Whether the member subscribes to the topic with this id, and it exists."""
    is_free: Callable[[bytes, int], bool]
    """Whether no other member owns a partition."""


def reconcile(member: ConsumerGroupMember, around: Surroundings) -> ConsumerGroupMember:
    """The member after one step; itself if it cannot move."""
    if member.state is MemberState.STABLE:
        if member.member_epoch != around.target_epoch:
            return _advance(member, member.member_epoch, around)
        return _drop_unsubscribed(member, around) if around.has_subscription_changed else member
    if member.state is MemberState.UNREVOKED_PARTITIONS:
        if _still_owns(around.owned, member.pending_revocation):
            return _drop_unsubscribed(member, around) if around.has_subscription_changed else member
        # If there is more to give up by now, its epoch stays: it grows when the member has arrived at a target.
        return _advance(member, member.member_epoch, around)
    if member.state is MemberState.UNRELEASED_PARTITIONS:
        return _advance(member, member.member_epoch, around)
    return _recover(member, around)


def _recover(member: ConsumerGroupMember, around: Surroundings) -> ConsumerGroupMember:
    """The state is one of a newer release's: begin anew with a member that owns nothing."""
    if around.owned is None or around.owned:
        raise Reject(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"Member {member.member_id} is in a state that this broker does not know. "
            "It must give up all partitions and join again.",
        )
    return _advance(member, around.target_epoch, around)


def _still_owns(owned: Sequence[OwnedTopic] | None, pending: Partitions) -> bool:
    if owned is None:
        return True
    return any(
        topic.topic_id in pending and not pending[topic.topic_id].keys().isdisjoint(topic.partitions) for topic in owned
    )


def _drop_unsubscribed(member: ConsumerGroupMember, around: Surroundings) -> ConsumerGroupMember:
    """Take away topics that the member no longer subscribes to, without waiting for the next target."""
    gone = [topic_id for topic_id in member.assigned if not around.is_subscribed(topic_id)]
    if not gone:
        return member
    assigned = {topic_id: each for topic_id, each in member.assigned.items() if topic_id not in gone}
    pending = dict(member.pending_revocation)
    for topic_id in gone:
        pending[topic_id] = {**pending.get(topic_id, {}), **member.assigned[topic_id]}
    if not _still_owns(around.owned, pending):
        return msgspec.structs.replace(member, assigned=assigned)
    return msgspec.structs.replace(
        member, state=MemberState.UNREVOKED_PARTITIONS, assigned=assigned, pending_revocation=pending
    )


def _advance(member: ConsumerGroupMember, member_epoch: int, around: Surroundings) -> ConsumerGroupMember:
    assigned, pending = _split(member.assigned, around)
    if pending and _still_owns(around.owned, pending):
        return msgspec.structs.replace(
            member,
            state=MemberState.UNREVOKED_PARTITIONS,
            member_epoch=member_epoch,
            previous_member_epoch=member.member_epoch,
            assigned=assigned,
            pending_revocation=pending,
        )
    is_complete = _take_free(assigned, around)
    return msgspec.structs.replace(
        member,
        state=MemberState.STABLE if is_complete else MemberState.UNRELEASED_PARTITIONS,
        member_epoch=around.target_epoch,
        previous_member_epoch=member.member_epoch,
        assigned=assigned,
        pending_revocation=NO_PARTITIONS,
    )


def _split(
    assigned: Partitions, around: Surroundings
) -> tuple[dict[bytes, Mapping[int, int]], dict[bytes, Mapping[int, int]]]:
    """What stays of what the member has, and what it must give up."""
    stays: dict[bytes, Mapping[int, int]] = {}
    goes: dict[bytes, Mapping[int, int]] = {}
    for topic_id, epochs in assigned.items():
        wanted = frozenset(around.target.get(topic_id, ()))
        if wanted and not around.is_subscribed(topic_id):
            wanted = frozenset()
        if epochs.keys() <= wanted:
            stays[topic_id] = epochs
            continue
        goes[topic_id] = {partition: epoch for partition, epoch in epochs.items() if partition not in wanted}
        if kept := {partition: epoch for partition, epoch in epochs.items() if partition in wanted}:
            stays[topic_id] = kept
    return stays, goes


def _take_free(assigned: dict[bytes, Mapping[int, int]], around: Surroundings) -> bool:
    """Add what the target says and nobody else owns. Whether that is all of it."""
    is_complete = True
    for topic_id, wanted in around.target.items():
        mine = assigned.get(topic_id, {})
        if len(mine) == len(wanted) or not around.is_subscribed(topic_id):
            continue
        missing = [each for each in wanted if each not in mine]
        free = [each for each in missing if around.is_free(topic_id, each)]
        is_complete = is_complete and len(free) == len(missing)
        if free:
            assigned[topic_id] = {**mine, **dict.fromkeys(free, around.target_epoch)}
    return is_complete
