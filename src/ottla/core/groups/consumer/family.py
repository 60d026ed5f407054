"""Consumer groups: their requests, records and deadlines.

Deadlines of a member, beside `session` and `rebalance`: those of the classic protocol have `join` and `sync`, within
which they must follow a rebalance. Deadlines of a group: `regex`, when the next slice of its patterns is resolved, and
`target`, when the next part of a target is gathered or written that is computed outside the event loop.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from ottla.core.coordinator.contract import NOTHING, Context, Outcome, Reply, Result, Timer, TopicsChange
from ottla.core.groups.consumer.group import ConsumerGroup
from ottla.core.groups.consumer.group_description import DescribeConsumerGroup, describe
from ottla.core.groups.consumer.heartbeat import FAMILY, ConsumerStep, Memory, timer_key
from ottla.core.groups.consumer.members import ConsumerGroupMember, Subscription
from ottla.core.groups.consumer.patterns import refresh_at_ms
from ottla.core.groups.consumer.records import (
    ResolvedRegex,
    current_record,
    epoch_record,
    member_tombstones,
    regex_record,
    regex_tombstone,
)
from ottla.core.groups.consumer.settings import check_served, read_settings
from ottla.core.groups.consumer.targets import TARGET_SOURCE
from ottla.core.groups.consumer.validation import check_epoch, check_instance, check_released, check_request
from ottla.core.groups.modern.family import FOREVER, STEADY_NAMES_MAX, ModernFamily
from ottla.core.groups.modern.members import JOIN_GROUP_MEMBER_EPOCH, LEAVE_GROUP_STATIC_MEMBER_EPOCH
from ottla.core.groups.modern.target_jobs import TargetJobs
from ottla.core.groups.table import Group, GroupKind, GroupTable
from ottla.wire import uuid_text
from ottla.wire.keyed import KeyedRecord
from ottla.wire.types.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from ottla.wire.types.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatResponseAssignment as Assignment,
)
from ottla.wire.types.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatResponseTopicPartitions as AssignedTopic,
)
from ottla.wire.types.group_consumer import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
)

__all__ = ["ConsumerFamily", "Migration", "Upgrade"]

log = logging.getLogger(__name__)

RESOLUTION_PAUSE_MS = 1
"""Between two slices of resolving patterns, so that others get their turn."""
MEMBER_TIMERS = ("session", "rebalance", "join", "sync")


class Upgrade(msgspec.Struct, frozen=True):
    """A group that a consumer joins: as it will be, and what that takes if it is a classic group until now."""

    group: ConsumerGroup
    records: Sequence[KeyedRecord] = ()
    release: Callable[[], Result] = lambda: NOTHING
    """Gives the replies to whoever waits in the classic group, and the deadlines that change. Called when nothing can
    refuse the join any more: until then the classic group may have to go on as it is."""


class Migration(Protocol):
    """Groups that change their kind while members are in them."""

    def upgrade(self, group: Group, context: Context) -> Upgrade:
        """ClassicStep a classic group into a consumer group. Reject if it must stay."""
        ...

    def downgrade(
        self, group: ConsumerGroup, leaving: Sequence[ConsumerGroupMember], context: Context
    ) -> Result | None:
        """ClassicStep a consumer group into a classic one, if that is due once these members are gone."""
        ...


class ConsumerFamily(ModernFamily[ConsumerGroup]):
    name = FAMILY
    kind = GroupKind.CONSUMER
    response_type = ConsumerGroupHeartbeatResponse

    def __init__(self, table: GroupTable) -> None:
        self.target_jobs = TargetJobs(FAMILY, TARGET_SOURCE, self._get)
        super().__init__(
            table,
            ConsumerGroup,
            ConsumerGroupMetadataKey,
            {
                ConsumerGroupMetadataKey: ConsumerGroup.replay_group,
                ConsumerGroupPartitionMetadataKey: ConsumerGroup.replay_old_metadata,
                ConsumerGroupMemberMetadataKey: ConsumerGroup.replay_member,
                ConsumerGroupTargetAssignmentMetadataKey: ConsumerGroup.replay_target_epoch,
                ConsumerGroupTargetAssignmentMemberKey: ConsumerGroup.replay_target,
                ConsumerGroupCurrentMemberAssignmentKey: ConsumerGroup.replay_current,
                ConsumerGroupRegularExpressionKey: ConsumerGroup.replay_regex,
            },
            {"regex": self._go_on_resolving, **self.target_jobs.deadlines},
        )
        self.migration: Migration | None = None
        """None: groups keep their kind as long as they have members."""
        self.memory = Memory(self.topic_sets, self.target_jobs)
        self.handlers: Mapping[type, Callable[[Any, Context], Result]] = {
            ConsumerGroupHeartbeatRequest: self.heartbeat,
            DescribeConsumerGroup: self.describe,
        }

    # --- heartbeats ---------------------------------------------------------------------------------------------------

    def _check(self, request: ConsumerGroupHeartbeatRequest, context: Context) -> None:
        check_served(context.world)
        group = self._get(request.group_id)
        settings = read_settings(context.world, request.group_id) if group is None else group.settings(context.world)
        check_request(request, context.api_version, settings.assignors)

    def _step(self, request: ConsumerGroupHeartbeatRequest, context: Context) -> Result:
        upgrade = self._group_for(request, context)
        group = upgrade.group
        settings = group.settings(context.world)
        group.check_room(request.member_id, settings.max_size)
        step = self._step_of(group, request, context)
        step.update(_updated(step.member, request, context))
        step.update_regex()
        step.raise_epoch(step.has_names_changed or (step.has_regex_changed and step.is_regex_known))
        step.advance(request.topic_partitions)
        response = self._response(step, request, context)
        session = self.renewed_session(group, step.member.member_id, context.now_ms + settings.session_timeout_ms)
        released = upgrade.release()
        is_same_again = response.assignment is None or request.topic_partitions is not None
        if not step.records and not step.timers and not upgrade.records and is_same_again:
            self._remember_if_quiet(step, request, response, context)
        return Result(
            records=[*upgrade.records, *step.records],
            replies=[*released.replies, Reply(context.token, response)],
            timers=[*released.timers, *step.timers, session],
            # The target of a large group may need more than one batch. A crash between two of them leaves a target that
            # is older than the group, so that the next heartbeat computes it anew. A conversion is whole or not at all.
            is_atomic=bool(upgrade.records),
        )

    def _group_for(self, request: ConsumerGroupHeartbeatRequest, context: Context) -> Upgrade:
        """The group, made or converted if need be."""
        group = self._table.get(request.group_id)
        if isinstance(group, ConsumerGroup):
            return Upgrade(group)
        is_joining = request.member_epoch == JOIN_GROUP_MEMBER_EPOCH
        if group is None and is_joining:
            return Upgrade(ConsumerGroup(request.group_id))
        if group is not None and group.kind is GroupKind.CLASSIC and is_joining:
            if group.is_empty:
                return Upgrade(ConsumerGroup(request.group_id), group.tombstones())
            if self.migration is not None:
                return self.migration.upgrade(group, context)
        raise self._not_found(request.group_id, group)

    def _step_of(self, group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest, context: Context) -> ConsumerStep:
        """Find the member who asks, or make it."""
        member_id = request.member_id or new_member_id(context)
        existing = group.static_member(request.instance_id)
        is_joining = request.member_epoch == JOIN_GROUP_MEMBER_EPOCH
        if request.instance_id is not None and not is_joining:
            check_instance(existing, request.instance_id, member_id)
        member = group.members.get(member_id) or (
            ConsumerGroupMember(member_id=member_id) if is_joining else group.member(member_id)
        )
        check_epoch(member, request.member_epoch, request.topic_partitions)
        step = ConsumerStep(self.memory, group, member, context)
        if existing is not None and is_joining:
            if not existing.uses_classic_protocol:
                check_released(existing, member_id)
            step.replace(existing)
        return step

    def _response(
        self, step: ConsumerStep, request: ConsumerGroupHeartbeatRequest, context: Context
    ) -> ConsumerGroupHeartbeatResponse:
        """The assignment is told when it changed, and to whoever may not know it: who joins, tells everything, or may
        not have heard of the last change."""
        has_subscription = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
        is_full = request.rebalance_timeout_ms != -1 and has_subscription and request.topic_partitions is not None
        has_changed = _partitions_differ(step.member, step.updated)
        is_told = request.member_epoch == 0 or is_full or has_changed or _may_not_have_heard(step, request)
        if request.member_epoch == 0 and step.member.member_epoch > 0 and has_changed:
            # A second join of a member. If it is a late copy of the first, nobody waits for this answer.
            step.group.unheard.add(step.updated.member_id)
        elif is_told:
            step.group.unheard.discard(step.updated.member_id)
        return ConsumerGroupHeartbeatResponse(
            member_id=step.updated.member_id,
            member_epoch=step.updated.member_epoch,
            heartbeat_interval_ms=step.group.settings(context.world).heartbeat_interval_ms,
            assignment=_assignment(step.updated) if is_told else None,
        )

    def _remember_if_quiet(
        self,
        step: ConsumerStep,
        request: ConsumerGroupHeartbeatRequest,
        response: ConsumerGroupHeartbeatResponse,
        context: Context,
    ) -> None:
        """Remember a heartbeat that changed nothing, if the next one will not change anything either."""
        group = step.group
        is_quiet = group.group_epoch <= group.assignment_epoch and group.group_id not in self.memory.resolutions
        if not is_quiet or not step.updated.is_reconciled_to(group.assignment_epoch):
            return
        if len(request.subscribed_topic_names or ()) > STEADY_NAMES_MAX:
            return
        until_wall_ms: float = FOREVER
        if group.resolved or group.regexes():
            interval_ms = group.settings(context.world).regex_refresh_interval_ms
            until_wall_ms = refresh_at_ms(
                group, group.regexes(), self.memory.created_version, interval_ms, context.wall_ms
            )
        self._remember(group, request, response, context, until_wall_ms)

    # --- leaving ------------------------------------------------------------------------------------------------------

    def _leaver(self, group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupMember:
        if request.instance_id is None:
            return group.member(request.member_id)
        return check_instance(group.static_member(request.instance_id), request.instance_id, request.member_id)

    def _static_leave_record(self, group: ConsumerGroup, member: ConsumerGroupMember) -> KeyedRecord:
        """Epoch 0 of what it owns lets whoever takes its place commit from the first moment."""
        away = msgspec.structs.replace(
            member,
            member_epoch=LEAVE_GROUP_STATIC_MEMBER_EPOCH,
            assigned={topic_id: dict.fromkeys(epochs, 0) for topic_id, epochs in member.assigned.items()},
            pending_revocation={},
        )
        return current_record(group.group_id, away)

    def fence(
        self,
        group: ConsumerGroup,
        members: Sequence[ConsumerGroupMember],
        context: Context,
        replies: Sequence[Reply] = (),
    ) -> Result:
        """Remove members and raise the group epoch."""
        if not members:
            return Result(replies=replies)
        if self.migration is not None:
            result = self.migration.downgrade(group, members, context)
            if result is not None:
                return result._replace(replies=[*replies, *result.replies])
        return Result(
            records=self._removal(group, members, context),
            replies=replies,
            timers=cancel_timers(group.group_id, [member.member_id for member in members]),
        )

    def _removal(
        self, group: ConsumerGroup, members: Sequence[ConsumerGroupMember], context: Context
    ) -> list[KeyedRecord]:
        records = [each for member in members for each in member_tombstones(group.group_id, member.member_id)]
        uses = Counter(member.subscription.regex for member in members if member.subscription.regex)
        gone = sorted(regex for regex, count in uses.items() if count == group.regex_count(regex))
        records += [regex_tombstone(group.group_id, regex) for regex in gone]
        topics = group.subscribed_topics_with(members)
        metadata_hash = self.memory.topic_sets.metadata_hash(topics, context.world.topics)
        return [*records, epoch_record(group.group_id, group.group_epoch + 1, metadata_hash)]

    # --- describing ---------------------------------------------------------------------------------------------------

    def describe(self, request: DescribeConsumerGroup, context: Context) -> Result:
        described = describe(self._existing(request.group_id), context)
        return Result(replies=[Reply(context.token, described)])

    # --- deadlines ----------------------------------------------------------------------------------------------------

    def _go_on_resolving(self, key: tuple[str, str, str, str], context: Context) -> Result:
        group_id = key[2]
        resolution = self.memory.resolutions.get(group_id)
        if resolution is None:
            return NOTHING
        found = resolution.step()
        if found is None:
            return Result(timers=[Timer(timer_key("regex", group_id), context.now_ms + RESOLUTION_PAUSE_MS)])
        del self.memory.resolutions[group_id]
        group = self._get(group_id)
        return NOTHING if group is None else self._take_resolved(group, found, context)

    def _take_resolved(self, group: ConsumerGroup, found: Mapping[str, ResolvedRegex], context: Context) -> Result:
        """Write what patterns match, and raise the group epoch if that changed."""
        used = {regex: resolved for regex, resolved in found.items() if group.regex_count(regex)}
        records = [regex_record(group.group_id, regex, resolved) for regex, resolved in used.items()]
        matches = {**{regex: each.topics for regex, each in group.resolved.items()}}
        has_changed = any(matches.get(regex, frozenset()) != each.topics for regex, each in used.items())
        matches.update((regex, each.topics) for regex, each in used.items())
        topics = frozenset().union(
            *(each.names for each in group.subscriptions.counts),
            *(matches[each.regex] for each in group.subscriptions.counts if each.regex in matches),
        )
        metadata_hash = self.memory.topic_sets.metadata_hash(topics, context.world.topics)
        if has_changed or metadata_hash != group.metadata_hash:
            records.append(epoch_record(group.group_id, group.group_epoch + 1, metadata_hash))
        return Result(records=records)

    def _member_timers(self, group: ConsumerGroup, member: ConsumerGroupMember, context: Context) -> Iterable[Timer]:
        session, *_ = super()._member_timers(group, member, context)
        if member.classic is not None:
            return (session._replace(at_ms=context.now_ms + member.classic.session_timeout_ms),)
        if not member.must_revoke:
            return (session,)
        key = timer_key("rebalance", group.group_id, member.member_id)
        return (session, Timer(key, context.now_ms + member.rebalance_timeout_ms))

    # --- the shard's life ---------------------------------------------------------------------------------------------

    def settled(self, subject: Any, outcome: Outcome, context: Context) -> Result:  # noqa: ANN401
        return self.target_jobs.settled(subject, outcome, context)

    def loaded(self, context: Context) -> Result:
        self.memory.created_version = context.world.topics.version
        return super().loaded(context)

    def unloaded(self) -> Iterable[Any]:
        self.memory.resolutions.clear()
        return super().unloaded()

    def topics_changed(self, change: TopicsChange, context: Context) -> Result:
        if change.created:
            self.memory.created_version = context.world.topics.version
            for group in self._groups():
                if group.regexes():
                    group.changed()
        return super().topics_changed(change, context)


def new_member_id(context: Context) -> str:
    """A random id that no command line takes for an option."""
    while (text := uuid_text(context.world.new_uuid())).startswith("-"):
        pass
    return text


def cancel_timers(group_id: str, member_ids: Iterable[str]) -> list[Timer]:
    return [Timer(timer_key(what, group_id, member_id), None) for member_id in member_ids for what in MEMBER_TIMERS]


def _updated(
    member: ConsumerGroupMember, request: ConsumerGroupHeartbeatRequest, context: Context
) -> ConsumerGroupMember:
    """The member with what the request gives; null and -1 leave things as they are."""
    names, regex = member.subscription
    if request.subscribed_topic_names is not None:
        names = frozenset(request.subscribed_topic_names)
    if request.subscribed_topic_regex is not None:
        regex = request.subscribed_topic_regex
    timeout_ms = request.rebalance_timeout_ms
    return msgspec.structs.replace(
        member,
        instance_id=request.instance_id if request.instance_id is not None else member.instance_id,
        rack_id=request.rack_id if request.rack_id is not None else member.rack_id,
        rebalance_timeout_ms=timeout_ms if timeout_ms != -1 else member.rebalance_timeout_ms,
        server_assignor=request.server_assignor if request.server_assignor is not None else member.server_assignor,
        subscription=Subscription(names, regex),
        client_id=context.client_id,
        client_host=context.client_host,
        classic=None,
    )


def _may_not_have_heard(step: ConsumerStep, request: ConsumerGroupHeartbeatRequest) -> bool:
    """Whether the member's last change was told to a join that it may have given up, and it does not show that it knows
    of it. Apache Kafka leaves the partitions idle then."""
    if step.updated.member_id not in step.group.unheard:
        return False
    owned = {each.topic_id: tuple(sorted(each.partitions)) for each in request.topic_partitions or ()}
    if request.topic_partitions is not None and owned == step.updated.target():
        step.group.unheard.discard(step.updated.member_id)
        return False
    return True


def _partitions_differ(member: ConsumerGroupMember, updated: ConsumerGroupMember) -> bool:
    before, after = member.assigned, updated.assigned
    if before is after:
        return False
    return before.keys() != after.keys() or any(before[each].keys() != after[each].keys() for each in after)


def _assignment(member: ConsumerGroupMember) -> Assignment:
    return Assignment(
        tuple(AssignedTopic(topic_id, tuple(sorted(member.assigned[topic_id]))) for topic_id in sorted(member.assigned))
    )
