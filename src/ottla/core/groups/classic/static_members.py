"""Static members (KIP-345): an instance id that a restarted client comes back with, to take its old place.

It comes without a member id and gets a new one; the old one is fenced. If the group is stable and would choose the same
protocol, nothing else changes: the new id is written, and the generation goes on without a rebalance. A leader that
comes back this way must not assign anew: from version 9 on it is told so (KIP-814), before that it is told that the old
member id leads, which is nobody any more.
"""

from __future__ import annotations

import logging
from typing import Final, NamedTuple

from ottla.core.coordinator.append_errors import as_coordinator_error
from ottla.core.coordinator.contract import Outcome
from ottla.core.groups.classic.member import ClassicGroupMember, Terms, terms_of
from ottla.core.groups.classic.rebalance import maybe_complete_join, prepare
from ottla.core.groups.classic.records import write_group
from ottla.core.groups.classic.states import GroupState
from ottla.core.groups.classic.step import FAMILY, ClassicStep, join_answer
from ottla.wire.errors import ErrorCode
from ottla.wire.types.join_group import JoinGroupRequest

__all__ = ["CameBack", "come_back", "end_coming_back"]

log = logging.getLogger(__name__)

_SKIP_ASSIGNMENT_FROM: Final = 9


class CameBack(NamedTuple):
    """A static member's new id is being written."""

    family: str
    group_id: str
    old_id: str
    new_id: str
    old_leader_id: str | None
    old_terms: Terms


def come_back(step: ClassicStep, request: JoinGroupRequest, member: ClassicGroupMember, new_id: str) -> None:
    group = step.group
    undo = CameBack(FAMILY, group.group_id, member.member_id, new_id, group.leader_id, member.terms)
    _replace(step, member, new_id)
    group.change_terms(member, terms_of(request, step.context.api_version))
    step.park_join(member)
    if group.state is GroupState.PREPARING_REBALANCE:
        maybe_complete_join(step)
    elif group.state is GroupState.STABLE and group.select_protocol() == group.protocol_name:
        assignments = {each.member_id: each.assignment for each in group.members.values()}
        step.records.append(write_group(group, assignments))
        step.after = undo
    else:  # the leader may be assigning to the old id at this moment, or another protocol is chosen
        prepare(step, f"static member {request.group_instance_id} rejoins")


def _replace(step: ClassicStep, member: ClassicGroupMember, new_id: str) -> None:
    """Give a member another id. Whoever waits under the old one is fenced."""
    step.refuse_join(member, ErrorCode.FENCED_INSTANCE_ID)
    step.refuse_sync(member, ErrorCode.FENCED_INSTANCE_ID)
    step.set_session(member.member_id, None)
    step.group.rename(member, new_id)
    member.is_new = False
    step.start_session(member)


def end_coming_back(step: ClassicStep, written: CameBack, outcome: Outcome) -> None:
    """The new id is written, or cannot be. If a rebalance has begun meanwhile, its end answers the member."""
    member = step.group.members.get(written.new_id)
    if member is None or member.join is None or step.group.state is not GroupState.STABLE:
        return
    if outcome.is_ok:
        _welcome(step, member, written)
    else:
        _undo(step, member, written, outcome)


def _welcome(step: ClassicStep, member: ClassicGroupMember, written: CameBack) -> None:
    parked = step.take_join(member)
    assert parked is not None
    step.start_session(member)
    can_skip = parked.api_version >= _SKIP_ASSIGNMENT_FROM
    is_leader = can_skip and step.group.is_leader(member.member_id)
    answer = join_answer(
        step.group,
        member.member_id,
        parked.api_version,
        with_members=is_leader,
        leader_id=None if can_skip else written.old_leader_id,
        skip_assignment=is_leader,
    )
    step.reply(parked.token, answer)


def _undo(step: ClassicStep, member: ClassicGroupMember, written: CameBack, outcome: Outcome) -> None:
    log.warning("group %s: the new id of %s cannot be written: %s", step.group.group_id, written.new_id, outcome.error)
    step.refuse_join(member, as_coordinator_error(outcome.error), "")
    step.group.change_terms(member, written.old_terms)
    _replace(step, member, written.old_id)
