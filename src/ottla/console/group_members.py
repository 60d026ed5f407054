"""What the members of a group have and are to have, who moves, and who waits for whom.

Coordinators tell epochs, assignments and targets. A member that is behind the assignment epoch is still moving. One
that has reached it, and has not got all of its target, waits until others have given that up. Whoever is told to give
something up is no longer shown with it, though it may still have it; then all who are behind may be the ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from ottla.client.metadata import TopicPartition
from ottla.health.facts import Group, GroupMember, Tasks, TopicPartitions
from ottla.health.phrases import runs

__all__ = [
    "Awaited",
    "MemberState",
    "TaskMark",
    "compact",
    "read_by_tasks",
    "shares",
    "states_of",
    "task_marks",
    "task_order",
]

ROLES: Final = ("active", "standby", "warmup")
LEFT_FOR_A_WHILE: Final = -2
"""The epoch of a static member that has left and may come back."""
NOTHING: Final = Tasks()
LATE_NAMED: Final = 3
"""Hundreds of members may be behind, and each of hundreds of others wait for many partitions."""


class Awaited(msgspec.Struct, frozen=True):
    """A partition or a task that a member waits for."""

    what: str
    holders: list[str]
    """The members that have it, or the first of those that may still have it."""
    is_certain: bool
    """Whether a member is shown with it."""
    others: int = 0
    """How many more may still have it."""


class MemberState(msgspec.Struct, frozen=True):
    state: str | None
    """stable, moving, waiting or left; None where that is not known."""
    waiting_for: list[Awaited] = []


class TaskMark(msgspec.Struct, frozen=True):
    """A task of a streams group with a member that has it or is to have it."""

    task: str
    member: str
    role: str
    """active, standby or warmup."""
    standing: str
    """running, leaving or waiting."""


def states_of(group: Group) -> list[MemberState]:
    """How the members stand, in their order."""
    holders: dict[str, list[str]] = {}
    for each in group.members:
        for what in shares(each.assigned, each.tasks):
            holders.setdefault(what, []).append(each.member)
    late = [each.member for each in group.members if each.epoch < group.assignment_epoch]
    return [_state_of(each, group, holders, late) for each in group.members]


def _state_of(member: GroupMember, group: Group, holders: Mapping[str, list[str]], late: list[str]) -> MemberState:
    if group.type == "classic":
        return MemberState({"Stable": "stable", "Empty": None, "Dead": None}.get(group.state, "moving"))
    if member.epoch == LEFT_FOR_A_WHILE:
        return MemberState("left")
    if member.epoch < group.assignment_epoch:
        return MemberState("moving")
    if group.type == "share":
        return MemberState("stable")
    has, target = set(shares(member.assigned, member.tasks)), shares(member.target, member.target_tasks)
    missing = [each for each in target if each not in has]
    if missing:
        return MemberState("waiting", [_awaited(each, holders.get(each), late) for each in missing])
    return MemberState("stable" if has == set(target) else "moving")


def _awaited(what: str, holders: list[str] | None, late: list[str]) -> Awaited:
    if holders is not None:
        return Awaited(what, holders, is_certain=True)
    return Awaited(what, late[:LATE_NAMED], is_certain=False, others=max(0, len(late) - LATE_NAMED))


def shares(assigned: Iterable[TopicPartitions], tasks: Tasks | None) -> list[str]:
    """Partitions as `topic-partition`, tasks as `0_1` and `0_1 (standby)`."""
    if tasks is None:
        return [f"{each.topic}-{partition}" for each in assigned for partition in each.partitions]
    standby, warmup = (f"{each} (standby)" for each in tasks.standby), (f"{each} (warm-up)" for each in tasks.warmup)
    return [*tasks.active, *standby, *warmup]


def compact(assigned: Iterable[TopicPartitions], tasks: Tasks | None) -> list[str]:
    """The same, with neighbouring partitions of a topic joined: `orders: 0–3, 7`."""
    return shares((), tasks) if tasks is not None else [f"{each.topic}: {spans(each.partitions)}" for each in assigned]


def spans(partitions: Iterable[int]) -> str:
    return ", ".join(str(first) if first == last else f"{first}–{last}" for first, last in runs(list(partitions)))


# --- streams ----------------------------------------------------------------------------------------------------------


def task_marks(group: Group) -> list[TaskMark]:
    """Every task with everybody who has it or is to have it, in order."""
    found = [mark for member in group.members for role in ROLES for mark in _marks(member, role)]
    return sorted(found, key=lambda mark: (task_order(mark.task), ROLES.index(mark.role), mark.member))


def _marks(member: GroupMember, role: str) -> Iterable[TaskMark]:
    has: set[str] = set(getattr(member.tasks or NOTHING, role))
    target: set[str] = set(getattr(member.target_tasks or NOTHING, role))
    for task in has | target:
        standing = "running" if task in has & target else "leaving" if task in has else "waiting"
        yield TaskMark(task, member.member, role, standing)


def task_order(name: str) -> tuple[str, int]:
    subtopology, _, number = name.rpartition("_")
    return subtopology, int(number)


def read_by_tasks(group: Group) -> Iterator[tuple[TopicPartition, str]]:
    """The partitions of a streams group with the members that read them."""
    for member in group.members:
        for topic, partition in group.read_by_tasks(member):
            yield TopicPartition(topic, partition), member.member
