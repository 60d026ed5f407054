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
from ottla.core.groups.classic.member import Member
from ottla.core.groups.classic.records import write_group
from ottla.core.groups.classic.states import GroupState
from ottla.core.groups.classic.turn import Turn, join_answer
from ottla.wire.errors import ErrorCode

__all__ = ["complete_join", "end_initial_delay", "maybe_complete_join", "prepare", "rebalance"]

log = logging.getLogger(__name__)

_WAIT_AGAIN_MIN_MS: Final = 1_000
"""A rebalance time-out may be 0; waiting for members that do not come must not keep the broker busy."""


def rebalance(turn: Turn, reason: str) -> None:
    """Members have changed: begin a rebalance, or see whether the one in progress can end."""
    if turn.group.state is GroupState.PREPARING_REBALANCE:
        maybe_complete_join(turn)
    else:
        prepare(turn, reason)


def prepare(turn: Turn, reason: str) -> None:
    group = turn.group
    log.info("group %s: rebalance after generation %d (%s)", group.group_id, group.generation, reason)
    if group.state is GroupState.COMPLETING_REBALANCE:
        send_back(turn, ErrorCode.REBALANCE_IN_PROGRESS)
    group.is_assignment_pending = False
    group.pending_syncs.clear()
    turn.set_sync_timer(None)
    is_initial = group.state is GroupState.EMPTY
    group.move_to(GroupState.PREPARING_REBALANCE, turn.context.wall_ms)
    if is_initial:
        delay_ms = turn.setting("group.initial.rebalance.delay.ms")
        group.initial_delay = InitialDelay(delay_ms, group.rebalance_timeout_ms)
        turn.set_join_timer(delay_ms)
    elif group.have_all_joined:
        complete_join(turn)
    else:
        turn.set_join_timer(group.rebalance_timeout_ms)


def send_back(turn: Turn, code: ErrorCode) -> None:
    """Tell those who wait for their assignment that there will be none."""
    for member in turn.group.members.values():
        member.assignment = b""
        if member.sync is not None:
            turn.refuse_sync(member, code)
            turn.start_session(member)


def maybe_complete_join(turn: Turn) -> None:
    """End the joining phase if everybody is there, unless it is the first one of the group."""
    group = turn.group
    is_joining = group.state is GroupState.PREPARING_REBALANCE and group.initial_delay is None
    if is_joining and group.have_all_joined:
        complete_join(turn)


def end_initial_delay(turn: Turn) -> None:
    delay = turn.group.initial_delay
    if delay is not None and delay.extend(turn.setting("group.initial.rebalance.delay.ms")):
        turn.set_join_timer(delay.delay_ms)
    else:
        complete_join(turn)


def complete_join(turn: Turn) -> None:
    """Begin the next generation with those who have joined."""
    group = turn.group
    turn.set_join_timer(None)
    _drop_absent(turn)
    if group.members and not _elect(turn):
        # Only static members are left, and none of them has come: their sessions end, or one comes back.
        turn.set_join_timer(max(group.rebalance_timeout_ms, _WAIT_AGAIN_MIN_MS))
        return
    group.initial_delay = None
    group.generation += 1
    group.protocol_name = group.select_protocol()
    group.note_subscriptions()
    if group.members:
        _begin_generation(turn)
    else:
        _end_generation(turn)


def _drop_absent(turn: Turn) -> None:
    group = turn.group
    absent = [each.member_id for each in group.members.values() if each.join is None and not each.is_static]
    for member_id in absent:
        group.remove(member_id)
        turn.set_session(member_id, None)
    if absent:
        log.info("group %s: did not join in time: %s", group.group_id, ", ".join(absent))


def _elect(turn: Turn) -> bool:
    """Keep the leader if it has joined, else take the first member that has; whether there is one."""
    group = turn.group
    leader = group.members.get(group.leader_id or "")
    if leader is None or leader.join is None:
        leader = next((each for each in group.members.values() if each.join is not None), None)
    if leader is None:
        return False
    group.leader_id = leader.member_id
    return True


def _begin_generation(turn: Turn) -> None:
    group = turn.group
    group.move_to(GroupState.COMPLETING_REBALANCE, turn.context.wall_ms)
    log.info("group %s: generation %d with %d members", group.group_id, group.generation, len(group.members))
    for member in group.members.values():
        _tell_generation(turn, member)
        member.is_new = False
        turn.start_session(member)
        group.pending_syncs.add(member.member_id)
    turn.set_sync_timer(group.rebalance_timeout_ms)


def _tell_generation(turn: Turn, member: Member) -> None:
    parked = turn.take_join(member)
    if parked is not None:
        is_leader = turn.group.is_leader(member.member_id)
        answer = join_answer(turn.group, member.member_id, parked.api_version, with_members=is_leader)
        turn.reply(parked.token, answer)


def _end_generation(turn: Turn) -> None:
    """Nobody is left. If this cannot be written, the log's older generation comes back with a restart, and its members'
    sessions end one after the other."""
    group = turn.group
    group.move_to(GroupState.EMPTY, turn.context.wall_ms)
    log.info("group %s: empty in generation %d", group.group_id, group.generation)
    turn.records.append(write_group(group, {}))
