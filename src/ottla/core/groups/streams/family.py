"""Streams groups behind the interface of the group coordinator.

Descriptions of topologies (KIP-1331) have modules of their own: `description_request` says which member is asked for
one, `description_update` takes it from the member, and `description_query` shows it.

Deadlines, beside `session` and `rebalance` of a member: `delay` of a group that was empty, which computes its first
target; `create` of an answer that waits for topics.

Soft: `_delays` (until when a group waits for more members before its first assignment) and `_creations`. A restart
forgets them, as Kafka's does.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from ottla.core.coordinator.contract import NOTHING, Context, Outcome, Reply, Result, Timer, answer
from ottla.core.groups.coordinator import Handler
from ottla.core.groups.modern.family import ModernFamily
from ottla.core.groups.modern.group import Steady
from ottla.core.groups.modern.members import LEAVE_GROUP_STATIC_MEMBER_EPOCH
from ottla.core.groups.streams import records
from ottla.core.groups.streams.assignment import plan_targets
from ottla.core.groups.streams.configuration import Status
from ottla.core.groups.streams.description_query import DescriptionQueries
from ottla.core.groups.streams.description_request import may_request_description, should_request_description
from ottla.core.groups.streams.description_update import DescriptionUpdates
from ottla.core.groups.streams.effects import CreateInternalTopics, InternalTopic
from ottla.core.groups.streams.group import StreamsGroup
from ottla.core.groups.streams.group_description import DescribeStreamsGroup, describe
from ottla.core.groups.streams.heartbeat import (
    StreamsStep,
    assigned_at_ms,
    expected_member,
    fence,
    rebalance_key,
    session_key,
    target_records,
)
from ottla.core.groups.streams.internal_topics import WAIT_MS, Creations, Waiting, denied_topics
from ottla.core.groups.streams.members import Report, StreamsGroupMember
from ottla.core.groups.streams.settings import StreamsGroupSettings
from ottla.core.groups.streams.tasks import NOTHING_HELD, Held
from ottla.core.groups.streams.validation import check_request
from ottla.core.groups.table import Group, GroupKind, GroupTable
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import KeyedRecord
from ottla.wire.reject import Reject
from ottla.wire.types.group_streams import (
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMetadataKey,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTopologyKey,
)
from ottla.wire.types.streams_group_heartbeat import StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse
from ottla.wire.types.streams_group_topology_description_update import StreamsGroupTopologyDescriptionUpdateRequest

__all__ = ["CreateInternalTopics", "StreamsFamily"]

log = logging.getLogger(__name__)

SOON_MS: Final = 100
"""When a member should ask again that waits for what takes a moment."""
_AFTER_DEADLINE_MS: Final = 5
"""So that a heartbeat that waits for a deadline comes after it."""
_WAITING: Final = frozenset((Status.ASSIGNMENT_DELAYED, Status.MISSING_INTERNAL_TOPICS))


class _Joined(NamedTuple):
    """What is seen to once a heartbeat's records are committed."""

    family: str
    group_id: str
    member_id: str
    member_epoch: int
    api_version: int
    report: Report | None
    waiting: int | None
    """The number of its answer, if that waits."""


class StreamsFamily(ModernFamily[StreamsGroup]):
    name = "streams"
    kind = GroupKind.STREAMS
    response_type = StreamsGroupHeartbeatResponse

    def __init__(self, table: GroupTable) -> None:
        super().__init__(
            table,
            StreamsGroup,
            StreamsGroupMetadataKey,
            {
                StreamsGroupMetadataKey: StreamsGroup.replay_group,
                StreamsGroupMemberMetadataKey: StreamsGroup.replay_member,
                StreamsGroupTargetAssignmentMetadataKey: StreamsGroup.replay_target_epoch,
                StreamsGroupTargetAssignmentMemberKey: StreamsGroup.replay_target,
                StreamsGroupCurrentMemberAssignmentKey: StreamsGroup.replay_current,
                StreamsGroupTopologyKey: StreamsGroup.replay_topology,
            },
            {"create": self._stop_waiting, "delay": self._assign_after_delay},
        )
        self._delays: dict[str, int] = {}
        self._creations = Creations()
        self._description_updates = DescriptionUpdates(self.name, table)
        self._description_queries = DescriptionQueries(self.name)
        self.handlers: Mapping[type, Handler] = {
            StreamsGroupHeartbeatRequest: self.heartbeat,
            StreamsGroupTopologyDescriptionUpdateRequest: self._description_updates.update,
            DescribeStreamsGroup: self.describe,
        }
        self._subjects: Mapping[type, Callable[[Any, Outcome, Context], Result]] = {
            CreateInternalTopics: self._created,
            _Joined: self._joined,
            **self._description_updates.subjects,
            **self._description_queries.subjects,
        }

    # --- heartbeats ---------------------------------------------------------------------------------------------------

    def _check(self, request: StreamsGroupHeartbeatRequest, context: Context) -> None:
        check_request(request)

    def _answer_steady(self, group: StreamsGroup, steady: Steady, context: Context) -> Result:
        request, response = steady.request, steady.response
        timer = Timer(session_key(group.group_id, request.member_id), context.now_ms + steady.session_timeout_ms)
        settings = group.settings(context.world)
        if settings.has_description_plugin and self._may_request_description(group, settings, context):
            waiting = Waiting(context.token, response, (), settings.heartbeat_interval_ms)
            return Result(timers=(timer,), after=self._after(request, context, None, waiting))
        return answer(context.token, response, (timer,))

    def _not_found(self, group_id: str, group: Group | None) -> Reject:
        return Reject(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no streams group {group_id}")

    def _step(self, request: StreamsGroupHeartbeatRequest, context: Context) -> Result:
        group, converted = self._group_to_join(request)
        step = StreamsStep(group, request, context)
        step.records += converted
        step.find_member()
        step.update_metadata()
        step.settle_topology()
        step.configure()
        step.raise_epoch()
        step.reconcile(*step.find_target(is_delayed=self._is_delayed(step)))
        return self._answer(step)

    def _group_to_join(self, request: StreamsGroupHeartbeatRequest) -> tuple[StreamsGroup, Iterable[KeyedRecord]]:
        """The group, or one that does not exist before its first records; and what removes an empty classic group."""
        group = self._table.get(request.group_id)
        if isinstance(group, StreamsGroup):
            return group, ()
        if request.member_epoch == 0:
            if group is None:
                return StreamsGroup(request.group_id), ()
            if group.kind is GroupKind.CLASSIC and group.is_empty:
                return StreamsGroup(request.group_id), group.tombstones()
        raise self._not_found(request.group_id, group)

    def _is_delayed(self, step: StreamsStep) -> bool:
        """Whether the group still waits for more members. An empty group begins to wait with its first one."""
        group_id, now_ms = step.group.group_id, step.context.now_ms
        until_ms = self._delays.get(group_id, 0)
        delay_ms = step.settings.initial_rebalance_delay_ms
        if step.group.is_empty and delay_ms > 0 and until_ms <= now_ms:
            until_ms = self._delays[group_id] = now_ms + delay_ms
        if until_ms <= now_ms:
            return False
        step.timers.append(Timer(("streams", "delay", group_id), until_ms))
        return True

    def _answer(self, step: StreamsStep) -> Result:
        group, request, context = step.group, step.request, step.context
        is_known = self._table.get(group.group_id) is group
        if is_known and step.endpoint_has_changed():
            group.raise_endpoint_epoch()
        if request.shutdown_application:
            group.request_shutdown(request.member_id)
        step.add_statuses()
        wanted = self._to_create(step)
        response = step.response(self._interval_ms(step, wanted))
        if step.member is not None:
            step.member.may_not_have_heard = step.is_repeated
        session = session_key(group.group_id, request.member_id)
        step.timers.append(Timer(session, context.now_ms + step.settings.session_timeout_ms))
        waiting = None
        replies: tuple[Reply, ...] = (Reply(context.token, response),)
        if wanted or self._may_request_description(group, step.settings, context):
            waiting = Waiting(context.token, response, wanted, step.settings.heartbeat_interval_ms)
            replies = ()
        is_reported = step.member is not None and step.report == step.member.report
        after = self._after(request, context, None if is_reported else step.report, waiting)
        if not (step.records or wanted or step.is_repeated) and step.member is not None:
            self._remember_if_quiet(step, response)
        return Result(step.records, replies, step.timers, (), after)

    def _may_request_description(self, group: StreamsGroup, settings: StreamsGroupSettings, context: Context) -> bool:
        return may_request_description(
            group, context.api_version, context.now_ms, has_plugin=settings.has_description_plugin
        )

    def _after(
        self,
        request: StreamsGroupHeartbeatRequest,
        context: Context,
        report: Report | None,
        waiting: Waiting | None,
    ) -> _Joined | None:
        """What is to be seen to after the write: a report that is new, an answer that waits."""
        if report is None and waiting is None:
            return None
        number = None if waiting is None else self._creations.wait(waiting)
        version, epoch = context.api_version, request.member_epoch
        return _Joined(self.name, request.group_id, request.member_id, epoch, version, report, number)

    def _remember_if_quiet(self, step: StreamsStep, response: StreamsGroupHeartbeatResponse) -> None:
        """Remember a heartbeat that changed nothing, unless it is long, or its answer tells something new or depends on
        the time."""
        request = step.request
        lists = (request.topology, request.active_tasks, request.task_offsets, request.task_end_offsets)
        is_long = any(each is not None for each in lists)
        is_news = response.active_tasks is not None or response.partitions_by_user_endpoint is not None
        is_timed = step.is_step_held_back or any(each.code in _WAITING for each in step.statuses)
        if not is_long and not is_news and not is_timed:
            self._remember(step.group, request, response, step.context)

    # --- internal topics ----------------------------------------------------------------------------------------------

    def _to_create(self, step: StreamsStep) -> tuple[InternalTopic, ...]:
        """Topics to ask for now. What stands in the way is added to the status that tells of them."""
        missing = step.configured.missing
        if not missing:
            return ()
        notes = self._creations.errors(missing, step.context.now_ms)
        denied = denied_topics(missing, step.context)
        if denied:
            notes.insert(0, f"The member is not allowed to create {', '.join(denied[:3])}.")
        if notes:
            step.statuses = [
                each._replace(detail=" ".join((each.detail, *notes)))
                if each.code is Status.MISSING_INTERNAL_TOPICS
                else each
                for each in step.statuses
            ]
        return () if denied else self._creations.wanted(missing, step.context.now_ms)

    def _interval_ms(self, step: StreamsStep, wanted: tuple[InternalTopic, ...]) -> int:
        """A member that waits only for the broker is told to ask again as soon as that makes sense. Not so one whose
        source topics are missing: clients give up on these after twice the interval that they were told last."""
        interval_ms = step.settings.heartbeat_interval_ms
        codes = {each.code for each in step.statuses}
        if not codes or not codes <= _WAITING:
            return interval_ms
        if Status.MISSING_INTERNAL_TOPICS in codes:
            is_hopeful = wanted or not self._creations.wanted(step.configured.missing, step.context.now_ms)
            is_failing = self._creations.errors(step.configured.missing, step.context.now_ms)
            return min(interval_ms, SOON_MS) if is_hopeful and not is_failing else interval_ms
        until_ms = self._delays.get(step.group.group_id, 0) - step.context.now_ms
        left_ms = until_ms if until_ms > 0 else step.assignment_left_ms()
        return min(interval_ms, max(left_ms, 0) + _AFTER_DEADLINE_MS)

    def _created(self, effect: CreateInternalTopics, outcome: Outcome, context: Context) -> Result:
        errors: Mapping[str, str] = outcome.value or {}
        if not outcome.is_ok:
            text = outcome.message or outcome.error.name
            errors = {each.name: f"Topic {each.name} could not be created: {text}." for each in effect.topics}
        waiting = self._creations.waiting.pop(effect.number, None)
        interval_ms = waiting.heartbeat_interval_ms if waiting is not None else SOON_MS
        self._creations.ended(effect.topics, errors, context.now_ms + 2 * interval_ms)
        if waiting is None:
            return NOTHING
        response = waiting.response
        if errors:
            response = _with_errors(response, sorted(errors.values())[:3], interval_ms)
        timer = Timer(("streams", "create", effect.number), None)
        return Result(replies=(Reply(waiting.token, response),), timers=(timer,))

    # --- leaving ------------------------------------------------------------------------------------------------------

    def _leave(self, group: StreamsGroup, request: StreamsGroupHeartbeatRequest, context: Context) -> Result:
        result = super()._leave(group, request, context)
        if request.shutdown_application:
            group.request_shutdown(request.member_id)
        return result

    def _leaver(self, group: StreamsGroup, request: StreamsGroupHeartbeatRequest) -> StreamsGroupMember:
        return expected_member(group, request)

    def _static_leave_record(self, group: StreamsGroup, member: StreamsGroupMember) -> KeyedRecord:
        """Epoch 0 of its active tasks lets whoever takes its place commit from the first moment."""
        assigned = member.current.assigned
        kept = Held(dict.fromkeys(assigned.active, 0), assigned.standby, assigned.warmup)
        epoch = LEAVE_GROUP_STATIC_MEMBER_EPOCH
        current = member.current._replace(member_epoch=epoch, assigned=kept, pending=NOTHING_HELD)
        return records.current_record(group.group_id, member.member_id, current)

    def fence(
        self,
        group: StreamsGroup,
        members: Sequence[StreamsGroupMember],
        context: Context,
        replies: Sequence[Reply] = (),
    ) -> Result:
        (member,) = members
        if member.metadata.user_endpoint is not None:
            group.raise_endpoint_epoch()
        timers = [Timer(key(group.group_id, member.member_id), None) for key in (session_key, rebalance_key)]
        return Result(fence(group, member.member_id), replies, timers)

    # --- describe -----------------------------------------------------------------------------------------------------

    def describe(self, request: DescribeStreamsGroup, context: Context) -> Result:
        group = self._get(request.group_id)
        described = describe(group, request, context)
        if request.include_topology_description:
            return self._description_queries.query(described, group, context)
        return Result(replies=(Reply(context.token, described),))

    # --- deadlines and outcomes ---------------------------------------------------------------------------------------

    def _stop_waiting(self, key: tuple[str, str, int], context: Context) -> Result:
        """Topics take too long to be created: the answer leaves as it was decided."""
        waiting = self._creations.waiting.pop(key[2], None)
        return NOTHING if waiting is None else Result(replies=(Reply(waiting.token, waiting.response),))

    def _assign_after_delay(self, key: tuple[str, str, str], context: Context) -> Result:
        """The first target of a group that was empty. If topics have changed that no heartbeat has seen yet, the next
        heartbeat decides."""
        self._delays.pop(key[2], None)
        group = self._get(key[2])
        if group is None:
            return NOTHING
        configured = group.configuration(context.world.topics)
        if (
            group.is_empty
            or configured is None
            or group.topology is None
            or group.assignment_epoch >= group.group_epoch
        ):
            return NOTHING
        if configured.metadata_hash != group.metadata_hash or configured.is_ready != group.is_ready:
            return NOTHING
        settings = group.settings(context.world)
        targets = plan_targets(group.candidates(), group.topology, configured, settings, group.holders).targets
        at_ms = assigned_at_ms(configured, context)
        return Result(target_records(group.group_id, group.targets, targets, group.group_epoch, at_ms))

    def settled(self, subject: Any, outcome: Outcome, context: Context) -> Result:  # noqa: ANN401
        return self._subjects[type(subject)](subject, outcome, context)

    def _joined(self, subject: _Joined, outcome: Outcome, context: Context) -> Result:
        if not outcome.is_ok:
            return self._give_up(subject.waiting, outcome)
        group = self._get(subject.group_id)
        member = None if group is None else group.members.get(subject.member_id)
        if member is not None and subject.report is not None:
            member.report = subject.report
        return self._let_go(subject, group, context)

    def _give_up(self, number: int | None, outcome: Outcome) -> Result:
        """The heartbeat was not written: its topics are not asked for."""
        waiting = self._creations.waiting.pop(number, None) if number is not None else None
        if waiting is None:
            return NOTHING
        self._creations.ended(waiting.topics, {}, 0)
        refused = StreamsGroupHeartbeatResponse(error_code=outcome.error, error_message=outcome.message)
        return Result(replies=(Reply(waiting.token, refused),))

    def _let_go(self, subject: _Joined, group: StreamsGroup | None, context: Context) -> Result:
        """Let an answer go on its way, now that its records are committed: to the member, or to wait for its topics."""
        number = subject.waiting
        waiting = self._creations.waiting.get(number) if number is not None else None
        if waiting is None or number is None:
            return NOTHING
        if group is not None and self._should_request_description(subject, group, waiting.response, context):
            waiting = waiting._replace(response=replace(waiting.response, topology_description_required=True))
        if waiting.topics:
            self._creations.waiting[number] = waiting
            return self._create(number, waiting, context)
        del self._creations.waiting[number]
        return Result(replies=(Reply(waiting.token, waiting.response),))

    def _should_request_description(
        self, subject: _Joined, group: StreamsGroup, response: StreamsGroupHeartbeatResponse, context: Context
    ) -> bool:
        """Whatever goes wrong with that question, the heartbeat is answered."""
        try:
            return should_request_description(
                group, response, context, api_version=subject.api_version, member_epoch=subject.member_epoch
            )
        except Exception:
            log.exception("cannot determine whether %s should describe its topology", group.group_id)
            return False

    def _create(self, number: int, waiting: Waiting, context: Context) -> Result:
        effect = CreateInternalTopics(self.name, number, waiting.token, waiting.topics)
        return Result(effects=(effect,), timers=(Timer(("streams", "create", number), context.now_ms + WAIT_MS),))

    # --- the shard's life ---------------------------------------------------------------------------------------------

    def _member_timers(self, group: StreamsGroup, member: StreamsGroupMember, context: Context) -> Iterable[Timer]:
        timers = super()._member_timers(group, member, context)
        if not member.must_revoke:
            return timers
        at_ms = context.now_ms + member.metadata.rebalance_timeout_ms
        return (*timers, Timer(rebalance_key(group.group_id, member.member_id), at_ms))

    def loaded(self, context: Context) -> Result:
        for group in self._groups():
            group.endpoint_epoch = 0
        return super().loaded(context)

    def unloaded(self) -> Iterable[Any]:
        waiting = [each.token for each in self._creations.waiting.values()]
        return [*waiting, *self._description_updates.tokens(), *self._description_queries.tokens()]


def _with_errors(
    response: StreamsGroupHeartbeatResponse, errors: list[str], interval_ms: int
) -> StreamsGroupHeartbeatResponse:
    """The answer of a member whose topics could not be created: it says so, and need not come back soon."""
    status = tuple(
        replace(each, status_detail=" ".join((each.status_detail, *errors)))
        if each.status_code == Status.MISSING_INTERNAL_TOPICS
        else each
        for each in response.status or ()
    )
    return replace(response, status=status, heartbeat_interval_ms=interval_ms)
