"""How a member moves from what it has to what its target gives it, one heartbeat at a time.

Theory of operation. A member first gives up what it should no longer have, and only when it has said so, by a list of
its tasks without them, does its epoch advance and does it get new tasks. Of these it gets the ones that nobody holds
any more; for the rest it waits. So a task never runs in two places. State directories belong to processes, so whether a
task is held is asked of processes, not of members. What is held includes what is being given up.

================  =====================================  ===========================================================
state             heartbeat                              what follows
================  =====================================  ===========================================================
STABLE            at the target's epoch                  nothing
STABLE            behind it                              compute
UNREVOKED_TASKS   tasks unknown, or one still owned      nothing: the older set is to be given up first
UNREVOKED_TASKS   otherwise                              compute, straight to the newest target
UNRELEASED_TASKS  any                                    compute
UNKNOWN           tasks unknown, or some owned           fenced
UNKNOWN           none owned                             compute
================  =====================================  ===========================================================

Compute, with *keep* = assigned and in the target, *revoke* = assigned only, *add* = in the target only and held by
none:

============================================  =====================  =========  =============
first that is so                              state                  epoch      assigned
============================================  =====================  =========  =============
something to revoke, and not known as given   UNREVOKED_TASKS        own        keep
something to add                              STABLE, or UNRELEASED  target's   keep and add
something held elsewhere                      UNRELEASED_TASKS       target's   keep
otherwise                                     STABLE                 target's   keep
============================================  =====================  =========  =============
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from ottla.core.groups.streams.members import Current, MemberState
from ottla.core.groups.streams.tasks import Held, Task, Tasks
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject

__all__ = ["Holders", "reconcile"]


class Holders(NamedTuple):
    """Which processes hold a task, in each role, by the members' assigned tasks and those that they are to give up."""

    active: Mapping[Task, str]
    standby: Mapping[Task, AbstractSet[str]]
    warmup: Mapping[Task, AbstractSet[str]]

    def holds_copy(self, process_id: str, task: Task) -> bool:
        return process_id in self.standby.get(task, ()) or process_id in self.warmup.get(task, ())

    def holds(self, process_id: str, task: Task) -> bool:
        return self.active.get(task) == process_id or self.holds_copy(process_id, task)


class _Goal(NamedTuple):
    epoch: int
    tasks: Tasks
    owned: Tasks | None
    process_id: str
    holders: Holders


def reconcile(
    current: Current, target_epoch: int, target: Tasks, owned: Tasks | None, process_id: str, holders: Holders
) -> Current:
    """The member's next state: the same object if nothing changes. `owned` is None if the member has not told."""
    goal = _Goal(target_epoch, target, owned, process_id, holders)
    match current.state:
        case MemberState.STABLE:
            return current if current.member_epoch == target_epoch else _compute(current, current.member_epoch, goal)
        case MemberState.UNREVOKED_TASKS:
            if owned is None or owned.meets(current.pending):
                return current
            return _compute(current, current.member_epoch + 1, goal)
        case MemberState.UNRELEASED_TASKS:
            return _compute(current, current.member_epoch, goal)
        case _:
            if owned is None or any(owned):
                raise Reject(
                    ErrorCode.FENCED_MEMBER_EPOCH,
                    "the member's state was written by a newer coordinator; it must give up its tasks and rejoin",
                )
            return _compute(current, target_epoch, goal)


def _compute(current: Current, epoch: int, goal: _Goal) -> Current:
    assigned, target = current.assigned, goal.tasks
    keep = Held(
        {task: since for task, since in assigned.active.items() if task in target.active},
        assigned.standby & target.standby,
        assigned.warmup & target.warmup,
    )
    revoke = Held(
        {task: since for task, since in assigned.active.items() if task not in target.active},
        assigned.standby - target.standby,
        assigned.warmup - target.warmup,
    )
    if not revoke.is_nothing and (goal.owned is None or goal.owned.meets(revoke)):
        return current.at(epoch, MemberState.UNREVOKED_TASKS, keep, revoke)
    wanted = Tasks(
        target.active - assigned.active.keys(), target.standby - assigned.standby, target.warmup - assigned.warmup
    )
    add = _released(wanted, goal)
    state = MemberState.STABLE if add == wanted else MemberState.UNRELEASED_TASKS
    if any(add):
        received = dict.fromkeys(add.active, goal.epoch)
        keep = Held({**keep.active, **received}, keep.standby | add.standby, keep.warmup | add.warmup)
    return current.at(goal.epoch, state, keep)


def _released(wanted: Tasks, goal: _Goal) -> Tasks:
    """Those that the member can have now: an active task if no process runs it and its own keeps no copy, a copy if its
    own process has the task in no role."""
    process_id, holders = goal.process_id, goal.holders
    return Tasks(
        frozenset(
            task for task in wanted.active if task not in holders.active and not holders.holds_copy(process_id, task)
        ),
        frozenset(task for task in wanted.standby if not holders.holds(process_id, task)),
        frozenset(task for task in wanted.warmup if not holders.holds(process_id, task)),
    )
