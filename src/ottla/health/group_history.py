"""The history of a group: its epochs, its members and their assignments, and the members that vanished."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ottla.health.facts import Group, GroupMember, Tasks, TopicPartitions
from ottla.health.lost_members import DOUBTS, Lost, Vanished

__all__ = ["WINDOW_MS", "EpochBump", "GroupHistory", "holdings", "lacking", "pairs"]

WINDOW_MS: Final = 600_000
BUMPS: Final = 256
MEMBER_IDS: Final = 10_000
INSTANCES: Final = 10_000
LOST: Final = 100

Holding = tuple[str, int]
"""Topic and partition; or, in a streams group, `task` and its number."""


class EpochBump(NamedTuple):
    """An increase of the group epoch: when, by how much, and with which members."""

    at_ms: int
    by: int
    fingerprint: int  # digest of members, subscriptions and partition counts
    same_fingerprint: bool  # as before the bump
    is_warmup_step: bool
    converged: bool  # whether all members had reached the epoch before it


@dataclass(slots=True)
class Warmup:
    gap: int
    since_ms: int


def pairs(assignment: tuple[TopicPartitions, ...]) -> set[tuple[str, int]]:
    return {(each.topic, partition) for each in assignment for partition in each.partitions}


def holdings(member: GroupMember) -> set[str]:
    """The names of the partitions (`topic-partition`) or active tasks that a member has."""
    if member.tasks is not None:
        return set(member.tasks.active)
    return {f"{topic}-{partition}" for topic, partition in pairs(member.assigned)}


def targets(member: GroupMember) -> set[str]:
    if member.target_tasks is not None:
        return set(member.target_tasks.active)
    return {f"{topic}-{partition}" for topic, partition in pairs(member.target)}


def lacking(member: GroupMember) -> set[str]:
    """The partitions or tasks of a member's target that the member does not have yet."""
    return targets(member) - holdings(member)


def surplus(member: GroupMember) -> set[str]:
    """The partitions or tasks that a member has and must give up."""
    return holdings(member) - targets(member)


@dataclass(slots=True)
class GroupHistory:
    fact: Group
    at_ms: int = 0
    bumps: deque[EpochBump] = field(default_factory=lambda: deque(maxlen=BUMPS))
    ids: dict[str, int] = field(default_factory=dict)  # member id -> last seen
    sizes: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=BUMPS))  # (seen, members)
    instances: dict[str, deque[tuple[int, str]]] = field(default_factory=dict)
    held: dict[str, frozenset[tuple[str, int]]] = field(default_factory=dict)
    held_before: dict[str, frozenset[tuple[str, int]]] = field(default_factory=dict)
    lost: dict[str, Lost] = field(default_factory=dict)
    doubts: deque[Vanished] = field(default_factory=lambda: deque(maxlen=DOUBTS))
    warmups: dict[tuple[str, str], Warmup] = field(default_factory=dict)
    empty_since: int | None = None
    converged: bool = False
    fingerprint: int = 0

    def take(self, at_ms: int, fact: Group, fingerprint: int) -> list[GroupMember]:
        """Remembers what the rules need, and returns the members that have left."""
        self._note_epoch(at_ms, fact, fingerprint)
        self._note_members(at_ms, fact)
        self._note_warmups(at_ms, fact)
        gone = self._vanished(fact)
        self._note_held(fact)
        self.empty_since = None if fact.members or fact.state != "Empty" else self.empty_since or at_ms
        self.fact, self.at_ms = fact, at_ms
        return gone

    def _note_epoch(self, at_ms: int, fact: Group, fingerprint: int) -> None:
        by = fact.group_epoch - self.fact.group_epoch
        if self.at_ms and by > 0:
            is_step = _is_warmup_step(self.fact, fact)
            self.bumps.append(
                EpochBump(at_ms, by, fingerprint, fingerprint == self.fingerprint, is_step, self.converged)
            )
            self.converged = False
        self.fingerprint = fingerprint
        self.converged = self.converged or _has_converged(fact)

    def _note_members(self, at_ms: int, fact: Group) -> None:
        for member in fact.members:
            self.ids.pop(member.member, None)
            self.ids[member.member] = at_ms
            if member.instance:
                self._note_instance(at_ms, member.instance, member.member)
        while self.ids and (len(self.ids) > MEMBER_IDS or next(iter(self.ids.values())) < at_ms - WINDOW_MS):
            del self.ids[next(iter(self.ids))]
        if self.sizes and self.sizes[-1][1] == len(fact.members):
            self.sizes.pop()
        self.sizes.append((at_ms, len(fact.members)))

    def _note_instance(self, at_ms: int, instance: str, member: str) -> None:
        if instance not in self.instances and len(self.instances) >= INSTANCES:
            del self.instances[next(iter(self.instances))]
        changes = self.instances.setdefault(instance, deque(maxlen=16))
        if not changes or changes[-1][1] != member:
            changes.append((at_ms, member))

    def _note_warmups(self, at_ms: int, fact: Group) -> None:
        old, self.warmups = self.warmups, {}
        for member in fact.members:
            ends = member.task_end_offsets or {}
            for task, offset in (member.task_offsets or {}).items():
                if member.tasks and task in member.tasks.warmup and task in ends:
                    before = old.get((member.member, task))
                    gap = ends[task] - offset
                    falls = before is None or gap < before.gap
                    self.warmups[member.member, task] = Warmup(gap, at_ms) if falls or not before else before

    def _vanished(self, fact: Group) -> list[GroupMember]:
        ids = {member.member for member in fact.members}
        instances = {member.instance for member in fact.members if member.instance}
        return [each for each in self.fact.members if each.member not in ids and each.instance not in instances]

    def _note_held(self, fact: Group) -> None:
        """A member without an assignment counts as having its last one: during a rebalance, a classic group is
        described without assignments."""
        old, self.held = self.held, {}
        self.held_before = old
        for member in fact.members:
            now = frozenset(self.partitions_of(member, fact))
            self.held[member.member] = now or old.get(member.member, now)

    def partitions_of(self, member: GroupMember, fact: Group) -> set[tuple[str, int]]:
        """The partitions that a member reads; for tasks, those of their source topics."""
        if member.tasks is None:
            return pairs(member.assigned)
        return set(fact.read_by_tasks(member))

    def note_lost(self, lost: Lost) -> None:
        if len(self.lost) >= LOST:
            del self.lost[next(iter(self.lost))]
        self.lost[lost.member] = lost

    def instance_changes(self, instance: str, now_ms: int) -> list[int]:
        """When the instance id changed to another member id within the window."""
        changes = list(self.instances.get(instance, ()))[1:]
        return [at_ms for at_ms, _ in changes if at_ms > now_ms - WINDOW_MS]

    def largest(self, now_ms: int) -> int:
        """The largest number of members at one time within the window."""
        return max((count for at_ms, count in self.sizes if at_ms >= now_ms - WINDOW_MS), default=0)

    def member(self, member_id: str) -> GroupMember | None:
        return next((each for each in self.fact.members if each.member == member_id), None)


def _has_converged(fact: Group) -> bool:
    at_epoch = all(member.epoch == fact.group_epoch for member in fact.members)
    if fact.type == "classic":
        return fact.state == "Stable"
    return fact.assignment_epoch == fact.group_epoch and at_epoch and bool(fact.members)


def _is_warmup_step(old: Group, new: Group) -> bool:
    """Whether the targets differ only in tasks that have a warm-up task in one of them."""
    before, after = _placed(old), _placed(new)
    if before is None or after is None or before == after:
        return False
    warmups = {task for task, _, role in before | after if role == "warmup"}
    return bool(warmups) and {task for task, _, _ in before ^ after} <= warmups


def _placed(fact: Group) -> set[tuple[str, str, str]] | None:
    if fact.type != "streams":
        return None
    return {
        (task, member.member, role)
        for member in fact.members
        for role, tasks in _by_role(member.target_tasks or Tasks())
        for task in tasks
    }


def _by_role(tasks: Tasks) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return ("active", tasks.active), ("standby", tasks.standby), ("warmup", tasks.warmup)
