"""A member of a streams group whose tasks have state, which it restores from changelogs and reports on.

Changelogs grow all the time. A process restores the tasks of its members at a fixed speed, and keeps earlier ones on
its disk: `Disks` knows the offset of each process for each task.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from ottla.wire.types.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from simulation.clients.client import ClientPorts
from simulation.clients.streams import StreamsMember, Tasks, Units

__all__ = ["STATEFUL", "Disks", "RestoringMember"]

STATEFUL: Final = "1"
"""The subtopology that has state."""
_BEGIN: Final = 1_000_000
_GROWTH_PER_MS: Final = 0.05
_LATEST: Final = -2

Task = tuple[str, int]


class Disks:
    """The restored state of the processes of one application."""

    def __init__(self, world: ClientPorts, acceptable_lag: int, restored_per_ms: int) -> None:
        self._world = world
        self._acceptable_lag = acceptable_lag
        self._restored_per_ms = restored_per_ms
        self._offsets: dict[tuple[str, Task], tuple[int, int | None]] = {}
        """By process and task: an offset and, if it is still being restored, the time of that offset."""

    def end(self) -> int:
        """The present end offset of all changelogs."""
        return _BEGIN + int(_GROWTH_PER_MS * self._world.now_ms())

    def offset(self, process_id: str, task: Task) -> int:
        offset, since_ms = self._offsets.get((process_id, task), (0, None))
        if since_ms is None:
            return offset
        return min(self.end(), offset + self._restored_per_ms * (self._world.now_ms() - since_ms))

    def lag(self, process_id: str, task: Task) -> int:
        return self.end() - self.offset(process_id, task)

    def known(self, process_id: str) -> list[Task]:
        return sorted(task for process, task in self._offsets if process == process_id)

    def open(self, process_id: str, task: Task) -> None:
        self._offsets[process_id, task] = (self.offset(process_id, task), self._world.now_ms())

    def close(self, process_id: str, task: Task) -> None:
        self._offsets[process_id, task] = (self.offset(process_id, task), None)

    def ready_in_ms(self, process_id: str, task: Task) -> int:
        """After how many milliseconds an open task will be within the acceptable lag."""
        missing = self.lag(process_id, task) - self._acceptable_lag
        return 1 + max(0, missing) // (self._restored_per_ms - 1)


class RestoringMember(StreamsMember):
    """A member that restores state. With version 0 of the request it does not report its offsets."""

    report_interval_ms = 15_000

    def __init__(
        self, world: ClientPorts, name: str, group_id: str, source: str, *, disks: Disks, process_id: str
    ) -> None:
        self.disks = disks
        self._report_at_ms = 0
        self._opened: Units = frozenset()
        super().__init__(world, name, group_id, source, has_internal_topics=True, process_id=process_id)

    def hold(self, tasks: Tasks) -> None:
        super().hold(tasks)
        opened = frozenset(task for role in tasks for task in role if task[0] == STATEFUL)
        for task in sorted(self._opened - opened):
            self.disks.close(self.process_id, task)
        for task in sorted(opened - self._opened):
            self.disks.open(self.process_id, task)
            if task in tasks.warmup or task in tasks.standby:
                self.after(self.disks.ready_in_ms(self.process_id, task), partial(self._caught_up, task))
        self._opened = opened

    def _caught_up(self, task: Task) -> None:
        """Report at once that a task has caught up."""
        if task in self.owned.warmup or task in self.owned.standby:
            self._report_at_ms = 0
            self.beat()

    def news(self) -> dict[str, Any]:
        """A report with a join, once in an interval, and when a task has caught up."""
        if self.version == 0 or (self.epoch != 0 and self.world.now_ms() < self._report_at_ms):
            return {}
        self._report_at_ms = self.world.now_ms() + self.report_interval_ms
        entry = StreamsGroupHeartbeatRequest.TaskOffset
        copies = [task for task in self.disks.known(self.process_id) if task not in self.owned.active]
        running = sorted(task for task in self.owned.active if task[0] == STATEFUL)
        end = self.disks.end()
        return {
            "task_offsets": (
                *(entry(*task, self.disks.offset(self.process_id, task)) for task in copies),
                *(entry(*task, _LATEST) for task in running),
            ),
            "task_end_offsets": tuple(entry(*task, end) for task in copies),
        }
