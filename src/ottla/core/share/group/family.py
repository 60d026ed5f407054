"""Share groups: their requests, records and deadlines.

Deadlines, beside `session` of a member: `wait` of an answer that waits for state; `initialize` of a group that was
getting state when its coordinator was lost; `target`, when the next part of a target is gathered or written that is
computed outside the event loop.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from ottla.core.coordinator.contract import NOTHING, Context, Outcome, Reply, Result, Timer, TopicsChange
from ottla.core.groups.modern.family import STEADY_NAMES_MAX, ModernFamily
from ottla.core.groups.modern.members import JOIN_GROUP_MEMBER_EPOCH
from ottla.core.groups.modern.target_jobs import TargetJobs
from ottla.core.groups.table import GroupKind, GroupTable
from ottla.core.share.group.effects import DeleteState, InitializeState, NewState, Refusals, refusals_of
from ottla.core.share.group.group import ShareGroup
from ottla.core.share.group.group_description import DescribeShareGroup, ListShareState, describe
from ottla.core.share.group.heartbeat import TARGET_SOURCE, ShareStep
from ottla.core.share.group.initialization import WAIT_MS, Initializations, Waiting
from ottla.core.share.group.members import ShareGroupMember
from ottla.core.share.group.offsets import altered, check_unused, deleted, plan_alteration, plan_deletion
from ottla.core.share.group.records import epoch_record, member_tombstones, state_record
from ottla.core.share.group.state_topics import StateTopics
from ottla.core.share.group.validation import check_epoch
from ottla.wire.keyed import KeyedRecord
from ottla.wire.types.alter_share_group_offsets import AlterShareGroupOffsetsRequest
from ottla.wire.types.delete_share_group_offsets import DeleteShareGroupOffsetsRequest
from ottla.wire.types.group_share import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupMemberMetadataKey,
    ShareGroupMetadataKey,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMetadataKey,
)
from ottla.wire.types.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from ottla.wire.types.share_group_heartbeat import ShareGroupHeartbeatResponseAssignment as Assignment
from ottla.wire.types.share_group_heartbeat import ShareGroupHeartbeatResponseTopicPartitions as AssignedTopic

__all__ = ["ShareFamily"]

log = logging.getLogger(__name__)

FAMILY: Final = "share"
_AFTER_DEADLINE_MS: Final = 5
"""So that a heartbeat that waits for a deadline comes after it."""


class _Written(NamedTuple):
    """The records of somebody who waits are committed, or cannot be."""

    family: str
    number: int


class _Initialized(NamedTuple):
    """It is committed, or cannot be, that share partitions of a group have state."""

    family: str
    group_id: str


class ShareFamily(ModernFamily[ShareGroup]):
    name = FAMILY
    kind = GroupKind.SHARE
    response_type = ShareGroupHeartbeatResponse

    def __init__(self, table: GroupTable) -> None:
        self.target_jobs = TargetJobs(FAMILY, TARGET_SOURCE, self._get)
        super().__init__(
            table,
            ShareGroup,
            ShareGroupMetadataKey,
            {
                ShareGroupMemberMetadataKey: ShareGroup.replay_member,
                ShareGroupMetadataKey: ShareGroup.replay_group,
                ShareGroupTargetAssignmentMetadataKey: ShareGroup.replay_target_epoch,
                ShareGroupTargetAssignmentMemberKey: ShareGroup.replay_target,
                ShareGroupCurrentMemberAssignmentKey: ShareGroup.replay_current,
                ShareGroupStatePartitionMetadataKey: ShareGroup.replay_state_topics,
            },
            {"wait": self._stop_waiting, "initialize": self._begin_again, **self.target_jobs.deadlines},
        )
        self._initializations = Initializations()
        self.handlers: Mapping[type, Callable[[Any, Context], Result]] = {
            ShareGroupHeartbeatRequest: self.heartbeat,
            DescribeShareGroup: self.describe,
            ListShareState: self.list_state,
            AlterShareGroupOffsetsRequest: self.alter_offsets,
            DeleteShareGroupOffsetsRequest: self.delete_offsets,
        }

    # --- heartbeats ---------------------------------------------------------------------------------------------------

    def _step(self, request: ShareGroupHeartbeatRequest, context: Context) -> Result:
        group = self._group_for(request)
        settings = group.settings(context.world)
        group.check_room(request.member_id, settings.max_size)
        is_joining = request.member_epoch == JOIN_GROUP_MEMBER_EPOCH
        known = group.members.get(request.member_id)
        member = known or (
            ShareGroupMember(member_id=request.member_id) if is_joining else group.member(request.member_id)
        )
        check_epoch(member, request.member_epoch)
        step = ShareStep(group, self.topic_sets, self.target_jobs, context)
        updated = _updated(member, request, context)
        step.update(member, updated)
        step.raise_epoch()
        step.find_target()
        updated = step.reconcile(updated)
        new_states = step.initialize(self._fresh_ids(group, context))
        is_told = is_joining or request.subscribed_topic_names is not None or updated.assigned != member.assigned
        response = ShareGroupHeartbeatResponse(
            member_id=updated.member_id,
            member_epoch=updated.member_epoch,
            heartbeat_interval_ms=_interval_ms(step, settings.heartbeat_interval_ms),
            assignment=_assignment(updated) if is_told else None,
        )
        session = self.renewed_session(group, updated.member_id, context.now_ms + settings.session_timeout_ms)
        if not step.records:
            self._remember_if_quiet(step, updated, request, response, context)
        # The target of a large group may need more than one batch. A crash between two of them leaves a target that is
        # older than the group, so that the next heartbeat computes it anew.
        timers = (*step.timers, session)
        result = Result(step.records, (Reply(context.token, response),), timers, is_atomic=False)
        if new_states:
            effect = self._begin(group.group_id, step.group_epoch, new_states, context)
            return self._withheld(result._replace(effects=(effect,)), group.group_id, effect.number)
        subscribed = self.topic_sets.existing(updated.names, context.world.topics).topic_ids
        if is_joining and self._initializations.is_under_way(group.group_id, subscribed):
            return self._withheld(result, group.group_id, self._initializations.next_number())
        return result

    def _group_for(self, request: ShareGroupHeartbeatRequest) -> ShareGroup:
        if request.member_epoch == JOIN_GROUP_MEMBER_EPOCH and self._table.get(request.group_id) is None:
            return ShareGroup(request.group_id)
        return self._existing(request.group_id)

    def _fresh_ids(self, group: ShareGroup, context: Context) -> frozenset[bytes]:
        since_ms = context.now_ms - group.settings(context.world).initialize_retry_interval_ms
        return self._initializations.fresh_ids(group.group_id, group.state_topics.initializing, since_ms)

    def _remember_if_quiet(
        self,
        step: ShareStep,
        member: ShareGroupMember,
        request: ShareGroupHeartbeatRequest,
        response: ShareGroupHeartbeatResponse,
        context: Context,
    ) -> None:
        """Remember a heartbeat that changed nothing, if the next one will not change anything either."""
        group = step.group
        is_quiet = group.group_epoch <= group.assignment_epoch and not group.state_topics.initializing
        is_short = len(request.subscribed_topic_names or ()) <= STEADY_NAMES_MAX
        if is_quiet and is_short and member.member_epoch == group.assignment_epoch:
            self._remember(group, request, response, context)

    # --- state for share partitions -----------------------------------------------------------------------------------

    def _begin(
        self,
        group_id: str,
        state_epoch: int,
        partitions: tuple[NewState, ...],
        context: Context,
        *,
        is_replacing: bool = False,
    ) -> InitializeState:
        number = self._initializations.next_number()
        effect = InitializeState(self.name, number, group_id, state_epoch, partitions, is_replacing)
        self._initializations.begin(effect, context.now_ms)
        return effect

    def _withheld(self, result: Result, group_id: str, number: int) -> Result:
        """A heartbeat's result, whose answer waits for state."""
        ((token, response),) = result.replies
        self._initializations.wait(Waiting(number, token, group_id, response.member_id, response))
        return result._replace(replies=(), after=_Written(self.name, number))

    def settled(self, subject: Any, outcome: Outcome, context: Context) -> Result:  # noqa: ANN401
        if isinstance(subject, InitializeState):
            return self._made(subject, refusals_of(subject, outcome))
        if isinstance(subject, DeleteState):
            return self._deleted(subject, refusals_of(subject, outcome))
        if isinstance(subject, _Initialized):
            return self._go_on(subject.group_id, context) if outcome.is_ok else self._answer_all(subject.group_id)
        if self.target_jobs.concerns(subject):
            return self.target_jobs.settled(subject, outcome, context)
        return self._written(subject.number, context) if outcome.is_ok else self._refuse(subject.number, outcome)

    def _written(self, number: int, context: Context) -> Result:
        """From now on a member does not wait long. An administrator wants to know."""
        if not self._initializations.has_member(number):
            return NOTHING
        return Result(timers=(Timer((self.name, "wait", number), context.now_ms + WAIT_MS),))

    def _made(self, effect: InitializeState, refusals: Refusals) -> Result:
        """Share partitions have state, but for some."""
        latest = self._initializations.end(effect)
        if refusals:
            code = next(iter(refusals.values())).code
            log.warning(
                "group %s: cannot initialize the state of %d share partitions: %s",
                effect.group_id,
                len(refusals),
                code.name,
            )
        waiting = self._initializations.take(effect.number) if effect.is_replacing else None
        replies = () if waiting is None else (Reply(waiting.token, altered(waiting.response, refusals)),)
        group = self._get(effect.group_id)
        if group is None:
            return self._answer_all(effect.group_id, replies)
        records = _state_records(group, group.state_topics.settle(latest, refusals))
        return Result(records, replies, after=_Initialized(self.name, effect.group_id))

    def _go_on(self, group_id: str, context: Context) -> Result:
        """What those who waited for state are told: what follows from it, without waiting for another heartbeat."""
        group = self._get(group_id)
        if group is None:
            return self._answer_all(group_id)
        if self._initializations.is_under_way(group_id, frozenset(group.state_topics.initializing)):
            return NOTHING
        waiting = self._initializations.take_all(group_id)
        if not any(each.member_id in group.members for each in waiting):
            return _answered(waiting)
        step = ShareStep(group, self.topic_sets, self.target_jobs, context)
        step.raise_epoch()
        step.find_target(at_once=True)
        replies = []
        for each in waiting:
            member = group.members.get(each.member_id)
            response = each.response if member is None else _continued(step, member, each.response, context)
            replies.append(Reply(each.token, response))
        timers = [*step.timers, *(_no_wait(each) for each in waiting)]
        return Result(step.records, replies, timers, is_atomic=False)

    def _answer_all(self, group_id: str, replies: Iterable[Reply] = ()) -> Result:
        """Nothing has come of it: those who waited are told what was decided first."""
        result = _answered(self._initializations.take_all(group_id))
        return result._replace(replies=(*replies, *result.replies))

    def _refuse(self, number: int, outcome: Outcome) -> Result:
        """What somebody waits for was not written."""
        waiting = self._initializations.take(number)
        if waiting is None:
            return NOTHING
        refused = type(waiting.response)(error_code=outcome.error, error_message=outcome.message)
        return Result(replies=(Reply(waiting.token, refused),), timers=(_no_wait(waiting),))

    # --- leaving ------------------------------------------------------------------------------------------------------

    def fence(
        self, group: ShareGroup, members: Sequence[ShareGroupMember], context: Context, replies: Sequence[Reply] = ()
    ) -> Result:
        (member,) = members
        topics = group.subscribed_topics_with(member)
        metadata_hash = self.topic_sets.metadata_hash(topics, context.world.topics)
        records = [
            *member_tombstones(group.group_id, member.member_id),
            epoch_record(group.group_id, group.group_epoch + 1, metadata_hash),
        ]
        return Result(records, replies, (Timer(self._member_key("session", group, member.member_id), None),))

    # --- administrators -----------------------------------------------------------------------------------------------

    def describe(self, request: DescribeShareGroup, context: Context) -> Result:
        group = self._existing(request.group_id)
        return Result(replies=(Reply(context.token, describe(group, context)),))

    def list_state(self, request: ListShareState, context: Context) -> Result:
        group = self._get(request.group_id)
        found = {} if group is None else group.state_topics.initialized
        return Result(replies=(Reply(context.token, found),))

    def alter_offsets(self, request: AlterShareGroupOffsetsRequest, context: Context) -> Result:
        """A group that is not there is made by it."""
        found = self._table.get(request.group_id)
        group = ShareGroup(request.group_id) if found is None else check_unused(request.group_id, found)
        plan = plan_alteration(request, context.world.topics)
        if not plan.partitions:
            return Result(replies=(Reply(context.token, plan.response),))
        effect = self._begin(group.group_id, group.group_epoch, plan.partitions, context, is_replacing=True)
        self._initializations.wait(Waiting(effect.number, context.token, group.group_id, "", plan.response))
        record = state_record(group.group_id, group.state_topics.initialize(plan.topics))
        return Result((record,), effects=(effect,), after=_Written(self.name, effect.number))

    def delete_offsets(self, request: DeleteShareGroupOffsetsRequest, context: Context) -> Result:
        group = check_unused(request.group_id, self._table.get(request.group_id))
        plan = plan_deletion(request, group, context.world.topics)
        if not plan.partitions:
            return Result(replies=(Reply(context.token, plan.response),))
        number = self._initializations.next_number()
        self._initializations.wait(Waiting(number, context.token, group.group_id, "", plan.response))
        effect = DeleteState(self.name, number, group.group_id, plan.partitions)
        records = _state_records(group, plan.state_topics)
        return Result(records, effects=(effect,), after=_Written(self.name, number))

    def _deleted(self, effect: DeleteState, refusals: Refusals) -> Result:
        """Share partitions have no state any more, but for some, which an administrator can try again."""
        waiting = self._initializations.take(effect.number)
        replies = () if waiting is None else (Reply(waiting.token, deleted(waiting.response, refusals)),)
        group = self._get(effect.group_id)
        if group is None:
            return Result(replies=replies)
        failed = {topic_id for topic_id, _ in refusals}
        gone = {topic_id for topic_id, _ in effect.partitions} - failed
        return Result(_state_records(group, group.state_topics.deleted(gone)), replies)

    # --- deadlines ----------------------------------------------------------------------------------------------------

    def _stop_waiting(self, key: tuple[str, str, int], context: Context) -> Result:
        waiting = self._initializations.take(key[2])
        return NOTHING if waiting is None else _answered([waiting])

    def _begin_again(self, key: tuple[str, str, str], context: Context) -> Result:
        """Ask anew for what was being asked for when the coordinator was lost. What an administrator wanted changed has
        state, old or new, and keeps it: he was not answered."""
        group = self._get(key[2])
        if group is None:
            return NOTHING
        unfinished = ShareStep(group, self.topic_sets, self.target_jobs, context).unfinished()
        records = _state_records(group, group.state_topics.settle(group.state_topics.changing(), ()))
        effects = [self._begin(group.group_id, group.group_epoch, unfinished, context)] if unfinished else []
        return Result(records, effects=effects)

    # --- the shard's life ---------------------------------------------------------------------------------------------

    def loaded(self, context: Context) -> Result:
        unfinished = [group.group_id for group in self._groups() if group.state_topics.initializing]
        timers = [Timer((self.name, "initialize", group_id), context.now_ms) for group_id in unfinished]
        return Result(timers=[*super().loaded(context).timers, *timers])

    def unloaded(self) -> Iterable[Any]:
        return self._initializations.tokens()

    def topics_changed(self, change: TopicsChange, context: Context) -> Result:
        super().topics_changed(change, context)
        if not change.deleted:
            return NOTHING
        gone = {topic_id for _, topic_id in change.deleted}
        records = [
            record for group in self._groups() for record in _state_records(group, group.state_topics.without(gone))
        ]
        return Result(records, is_atomic=False) if records else NOTHING


def _no_wait(waiting: Waiting) -> Timer:
    return Timer((FAMILY, "wait", waiting.number), None)


def _answered(waiting: Iterable[Waiting]) -> Result:
    """Those who waited get the answer that was decided first."""
    waiting = list(waiting)
    return Result(
        replies=[Reply(each.token, each.response) for each in waiting], timers=[_no_wait(each) for each in waiting]
    )


def _state_records(group: ShareGroup, state_topics: StateTopics) -> list[KeyedRecord]:
    return [] if state_topics == group.state_topics else [state_record(group.group_id, state_topics)]


def _updated(member: ShareGroupMember, request: ShareGroupHeartbeatRequest, context: Context) -> ShareGroupMember:
    """The member with what the request gives; null leaves things as they are."""
    names = request.subscribed_topic_names
    return replace(
        member,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        names=member.names if names is None else frozenset(names),
        client_id=context.client_id,
        client_host=context.client_host,
    )


def _interval_ms(step: ShareStep, heartbeat_interval_ms: int) -> int:
    """A member that joins between two assignments is told to ask again when the next one is due."""
    left_ms = step.target_left_ms()
    return heartbeat_interval_ms if not left_ms else min(heartbeat_interval_ms, left_ms + _AFTER_DEADLINE_MS)


def _continued(
    step: ShareStep, member: ShareGroupMember, first: ShareGroupHeartbeatResponse, context: Context
) -> ShareGroupHeartbeatResponse:
    """The answer to a member that has waited, with what has come since it was decided."""
    updated = step.reconcile(member)
    is_told = first.assignment is not None or updated.assigned != member.assigned
    return replace(
        first,
        member_epoch=updated.member_epoch,
        heartbeat_interval_ms=step.group.settings(context.world).heartbeat_interval_ms,
        assignment=_assignment(updated) if is_told else None,
    )


def _assignment(member: ShareGroupMember) -> Assignment:
    return Assignment(tuple(AssignedTopic(topic_id, member.assigned[topic_id]) for topic_id in sorted(member.assigned)))
