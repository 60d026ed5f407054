"""The beginning and the end of the joining phase.

A rebalance that begins in Empty waits for `group.initial.rebalance.delay.ms`, and once more for as long whenever a
member has come meanwhile, up to the longest rebalance time-out; it does not end early. Any other ends when all members
have joined again and no pending member is left, or after the longest rebalance time-out. Dynamic members that have not
joined by then are out. Static ones stay and owe a SyncGroup, like everybody.
"""

from __future__ import annotations

import logging
from typing import Final

from ottla.core.groups.classic.group import InitialDelay
from ottla.core.groups.classic.member import ClassicGroupMember
from ottla.core.groups.classic.records import write_group
from ottla.core.groups.classic.states import GroupState
from ottla.core.groups.classic.step import ClassicStep, join_answer
from ottla.wire.errors import ErrorCode

__all__ = ["complete_join", "end_initial_delay", "maybe_complete_join", "prepare", "rebalance"]

log = logging.getLogger(__name__)

_WAIT_AGAIN_MIN_MS: Final = 1_000
"""A rebalance time-out may be 0; waiting for members that do not come must not keep the broker busy."""


def rebalance(step: ClassicStep, reason: str) -> None:
    """Members have changed: begin a rebalance, or see whether the one in progress can end."""
    if step.group.state is GroupState.PREPARING_REBALANCE:
        maybe_complete_join(step)
    else:
        prepare(step, reason)


def prepare(step: ClassicStep, reason: str) -> None:
    group = step.group
    log.info("group %s: rebalance after generation %d (%s)", group.group_id, group.generation, reason)
    if group.state is GroupState.COMPLETING_REBALANCE:
        send_back(step, ErrorCode.REBALANCE_IN_PROGRESS)
    group.is_assignment_pending = False
    group.pending_syncs.clear()
    step.set_sync_timer(None)
    is_initial = group.state is GroupState.EMPTY
    group.move_to(GroupState.PREPARING_REBALANCE, step.context.wall_ms)
    if is_initial:
        delay_ms = step.setting("group.initial.rebalance.delay.ms")
        group.initial_delay = InitialDelay(delay_ms, group.rebalance_timeout_ms)
        step.set_join_timer(delay_ms)
    elif group.have_all_joined:
        complete_join(step)
    else:
        step.set_join_timer(group.rebalance_timeout_ms)


def send_back(step: ClassicStep, code: ErrorCode) -> None:
    """Tell those who wait for their assignment that there will be none."""
    for member in step.group.members.values():
        member.assignment = b""
        if member.sync is not None:
            step.refuse_sync(member, code)
            step.start_session(member)


def maybe_complete_join(step: ClassicStep) -> None:
    """End the joining phase if everybody is there, unless it is the first one of the group."""
    group = step.group
    is_joining = group.state is GroupState.PREPARING_REBALANCE and group.initial_delay is None
    if is_joining and group.have_all_joined:
        complete_join(step)


def end_initial_delay(step: ClassicStep) -> None:
    delay = step.group.initial_delay
    if delay is not None and delay.extend(step.setting("group.initial.rebalance.delay.ms")):
        step.set_join_timer(delay.delay_ms)
    else:
        complete_join(step)


def complete_join(step: ClassicStep) -> None:
    """Begin the next generation with those who have joined."""
    group = step.group
    step.set_join_timer(None)
    _drop_absent(step)
    if group.members and not _elect(step):
        # Only static members are left, and none of them has come: their sessions end, or one comes back.
        step.set_join_timer(max(group.rebalance_timeout_ms, _WAIT_AGAIN_MIN_MS))
        return
    group.initial_delay = None
    group.generation += 1
    group.protocol_name = group.select_protocol()
    group.note_subscriptions()
    if group.members:
        _begin_generation(step)
    else:
        _end_generation(step)


def _drop_absent(step: ClassicStep) -> None:
    group = step.group
    absent = [each.member_id for each in group.members.values() if each.join is None and not each.is_static]
    for member_id in absent:
        group.remove(member_id)
        step.set_session(member_id, None)
    if absent:
        log.info("group %s: did not join in time: %s", group.group_id, ", ".join(absent))


def _elect(step: ClassicStep) -> bool:
    """Keep the leader if it has joined, else take the first member that has; whether there is one."""
    group = step.group
    leader = group.members.get(group.leader_id or "")
    if leader is None or leader.join is None:
        leader = next((each for each in group.members.values() if each.join is not None), None)
    if leader is None:
        return False
    group.leader_id = leader.member_id
    return True


def _begin_generation(step: ClassicStep) -> None:
    group = step.group
    group.move_to(GroupState.COMPLETING_REBALANCE, step.context.wall_ms)
    log.info("group %s: generation %d with %d members", group.group_id, group.generation, len(group.members))
    for member in group.members.values():
        _tell_generation(step, member)
        member.is_new = False
        step.start_session(member)
        group.pending_syncs.add(member.member_id)
    step.set_sync_timer(group.rebalance_timeout_ms)


def _tell_generation(step: ClassicStep, member: ClassicGroupMember) -> None:
    parked = step.take_join(member)
    if parked is not None:
        is_leader = step.group.is_leader(member.member_id)
        answer = join_answer(step.group, member.member_id, parked.api_version, with_members=is_leader)
        step.reply(parked.token, answer)


def _end_generation(step: ClassicStep) -> None:
    """Nobody is left. If this cannot be written, the log's older generation comes back with a restart, and its members'
    sessions end one after the other."""
    group = step.group
    group.move_to(GroupState.EMPTY, step.context.wall_ms)
    log.info("group %s: empty in generation %d", group.group_id, group.generation)
    step.records.append(write_group(group, {}))
