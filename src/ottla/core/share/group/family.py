"""Share groups: their requests, records and deadlines.

A heartbeat that changes nothing is by far the most frequent request. The group remembers the last such heartbeat of
each member and its answer (`Steady`); the same heartbeat again costs a comparison and a moved deadline, until a record
of the group is replayed or a topic changes.

Deadlines: `session` of a member, which removes it; `wait` of an answer that waits for state; `initialize` of a group
that was getting state when its coordinator was lost.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from ottla.core.coordinator.contract import NOTHING, Context, Outcome, Reply, Result, Timer, TopicsChange
from ottla.core.groups.epochs import STEADY_NAMES_MAX
from ottla.core.groups.table import GroupTable
from ottla.core.groups.topic_sets import TopicSets
from ottla.core.share.group.describing import DescribeShareGroup, ListShareState, describe
from ottla.core.share.group.effects import DeleteState, InitializeState, NewState, Refusals, refusals_of
from ottla.core.share.group.group import ShareGroup, Steady, share_group
from ottla.core.share.group.initializing import WAIT_MS, Initializations, Waiting
from ottla.core.share.group.members import Member
from ottla.core.share.group.offsets import altered, check_unused, deleted, plan_alteration, plan_deletion
from ottla.core.share.group.records import epoch_record, member_tombstones, state_record
from ottla.core.share.group.replaying import GroupReplay
from ottla.core.share.group.state_topics import StateTopics
from ottla.core.share.group.stepping import Step
from ottla.core.share.group.validation import check_epoch, check_room
from ottla.wire.keyed import KeyedRecord
from ottla.wire.types.alter_share_group_offsets import AlterShareGroupOffsetsRequest
from ottla.wire.types.delete_share_group_offsets import DeleteShareGroupOffsetsRequest
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


class ShareFamily:
    name = FAMILY

    def __init__(self, table: GroupTable) -> None:
        self._table = table
        self._topic_sets = TopicSets()
        self._initializations = Initializations()
        self.handlers: Mapping[type, Callable[[Any, Context], Result]] = {
            ShareGroupHeartbeatRequest: self.heartbeat,
            DescribeShareGroup: self.describe,
            ListShareState: self.list_state,
            AlterShareGroupOffsetsRequest: self.alter_offsets,
            DeleteShareGroupOffsetsRequest: self.delete_offsets,
        }
        self.replays = GroupReplay(table).by_key

    # --- heartbeats ---------------------------------------------------------------------------------------------------

    def heartbeat(self, request: ShareGroupHeartbeatRequest, context: Context) -> Result:
        group = self._table.get(request.group_id)
        if isinstance(group, ShareGroup):
            steady = group.steady.get(request.member_id)
            if (
                steady is not None
                and steady.request == request
                and steady.client_id == context.client_id
                and steady.client_host == context.client_host
                and steady.settings.version == context.world.settings_version
            ):
                group.session_at_ms[request.member_id] = context.now_ms + steady.settings.session_timeout_ms
                return Result((), (Reply(context.token, steady.response),))
        return self._leave(request, context) if request.member_epoch < 0 else self._beat(request, context)

    def _beat(self, request: ShareGroupHeartbeatRequest, context: Context) -> Result:
        group = self._group_for(request)
        settings = group.settings(context.world)
        check_room(group, request.member_id, settings.max_size)
        is_joining = request.member_epoch == 0
        known = group.members.get(request.member_id)
        member = known or (Member(member_id=request.member_id) if is_joining else group.member(request.member_id))
        check_epoch(member, request.member_epoch)
        step = Step(group, self._topic_sets, context)
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
        session = self._renewed_session(group, updated.member_id, context.now_ms + settings.session_timeout_ms)
        if not step.records:
            self._remember(step, updated, request, response, context)
        # The target of a large group may need more than one batch. A crash between two of them leaves a target that is
        # older than the group, so that the next heartbeat computes it anew.
        result = Result(step.records, (Reply(context.token, response),), (session,), is_atomic=False)
        if new_states:
            effect = self._begin(group.group_id, step.group_epoch, new_states, context)
            return self._withheld(result._replace(effects=(effect,)), group.group_id, effect.number)
        subscribed = self._topic_sets.existing(updated.names, context.world.topics).topic_ids
        if is_joining and self._initializations.is_under_way(group.group_id, subscribed):
            return self._withheld(result, group.group_id, self._initializations.next_number())
        return result

    def _group_for(self, request: ShareGroupHeartbeatRequest) -> ShareGroup:
        group = self._table.get(request.group_id)
        if group is None and request.member_epoch == 0:
            return ShareGroup(request.group_id)
        return share_group(request.group_id, group)

    def _fresh_ids(self, group: ShareGroup, context: Context) -> frozenset[bytes]:
        since_ms = context.now_ms - group.settings(context.world).initialize_retry_interval_ms
        return self._initializations.fresh_ids(group.group_id, group.state_topics.initializing, since_ms)

    def _renewed_session(self, group: ShareGroup, member_id: str, at_ms: int) -> Timer:
        """A member has shown that it lives."""
        group.session_at_ms[member_id] = at_ms
        return Timer(_session_key(group.group_id, member_id), at_ms)

    def _remember(
        self,
        step: Step,
        member: Member,
        request: ShareGroupHeartbeatRequest,
        response: ShareGroupHeartbeatResponse,
        context: Context,
    ) -> None:
        """File a heartbeat that changed nothing, if the next one will not change anything either."""
        group = step.group
        is_quiet = group.group_epoch <= group.assignment_epoch and not group.state_topics.initializing
        is_short = len(request.subscribed_topic_names or ()) <= STEADY_NAMES_MAX
        if is_quiet and is_short and member.member_epoch == group.assignment_epoch:
            group.steady[member.member_id] = Steady(
                request, context.client_id, context.client_host, group.settings(context.world), response
            )

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
            log.warning("group %s: %d share partitions got no state: %s", effect.group_id, len(refusals), code.name)
        waiting = self._initializations.take(effect.number) if effect.is_replacing else None
        replies = () if waiting is None else (Reply(waiting.token, altered(waiting.response, refusals)),)
        group = self._table.get(effect.group_id)
        if not isinstance(group, ShareGroup):
            return self._answer_all(effect.group_id, replies)
        records = _state_records(group, group.state_topics.settle(latest, refusals))
        return Result(records, replies, after=_Initialized(self.name, effect.group_id))

    def _go_on(self, group_id: str, context: Context) -> Result:
        """What those who waited for state are told: what follows from it, without waiting for another heartbeat."""
        group = self._table.get(group_id)
        if not isinstance(group, ShareGroup):
            return self._answer_all(group_id)
        if self._initializations.is_under_way(group_id, frozenset(group.state_topics.initializing)):
            return NOTHING
        waiting = self._initializations.take_all(group_id)
        if not any(each.member_id in group.members for each in waiting):
            return _answered(waiting)
        step = Step(group, self._topic_sets, context)
        step.raise_epoch()
        step.find_target(at_once=True)
        replies = []
        for each in waiting:
            member = group.members.get(each.member_id)
            response = each.response if member is None else _continued(step, member, each.response, context)
            replies.append(Reply(each.token, response))
        return Result(step.records, replies, [_no_wait(each) for each in waiting], is_atomic=False)

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

    def _leave(self, request: ShareGroupHeartbeatRequest, context: Context) -> Result:
        group = share_group(request.group_id, self._table.get(request.group_id))
        member = group.member(request.member_id)
        response = ShareGroupHeartbeatResponse(member_id=member.member_id, member_epoch=request.member_epoch)
        return self._fence(group, member, context)._replace(replies=(Reply(context.token, response),))

    def _fence(self, group: ShareGroup, member: Member, context: Context) -> Result:
        """Remove a member and raise the group epoch."""
        topics = group.subscribed_topics_with(member)
        metadata_hash = self._topic_sets.metadata_hash(topics, context.world.topics)
        records = [
            *member_tombstones(group.group_id, member.member_id),
            epoch_record(group.group_id, group.group_epoch + 1, metadata_hash),
        ]
        return Result(records, timers=(Timer(_session_key(group.group_id, member.member_id), None),))

    # --- administrators -----------------------------------------------------------------------------------------------

    def describe(self, request: DescribeShareGroup, context: Context) -> Result:
        group = share_group(request.group_id, self._table.get(request.group_id))
        return Result(replies=(Reply(context.token, describe(group, context)),))

    def list_state(self, request: ListShareState, context: Context) -> Result:
        group = self._table.get(request.group_id)
        found = group.state_topics.initialized if isinstance(group, ShareGroup) else {}
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
        group = self._table.get(effect.group_id)
        if not isinstance(group, ShareGroup):
            return Result(replies=replies)
        failed = {topic_id for topic_id, _ in refusals}
        gone = {topic_id for topic_id, _ in effect.partitions} - failed
        return Result(_state_records(group, group.state_topics.deleted(gone)), replies)

    # --- deadlines ----------------------------------------------------------------------------------------------------

    def expire(self, key: Any, context: Context) -> Result:  # noqa: ANN401
        _, what, *rest = key
        if what == "wait":
            waiting = self._initializations.take(rest[0])
            return NOTHING if waiting is None else _answered([waiting])
        group = self._table.get(rest[0])
        if not isinstance(group, ShareGroup):
            return NOTHING
        return self._begin_again(group, context) if what == "initialize" else self._end_session(group, key, context)

    def _end_session(self, group: ShareGroup, key: tuple[str, ...], context: Context) -> Result:
        member_id = key[-1]
        member = group.members.get(member_id)
        if member is None:
            return NOTHING
        at_ms = group.session_at_ms.get(member_id, 0)
        if at_ms > context.now_ms:
            return Result(timers=(Timer(key, at_ms),))
        log.info("group %s: member %s is removed, for it was silent too long", group.group_id, member_id)
        return self._fence(group, member, context)

    def _begin_again(self, group: ShareGroup, context: Context) -> Result:
        """Ask anew for what was being asked for when the coordinator was lost. What an administrator wanted changed has
        state, old or new, and keeps it: he was not answered."""
        unfinished = Step(group, self._topic_sets, context).unfinished()
        records = _state_records(group, group.state_topics.settle(group.state_topics.changing(), ()))
        effects = [self._begin(group.group_id, group.group_epoch, unfinished, context)] if unfinished else []
        return Result(records, effects=effects)

    # --- the shard's life ---------------------------------------------------------------------------------------------

    def loaded(self, context: Context) -> Result:
        timers = []
        for group in self._groups():
            at_ms = context.now_ms + group.settings(context.world).session_timeout_ms
            timers += [Timer(_session_key(group.group_id, member_id), at_ms) for member_id in group.members]
            if group.state_topics.initializing:
                timers.append(Timer((self.name, "initialize", group.group_id), context.now_ms))
        return Result(timers=timers)

    def unloaded(self) -> Iterable[Any]:
        return self._initializations.tokens()

    def topics_changed(self, change: TopicsChange, context: Context) -> Result:
        names = change.names()
        gone = {topic_id for _, topic_id in change.deleted}
        self._topic_sets.forget(names)
        records: list[KeyedRecord] = []
        for group in self._groups():
            if not group.subscribed_topics().isdisjoint(names):
                group.refresh_due = True
                group.steady.clear()
            if gone:
                records += _state_records(group, group.state_topics.without(gone))
        return Result(records, is_atomic=False) if records else NOTHING

    def _groups(self) -> Iterable[ShareGroup]:
        return self._table.of_kind(ShareGroup)

    def hard_state(self) -> Mapping[Any, Any]:
        return {group.group_id: group.hard_state() for group in self._groups()}

    def replay_marker(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        """No record of a share group is part of a transaction."""


def _session_key(group_id: str, member_id: str) -> tuple[str, ...]:
    return (FAMILY, "session", group_id, member_id)


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


def _updated(member: Member, request: ShareGroupHeartbeatRequest, context: Context) -> Member:
    """The member with what the request gives; null leaves things as they are."""
    names = request.subscribed_topic_names
    return replace(
        member,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        names=member.names if names is None else frozenset(names),
        client_id=context.client_id,
        client_host=context.client_host,
    )


def _interval_ms(step: Step, heartbeat_interval_ms: int) -> int:
    """A member that joins between two assignments is told to ask again when the next one is due."""
    left_ms = step.target_left_ms()
    return heartbeat_interval_ms if not left_ms else min(heartbeat_interval_ms, left_ms + _AFTER_DEADLINE_MS)


def _continued(
    step: Step, member: Member, first: ShareGroupHeartbeatResponse, context: Context
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


def _assignment(member: Member) -> Assignment:
    return Assignment(tuple(AssignedTopic(topic_id, member.assigned[topic_id]) for topic_id in sorted(member.assigned)))
