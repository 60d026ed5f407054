"""Tasks: sets of them, as the coordinator thinks and as messages and records say them.

Whether somebody owns nothing and whether it is unknown what he owns are two things: the second is None.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeVar

__all__ = ["NOTHING_HELD", "NO_TASKS", "Held", "Task", "Tasks", "by_subtopology", "task_lists", "tasks_in"]

_TaskIds = TypeVar("_TaskIds")

Task = tuple[str, int]
"""Subtopology and partition."""


class Tasks(NamedTuple):
    """What a member should have, or says that it has."""

    active: frozenset[Task] = frozenset()
    standby: frozenset[Task] = frozenset()
    warmup: frozenset[Task] = frozenset()

    def is_within(self, held: Held) -> bool:
        return self.active <= held.active.keys() and self.standby <= held.standby and self.warmup <= held.warmup

    def are_all_of(self, held: Held) -> bool:
        return self.active == held.active.keys() and self.standby == held.standby and self.warmup == held.warmup

    def meets(self, held: Held) -> bool:
        """Whether one of these is held in the same role."""
        return not (
            self.active.isdisjoint(held.active)
            and self.standby.isdisjoint(held.standby)
            and self.warmup.isdisjoint(held.warmup)
        )


NO_TASKS: Final = Tasks()


class Held(NamedTuple):
    """What a member has. An active task comes with its assignment epoch: the one at which this member received it."""

    active: Mapping[Task, int]
    standby: frozenset[Task] = frozenset()
    warmup: frozenset[Task] = frozenset()

    @property
    def is_nothing(self) -> bool:
        return not (self.active or self.standby or self.warmup)


NOTHING_HELD: Final = Held(MappingProxyType({}))


def by_subtopology(tasks: Iterable[Task]) -> dict[str, list[int]]:
    """Partitions of each subtopology, all in order."""
    grouped: dict[str, list[int]] = {}
    for subtopology_id, partition in sorted(tasks):
        grouped.setdefault(subtopology_id, []).append(partition)
    return grouped


def task_lists(make: Callable[[str, tuple[int, ...]], _TaskIds], tasks: Iterable[Task]) -> tuple[_TaskIds, ...]:
    """Tasks as a message has them; `make` is its TaskIds."""
    return tuple(make(each, tuple(partitions)) for each, partitions in by_subtopology(tasks).items())


def tasks_in(lists: Iterable[Any]) -> frozenset[Task]:
    """The tasks in a message's TaskIds."""
    return frozenset((each.subtopology_id, partition) for each in lists for partition in each.partitions)
