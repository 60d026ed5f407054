"""Deadlines that have come: sessions, pending members, the joining phase, SyncGroups that are owed."""

from __future__ import annotations

import logging

from ottla.core.groups.classic.leave_group import remove_member
from ottla.core.groups.classic.rebalance import complete_join, end_initial_delay, maybe_complete_join, prepare
from ottla.core.groups.classic.states import GroupState
from ottla.core.groups.classic.step import ClassicStep

__all__ = ["expire_join", "expire_session", "expire_syncs"]

log = logging.getLogger(__name__)


def expire_session(step: ClassicStep, member_id: str) -> None:
    group, now_ms = step.group, step.context.now_ms
    member = group.members.get(member_id)
    if member is None:
        if member_id in group.pending_members:
            _remove(step, member_id)
    elif member.session_at_ms > now_ms:
        step.set_session(member_id, member.session_at_ms)
    elif not member.is_excused:  # else the answer that it waits for begins its session anew
        _remove(step, member_id)


def _remove(step: ClassicStep, member_id: str) -> None:
    group = step.group
    log.info("group %s: the session of %s has expired", group.group_id, member_id)
    was_member = member_id in group.members
    remove_member(step, member_id)
    if group.state is GroupState.PREPARING_REBALANCE:
        maybe_complete_join(step)
    elif was_member:
        prepare(step, f"the session of {member_id} has expired")


def expire_join(step: ClassicStep) -> None:
    if step.group.state is not GroupState.PREPARING_REBALANCE:
        return
    if step.group.initial_delay is not None:
        end_initial_delay(step)
    else:
        complete_join(step)


def expire_syncs(step: ClassicStep) -> None:
    """Members that did not fetch their assignment are out."""
    group = step.group
    if group.state not in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE) or not group.pending_syncs:
        return
    late = sorted(group.pending_syncs)
    for member_id in late:
        remove_member(step, member_id)
    prepare(step, f"{', '.join(late)} did not sync in time")
