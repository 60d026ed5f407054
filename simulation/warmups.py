"""A streams group with the highly available assignor, and its invariants.

Its members restore state and report their offsets, except those of version 0; processes have up to two threads; a
process that loses its disk comes back as another. In half of the worlds the application is scaled out in the calm.

The log is checked record by record against the simulated disks: a lag may be a little above the limit by then, because
it was reported some time before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from ottla.testing.trace import Violation
from ottla.wire.keyed import KeyedRecord
from ottla.wire.types.group_streams import (
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupMemberMetadataKey,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupTargetAssignmentMetadataKey,
)
from simulation.clients.restoring_member import STATEFUL, Disks, RestoringMember
from simulation.world import World

__all__ = ["WarmupGroup"]

_ACCEPTABLE_LAG: Final = 10_000
_WARMTH: Final = 4 * _ACCEPTABLE_LAG
"""A task with a larger lag cannot have been within the limit when it was reported."""

Task = tuple[str, int]


class _Target(NamedTuple):
    active: frozenset[Task]
    warmup: frozenset[Task]


class WarmupGroup:
    def __init__(self, world: World, group_id: str) -> None:
        self._world = world
        self.group_id = group_id
        self.source = f"source-of-{group_id}"
        self._partitions = world.random.randint(1, 6)
        self.standby_count = world.random.randint(0, 1)
        self.warmup_count = world.random.randint(1, 2)
        world.put_topic(self.source, self._partitions)
        for name, value in (
            ("assignor.name", "highly_available"),
            ("num.standby.replicas", self.standby_count),
            ("num.warmup.replicas", self.warmup_count),
            ("task.offset.interval.ms", RestoringMember.report_interval_ms),
        ):
            world.environment.set_for_group(group_id, f"streams.{name}", str(value))
        self.disks = Disks(world, _ACCEPTABLE_LAG, world.random.choice((100, 200, 400)))
        self._old_processes = set(world.random.sample(range(5), 2)) if world.random.random() < 0.3 else set()
        self.clients: Sequence[_Instance] = [
            self._member(f"{group_id}-m{number}", max(1, number)) for number in range(world.random.randint(2, 5))
        ]
        if world.random.random() < 0.5:
            for newcomer in self.clients[1:]:
                newcomer.comes_late = True
        self._versions = {each.name: each.version for each in self.clients}
        world.laws.append(_WarmupLaw(self))

    def _member(self, name: str, process: int) -> _Instance:
        """The first two are threads of one process, which have the same version."""
        process_id = f"{self.group_id}-p{process}"
        member = _Instance(self._world, name, self.group_id, self.source, disks=self.disks, process_id=process_id)
        member.version = 0 if process in self._old_processes else 1
        return member

    @property
    def tasks(self) -> set[Task]:
        return {(each, partition) for each in ("0", STATEFUL) for partition in range(self._partitions)}

    def is_warm(self, member_id: str, process_id: str, task: Task) -> bool:
        """Whether a task may move there."""
        name = member_id.rpartition("-")[0]
        return self._versions[name] == 0 or self.disks.lag(process_id, task) <= _WARMTH

    def unconverged(self) -> str | None:
        alive = [each for each in self.clients if each.is_alive]
        waiting = [f"{each.name} is in epoch {each.epoch}" for each in alive if not each.has_converged()]
        if waiting or not alive:
            return "; ".join(waiting) or None
        owned = sorted(task for each in alive for task in each.owned.active)
        if owned != sorted(self.tasks):
            return f"of {self.group_id}, {owned} is given out"
        sizes = [len(each.owned.active) for each in alive]
        if max(sizes) - min(sizes) > 1:
            return f"members of {self.group_id} have {sizes} tasks"
        if any(each.owned.warmup for each in alive):
            return f"somebody of {self.group_id} still warms up"
        return self._missing_standbys(alive)

    def _missing_standbys(self, alive: Sequence[RestoringMember]) -> str | None:
        wanted = min(self.standby_count, len({each.process_id for each in alive}) - 1)
        copies = Counter(task for each in alive for task in each.owned.standby)
        missing = [task for task in sorted(self.tasks) if task[0] == STATEFUL and copies[task] != wanted]
        return f"of {self.group_id}, {missing} have not {wanted} standbys" if missing else None


class _Instance(RestoringMember):
    """A member whose machine sometimes is lost with its disk and replaced by a new one. A late instance starts in the
    calm, unless it is started before."""

    comes_late = False

    def start_unless_alive(self) -> None:
        if self.comes_late and not self.world.is_calm:
            self.world.after(1_000, self.start_unless_alive)
        else:
            super().start_unless_alive()

    def begin(self) -> None:
        if self.life > 1 and self.world.random.random() < 0.2:
            self.process_id = f"{self.name}-{self.life}"
        super().begin()


class _WarmupLaw:
    """Follows the targets of one group in the log."""

    def __init__(self, group: WarmupGroup) -> None:
        self._group = group
        self.begin(())

    def begin(self, records: Sequence[KeyedRecord]) -> None:
        self._process: dict[str, str] = {}
        self._targets: dict[str, _Target] = {}
        self._held: dict[str, frozenset[Task]] = {}
        self._owners: dict[Task, str] = {}
        """The owners in the last target."""
        for record in self._own(records):
            self._follow(record)
        self._owners = self._current_owners()

    def take(self, records: Sequence[KeyedRecord]) -> None:
        for record in self._own(records):
            self._follow(record)
            if isinstance(record.key, StreamsGroupTargetAssignmentMetadataKey) and record.value is not None:
                self._judge_target()
        self._judge_warmups()

    def _own(self, records: Sequence[KeyedRecord]) -> list[KeyedRecord]:
        return [each for each in records if getattr(each.key, "group_id", None) == self._group.group_id]

    def _follow(self, record: KeyedRecord) -> None:
        key, value = record.key, record.value
        if isinstance(key, StreamsGroupMemberMetadataKey):
            _put(self._process, key.member_id, None if value is None else value.process_id)
            if value is None:  # it may come back under the same name
                self._owners = {task: owner for task, owner in self._owners.items() if owner != key.member_id}
        elif isinstance(key, StreamsGroupTargetAssignmentMemberKey):
            target = None if value is None else _Target(_tasks(value.active_tasks), _tasks(value.warmup_tasks))
            _put(self._targets, key.member_id, target)
        elif isinstance(key, StreamsGroupCurrentMemberAssignmentKey):
            held = None
            if value is not None:
                held = _tasks(value.warmup_tasks) | _tasks(value.warmup_tasks_pending_revocation)
            _put(self._held, key.member_id, held)

    def _current_owners(self) -> dict[Task, str]:
        return {task: member_id for member_id, target in self._targets.items() for task in sorted(target.active)}

    def _judge_target(self) -> None:
        owners = self._current_owners()
        given = sum(len(target.active) for target in self._targets.values())
        if given != len(owners) or given not in (0, len(self._group.tasks)):
            raise Violation("warm-ups", f"{given} tasks have an owner in the target: {sorted(owners.items())}")
        for task, new in sorted(owners.items()):
            self._judge_move(task, self._owners.get(task), new)
        self._owners = owners

    def _judge_move(self, task: Task, old: str | None, new: str) -> None:
        """Check the move of a task whose present owner is still a member."""
        if task[0] != STATEFUL or old is None:
            return
        process_id = self._process[new]
        if self._process[old] != process_id and not self._group.is_warm(new, process_id, task):
            lag = self._group.disks.lag(process_id, task)
            raise Violation("warm-ups", f"{task} moves from {old} to {new}, which is {lag} behind")

    def _judge_warmups(self) -> None:
        copies = {
            (task, self._process[member_id])
            for tasks in (self._held, {each: target.warmup for each, target in self._targets.items()})
            for member_id, held in tasks.items()
            for task in held
            if member_id in self._process
        }
        if len(copies) > self._group.warmup_count:
            raise Violation("warm-ups", f"there are {len(copies)}: {sorted(copies)}")


def _put(where: dict[str, Any], member_id: str, value: Any) -> None:  # noqa: ANN401
    if value is None:
        where.pop(member_id, None)
    else:
        where[member_id] = value


def _tasks(lists: Sequence[Any]) -> frozenset[Task]:
    return frozenset((each.subtopology_id, partition) for each in lists for partition in each.partitions)
