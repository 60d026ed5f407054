"""Samples of a group as steps from one to the next.

A sample has the state of the group, not its events: epochs between two samples are not seen. Changes in a sample count
as events at its time. Observers write a group at least every minute; after a longer gap during a rebalance, the end of
the rebalance is unknown.
"""

from __future__ import annotations

from typing import Final

import msgspec

from ottla.health.facts import Gone, Group, GroupMember, Tasks, TopicPartitions, read_fact
from ottla.spark.jobs.folds.state import NOBODY, NOTHING, TrackedMember
from ottla.spark.jobs.folds.tracker import GroupTracker

__all__ = ["GAP_MS", "SAMPLES", "follow_sample"]

GAP_MS: Final = 90_000
"""An unchanged group is written every minute; half a minute more is a gap."""
SAMPLES: Final = ("group", "gone")
_AT_REST: Final = frozenset(("Stable", "Empty", "Dead"))


def follow_sample(group: GroupTracker, kind: str, body: bytes | str | None) -> None:
    """Take a sample. `group.at` was called with its time."""
    if body is None or kind not in SAMPLES:
        return
    try:
        fact = read_fact(kind, body)
    except msgspec.MsgspecError as error:
        group.out.faults.append(f"the sample of {kind} at {group.state.ts} cannot be read: {error}")
        return
    if isinstance(fact, Group):
        _follow_group(group, fact)
    elif isinstance(fact, Gone):
        _follow_gone(group, fact)


def _follow_gone(group: GroupTracker, fact: Gone) -> None:
    if fact.what == "group" and group.state.type:
        group.delete()


def _follow_group(group: GroupTracker, fact: Group) -> None:
    state = group.state
    is_first = state.type != fact.type
    if is_first:
        group.set_type(fact.type, "first_seen" if not state.type else None)
    if state.rebalance is not None and state.ts - state.seen_ms > GAP_MS:
        state.has_gap = True
    state.seen_ms = state.ts
    state.protocol = fact.protocol or state.protocol
    _membership(group, fact, is_first=is_first)
    if fact.topology_epoch is not None:
        group.set_topology(fact.topology_epoch)
    if fact.metadata_hash is not None:
        group.see_hash(fact.metadata_hash)
    if fact.type == "classic":
        _classic_epochs(group, fact, is_first=is_first)
    else:
        _epochs(group, fact, is_first=is_first)
    for seen in fact.members:
        _current(group, fact, seen)
    if state.converged is None and state.has_converged:
        group.note_converged()
    group.set_state(fact.state)
    group.settle()


# --- members ----------------------------------------------------------------------------------------------------------


def _membership(group: GroupTracker, fact: Group, *, is_first: bool) -> None:
    here = {each.member for each in fact.members}
    for gone in [each for each in group.state.members if each not in here]:
        group.leave(gone)
    for seen in fact.members:
        known = group.state.members.get(seen.member)
        subscribed = ",".join(sorted(seen.subscribed or ()))
        if known is None:
            group.join(_joined(group, seen, subscribed, is_first=is_first), is_new=not is_first)
            continue
        group.subscribe(known, subscribed)
        if seen.topology_epoch is not None:
            group.run_topology(known, seen.topology_epoch)


def _joined(group: GroupTracker, seen: GroupMember, subscribed: str, *, is_first: bool) -> TrackedMember:
    member = TrackedMember(seen.member, NOBODY if is_first else group.state.ts, seen.client, seen.host, seen.rack)
    member.instance, member.process, member.subscribed = seen.instance, seen.process, subscribed
    member.rebalance_timeout_ms, member.topology_epoch = seen.rebalance_timeout_ms, seen.topology_epoch
    return member


def _current(group: GroupTracker, fact: Group, seen: GroupMember) -> None:
    member = group.state.members[seen.member]
    tasks, target_tasks = seen.tasks, seen.target_tasks
    if fact.type == "streams":
        held, wanted = tasks or Tasks(), target_tasks or Tasks()
        active, target = frozenset(held.active), frozenset(wanted.active)
        standby, warmup = frozenset(held.standby), frozenset(held.warmup)
    else:
        active, target = _partitions(seen.assigned), _partitions(seen.target)
        standby = warmup = NOTHING
    epoch = fact.group_epoch if fact.type == "classic" else seen.epoch
    if fact.type == "classic" and fact.state != "Stable":
        return  # during a rebalance, its description has no assignments
    pending = active - target if fact.type in ("consumer", "streams") and epoch < fact.assignment_epoch else NOTHING
    is_waiting = fact.type in ("consumer", "streams") and bool(target - active)
    member_state = 1 if pending else 2 if is_waiting else 0
    group.current(member, epoch, member_state, (active - pending, pending, standby, warmup))


def _partitions(assignment: tuple[TopicPartitions, ...]) -> frozenset[str]:
    return frozenset(f"{each.topic}-{number}" for each in assignment for number in each.partitions)


# --- epochs -----------------------------------------------------------------------------------------------------------


def _epochs(group: GroupTracker, fact: Group, *, is_first: bool) -> None:
    state = group.state
    if is_first and _is_over(fact):
        group.adopt(fact.group_epoch, fact.assignment_epoch)
        return
    group.bump_epoch(fact.group_epoch)
    if fact.assignment_epoch != state.assignment_epoch:
        group.target(fact.assignment_epoch)


def _is_over(fact: Group) -> bool:
    return fact.group_epoch == fact.assignment_epoch and all(each.epoch == fact.group_epoch for each in fact.members)


def _classic_epochs(group: GroupTracker, fact: Group, *, is_first: bool) -> None:
    """The generation increases when all members have joined: until then the rebalance belongs to the next one."""
    state = group.state
    is_at_rest = fact.state in _AT_REST
    if is_first and is_at_rest:
        group.adopt(fact.group_epoch, fact.group_epoch)
        return
    known = state.epoch if state.epoch != NOBODY else fact.group_epoch
    if not is_at_rest and state.rebalance is None:
        group.bump_epoch(max(fact.group_epoch, known + 1))
    elif fact.group_epoch > known:
        group.bump_epoch(fact.group_epoch)
    if is_at_rest and state.rebalance is not None:
        group.target(state.epoch)
