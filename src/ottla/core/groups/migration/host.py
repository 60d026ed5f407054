"""Members of the classic protocol in a consumer group."""

from __future__ import annotations

import msgspec

from ottla.core.coordinator.contract import Context, Reply, Result, Timer
from ottla.core.groups.classic.family import ClassicFamily
from ottla.core.groups.classic.leave_group import leave_answer, leavers
from ottla.core.groups.classic.member import terms_of
from ottla.core.groups.classic.step import join_error
from ottla.core.groups.classic.subscriptions import subscription_of, version_of
from ottla.core.groups.consumer.family import ConsumerFamily, cancel_timers, new_member_id
from ottla.core.groups.consumer.group import PROTOCOL_TYPE, ConsumerGroup
from ottla.core.groups.consumer.heartbeat import ConsumerStep, timer_key
from ottla.core.groups.consumer.members import ConsumerGroupMember, MemberState, Subscription
from ottla.core.groups.consumer.records import group_tombstones
from ottla.core.groups.consumer.validation import check_instance
from ottla.core.groups.migration.downgrade import classic_group, is_downgrade_due
from ottla.core.groups.migration.policy import may_mix
from ottla.core.groups.migration.subscriptions import encode_assignment, owned_of
from ottla.core.groups.migration.upgrade import classic_metadata
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject
from ottla.wire.types.consumer_protocol import ConsumerProtocolSubscription
from ottla.wire.types.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.wire.types.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.wire.types.leave_group import (
    LeaveGroupRequest,
    LeaveGroupRequestMemberIdentity,
    LeaveGroupResponseMemberResponse,
)
from ottla.wire.types.sync_group import SyncGroupRequest, SyncGroupResponse

__all__ = ["ConsumerHost"]

MEMBER_ID_REQUIRED_FROM = 4
"""From this version of JoinGroup on a dynamic member comes back with the id it is given."""


class ConsumerHost:
    def __init__(self, consumer: ConsumerFamily, classic: ClassicFamily) -> None:
        self._consumer = consumer
        self._classic = classic

    # --- JoinGroup ----------------------------------------------------------------------------------------------------

    def join(self, group: ConsumerGroup, request: JoinGroupRequest, context: Context) -> Result:
        if not may_mix(context.world):
            return _refuse_join(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "", context)
        try:
            return self._join(group, request, context)
        except Reject as reject:
            return _refuse_join(reject.code, request.member_id, context)

    def _join(self, group: ConsumerGroup, request: JoinGroupRequest, context: Context) -> Result:
        member_id = request.member_id or new_member_id(context)
        group.check_room(member_id, group.settings(context.world).max_size)
        subscription = _subscription(group, request)
        is_dynamic = request.group_instance_id is None
        if not request.member_id and is_dynamic and context.api_version >= MEMBER_ID_REQUIRED_FROM:
            return _refuse_join(ErrorCode.MEMBER_ID_REQUIRED, member_id, context)
        step, existing = self._step_of(group, request, member_id, context)
        step.update(_updated(step.member, request, subscription, context))
        step.update_regex()
        has_changed = step.has_names_changed or step.has_regex_changed
        step.raise_epoch(has_changed)
        owned = owned_of(subscription, context.world.topics)
        is_rolled_back = existing is not None and not existing.uses_classic_protocol
        if existing is not None and is_rolled_back and is_downgrade_due(group, [existing], 1, context):
            return self._take_over(step, existing, has_changed, request, context)
        step.advance(owned)
        return self._joined(step, request, context)

    def _step_of(
        self, group: ConsumerGroup, request: JoinGroupRequest, member_id: str, context: Context
    ) -> tuple[ConsumerStep, ConsumerGroupMember | None]:
        """The member's step, and the static member whose place it takes, if it does."""
        instance_id = request.group_instance_id
        existing = group.static_member(instance_id)
        if instance_id is not None and request.member_id:
            check_instance(existing, instance_id, member_id)
        member = group.members.get(member_id) or ConsumerGroupMember(member_id=member_id)
        step = ConsumerStep(self._consumer.memory, group, member, context)
        if existing is None or request.member_id:
            return step, existing
        step.replace(existing)
        return step, existing

    def _joined(self, step: ConsumerStep, request: JoinGroupRequest, context: Context) -> Result:
        """The member owes a SyncGroup from here on, and no JoinGroup any more."""
        group_id, member_id = step.group.group_id, step.updated.member_id
        step.group.owing_join.discard(member_id)
        sync_ms = terms_of(request, context.api_version).rebalance_timeout_ms
        timers = [
            Timer(timer_key("join", group_id, member_id), None),
            self._consumer.renewed_session(step.group, member_id, context.now_ms + request.session_timeout_ms),
            Timer(timer_key("sync", group_id, member_id), context.now_ms + sync_ms),
        ]
        return Result(
            records=step.records,
            replies=[Reply(context.token, _answer(step.updated, step.updated.member_epoch))],
            timers=[*step.timers, *timers],
        )

    def _take_over(
        self,
        step: ConsumerStep,
        existing: ConsumerGroupMember,
        has_changed: bool,
        request: JoinGroupRequest,
        context: Context,
    ) -> Result:
        """The last member of the new protocol comes back as one of the classic: the group is a classic one again. It
        goes on where it was, unless the member subscribes to something else now."""
        group = step.group
        if not has_changed:
            subscription = _subscription(group, request)
            step.advance(owned_of(subscription, context.world.topics))
        others = [member for member in group.members.values() if member.member_id != existing.member_id]
        member_ids = [*(member.member_id for member in others), step.updated.member_id]
        renamed = {step.updated.member_id: existing.member_id}
        made = classic_group(
            group, [*others, step.updated], lambda each: group.target(renamed.get(each, each)), context
        )
        adopted = self._classic.adopt(made, context, rebalance=has_changed, reason="it is a classic group again")
        tombstones = group_tombstones(group.group_id, member_ids, sorted(group.resolved))
        generation = step.updated.member_epoch
        return adopted._replace(
            records=[*step.records, *tombstones, *adopted.records],
            replies=[*adopted.replies, Reply(context.token, _answer(step.updated, generation))],
            timers=[*cancel_timers(group.group_id, [*group.members, *member_ids]), *adopted.timers],
        )

    # --- SyncGroup, Heartbeat, LeaveGroup -----------------------------------------------------------------------------

    def sync(self, group: ConsumerGroup, request: SyncGroupRequest, context: Context) -> Result:
        member = self._member(group, request.member_id, request.group_instance_id, request.generation_id)
        assert member.classic is not None
        protocol = member.classic.supported_protocols[0]
        if request.protocol_type not in (None, PROTOCOL_TYPE) or request.protocol_name not in (None, protocol.name):
            raise Reject(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if group.group_epoch > member.member_epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
            code = ErrorCode.REBALANCE_IN_PROGRESS
            reply = Reply(context.token, SyncGroupResponse(error_code=code))
            return Result(replies=[reply], timers=self._owe_join(group, member, context))
        response = SyncGroupResponse(
            protocol_type=request.protocol_type,
            protocol_name=request.protocol_name,
            assignment=encode_assignment(member.assigned, context.world.topics, version_of(protocol.metadata) or 0),
        )
        cancel = Timer(timer_key("sync", group.group_id, member.member_id), None)
        return Result(replies=[Reply(context.token, response)], timers=[cancel, self._session(group, member, context)])

    def heartbeat(self, group: ConsumerGroup, request: HeartbeatRequest, context: Context) -> Result:
        member = self._member(group, request.member_id, request.group_instance_id, request.generation_id)
        session = self._session(group, member, context)
        if not _must_join(group, member):
            return Result(replies=[Reply(context.token, HeartbeatResponse())], timers=[session])
        response = HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
        return Result(
            replies=[Reply(context.token, response)], timers=[session, *self._owe_join(group, member, context)]
        )

    def _member(
        self, group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int
    ) -> ConsumerGroupMember:
        if instance_id is None:
            member = group.member(member_id)
        else:
            member = check_instance(group.static_member(instance_id), instance_id, member_id)
        if not member.uses_classic_protocol:
            raise Reject(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} does not speak the classic protocol.")
        if generation != member.member_epoch:
            raise Reject(ErrorCode.ILLEGAL_GENERATION)
        return member

    def _owe_join(self, group: ConsumerGroup, member: ConsumerGroupMember, context: Context) -> list[Timer]:
        """The time within which it must join begins when it is told for the first time."""
        if member.member_id in group.owing_join:
            return []
        group.owing_join.add(member.member_id)
        key = timer_key("join", group.group_id, member.member_id)
        return [Timer(key, context.now_ms + member.rebalance_timeout_ms)]

    def _session(self, group: ConsumerGroup, member: ConsumerGroupMember, context: Context) -> Timer:
        assert member.classic is not None
        at_ms = context.now_ms + member.classic.session_timeout_ms
        return self._consumer.renewed_session(group, member.member_id, at_ms)

    def leave(self, group: ConsumerGroup, request: LeaveGroupRequest, context: Context) -> Result:
        gone: dict[str, ConsumerGroupMember] = {}
        results = []
        for who in leavers(request, context.api_version):
            code = ErrorCode.NONE
            try:
                member = _leaver(group, who)
                gone[member.member_id] = member
            except Reject as reject:
                code = reject.code
            results.append(LeaveGroupResponseMemberResponse(who.member_id, who.group_instance_id, code))
        reply = Reply(context.token, leave_answer(tuple(results), context.api_version))
        return self._consumer.fence(group, list(gone.values()), context, [reply])


def _leaver(group: ConsumerGroup, who: LeaveGroupRequestMemberIdentity) -> ConsumerGroupMember:
    """An administrator knows only the instance id."""
    if who.group_instance_id is None:
        return group.member(who.member_id)
    existing = group.static_member(who.group_instance_id)
    if existing is not None and not who.member_id:
        return existing
    return check_instance(existing, who.group_instance_id, who.member_id)


def _subscription(group: ConsumerGroup, request: JoinGroupRequest) -> ConsumerProtocolSubscription:
    """What the member subscribes to, by the first protocol that it names: the assignor is the coordinator's anyway."""
    names = [each.name for each in request.protocols]
    is_common = any(group.classic_protocols[name] == group.classic_count for name in names)
    if request.protocol_type != PROTOCOL_TYPE or not is_common:
        raise Reject(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    subscription = subscription_of(request.protocols[0].metadata)
    if subscription is None:
        raise Reject(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    return subscription


def _updated(
    member: ConsumerGroupMember, request: JoinGroupRequest, subscription: ConsumerProtocolSubscription, context: Context
) -> ConsumerGroupMember:
    terms = terms_of(request, context.api_version)
    return msgspec.structs.replace(
        member,
        instance_id=request.group_instance_id or member.instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        rebalance_timeout_ms=terms.rebalance_timeout_ms,
        subscription=Subscription(frozenset(subscription.topics), ""),
        client_id=context.client_id,
        client_host=context.client_host,
        classic=classic_metadata(terms.session_timeout_ms, terms.protocols),
    )


def _answer(member: ConsumerGroupMember, generation: int) -> JoinGroupResponse:
    assert member.classic is not None
    return JoinGroupResponse(
        generation_id=generation,
        protocol_type=PROTOCOL_TYPE,
        protocol_name=member.classic.supported_protocols[0].name,
        member_id=member.member_id,
    )


def _must_join(group: ConsumerGroup, member: ConsumerGroupMember) -> bool:
    """Whether the member is behind the group, must confirm what it gave up, or can have what it waits for."""
    if member.member_epoch < group.group_epoch or member.state is MemberState.UNREVOKED_PARTITIONS:
        return True
    return member.state is MemberState.UNRELEASED_PARTITIONS and not group.is_waiting_for(member)


def _refuse_join(code: ErrorCode, member_id: str, context: Context) -> Result:
    return Result(replies=[Reply(context.token, join_error(code, member_id, context.api_version))])
