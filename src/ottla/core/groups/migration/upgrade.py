"""From a classic group to a consumer group, in place."""

from __future__ import annotations

from collections.abc import Mapping

from ottla.core.coordinator.contract import Context, Result, Timer, Topics
from ottla.core.groups.classic.group import ClassicGroup
from ottla.core.groups.classic.member import ClassicGroupMember, Protocol
from ottla.core.groups.classic.release import release
from ottla.core.groups.classic.subscriptions import subscription_of
from ottla.core.groups.consumer.family import Upgrade
from ottla.core.groups.consumer.group import ConsumerGroup
from ottla.core.groups.consumer.heartbeat import timer_key
from ottla.core.groups.consumer.members import ClassicMetadata, ConsumerGroupMember, Subscription
from ottla.core.groups.consumer.records import (
    current_record,
    epoch_record,
    member_record,
    target_epoch_record,
    target_record,
)
from ottla.core.groups.migration.policy import may_upgrade
from ottla.core.groups.migration.subscriptions import partitions_of, user_data_of
from ottla.core.groups.topic_sets import TopicSets
from ottla.wire import WireError
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import KeyedRecord
from ottla.wire.reject import Reject
from ottla.wire.types.group_consumer import ConsumerGroupMemberMetadataValueClassicProtocol as ClassicProtocol

__all__ = ["classic_metadata", "upgrade"]


def upgrade(group: ClassicGroup, topic_sets: TopicSets, context: Context) -> Upgrade:
    """Whoever waits for the end of a rebalance is told that there is another one, and joins again: the new kind of."""
    _check(group, context)
    converted = _convert(group, topic_sets, context.world.topics)

    def let_go() -> Result:
        released = release(group, ErrorCode.REBALANCE_IN_PROGRESS)
        sessions = [
            Timer(timer_key("session", group.group_id, each.member_id), context.now_ms + each.session_timeout_ms)
            for each in group.members.values()
        ]
        return Result(replies=released.replies, timers=[*released.timers, *sessions])

    return Upgrade(converted, [*group.tombstones(), *_records(converted)], let_go)


def _check(group: ClassicGroup, context: Context) -> None:
    size_max = context.world.settings["group.consumer.max.size"]
    if not may_upgrade(context.world):
        raise _refusal(group, "group.consumer.migration.policy does not allow it")
    if not group.uses_consumer_protocol:
        raise _refusal(group, "its members are not consumers")
    if len(group.members) > size_max:
        raise _refusal(group, f"it has more than {size_max} members")


def _refusal(group: ClassicGroup, why: str) -> Reject:
    return Reject(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group.group_id} stays a classic group: {why}.")


def _convert(group: ClassicGroup, topic_sets: TopicSets, topics: Topics) -> ConsumerGroup:
    """The group as it will be once its records are replayed."""
    converted = ConsumerGroup(group.group_id)
    try:
        members = [_member(group, each, topics) for each in group.members.values()]
    except WireError:
        raise _refusal(group, "the subscriptions of its members cannot be read") from None
    for member in members:
        converted.change_member(member.member_id, lambda _, member=member: member)  # type: ignore[misc]
        converted.targets[member.member_id] = member.target()
    converted.group_epoch = converted.assignment_epoch = group.generation
    converted.metadata_hash = topic_sets.metadata_hash(converted.subscribed_topics(), topics)
    return converted


def _member(group: ClassicGroup, member: ClassicGroupMember, topics: Topics) -> ConsumerGroupMember:
    # Before the end of its first rebalance the group has chosen no protocol: any that the member names will do.
    subscription = subscription_of(member.metadata(group.protocol_name) or member.protocols[0].metadata)
    if subscription is None:
        raise WireError("ConsumerProtocolSubscription", 0, "cannot be read")
    return ConsumerGroupMember(
        member_id=member.member_id,
        member_epoch=group.generation,
        previous_member_epoch=group.generation,
        instance_id=member.instance_id,
        rack_id=subscription.rack_id or None,
        client_id=member.client_id,
        client_host=member.client_host,
        subscription=Subscription(frozenset(subscription.topics), ""),
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        classic=classic_metadata(member.session_timeout_ms, member.protocols),
        assigned=_assigned(group, member, topics),
    )


def classic_metadata(session_timeout_ms: int, protocols: tuple[Protocol, ...]) -> ClassicMetadata:
    return ClassicMetadata(session_timeout_ms, tuple(ClassicProtocol(each.name, each.metadata) for each in protocols))


def _assigned(group: ClassicGroup, member: ClassicGroupMember, topics: Topics) -> Mapping[bytes, Mapping[int, int]]:
    """A member that has never synced owns nothing."""
    if not member.assignment:
        return {}
    if user_data_of(member.assignment):
        raise _refusal(group, "an assignor of its members' own is in use, whose data would be lost")
    partitions = partitions_of(member.assignment, topics)
    return {topic_id: dict.fromkeys(each, group.generation) for topic_id, each in partitions.items()}


def _records(group: ConsumerGroup) -> list[KeyedRecord]:
    members = list(group.members.values())
    return [
        *(member_record(group.group_id, member) for member in members),
        epoch_record(group.group_id, group.group_epoch, group.metadata_hash),
        *(target_record(group.group_id, member.member_id, group.target(member.member_id)) for member in members),
        target_epoch_record(group.group_id, group.assignment_epoch, 0),
        *(current_record(group.group_id, member) for member in members),
    ]
