"""The sticky assignor: Kafka's default. It gives each member the tasks that it should have.

Its aims, in this order:

1. every task is active at exactly one member;
2. active tasks are balanced: two members differ by at most one;
3. an active task stays with the member that was to have it, as long as that is not above its share;
4. failing that it goes to a member that was to keep a copy of its state, so that little must be restored;
5. a standby is never in the process of the active task or of another standby of it: one disk fails as a whole;
6. with tags given, the copies of a task differ in the most important tag first, then in the next, as far as they can;
7. a standby stays where the task was, active or standby;
8. all tasks together are balanced over processes by the number of their members.

A standby that no process can take is left out. "Was to have" is the previous *target*: what members have reached of it
does not count, or every unfinished rebalance would shuffle tasks. What is equal otherwise is decided by process id and
member id, so that the same input always gives the same result.

A quota is a member's share, rounded up. Whoever reaches it exactly leaves the sum together with his tasks, so that the
quota of the others falls by one as soon as enough have had the larger share.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from ottla.core.groups.streams.tasks import NO_TASKS, Task, Tasks

__all__ = ["NAME", "MemberInput", "assign"]

NAME: Final = "sticky"

_Place = tuple[str | None, ...]
"""Values of the tags that copies should differ in, the most important first."""


class MemberInput(NamedTuple):
    """What an assignor must know of a member."""

    member_id: str
    process_id: str
    previous: Tasks = NO_TASKS
    """What it was to have."""
    client_tags: Mapping[str, str] = {}
    restored: frozenset[Task] = frozenset()
    """Tasks of which it has said that it holds state; looked at while nobody was to have a standby of them."""
    reports_lags: bool | None = False
    """Whether it tells how far its state is behind; None if that is open. Only `highly_available` looks at this."""
    lags: Mapping[Task, int] = {}
    """Tasks of which it has state, and how many offsets that is behind."""


def assign(
    members: Sequence[MemberInput],
    task_counts: Mapping[str, int],
    stateful: frozenset[str],
    standby_count: int = 0,
    rack_tags: Sequence[str] = (),
) -> dict[str, Tasks]:
    """The target of each member. `task_counts` and `stateful` are by subtopology."""
    if not members:
        return {}
    tasks = [(subtopology_id, partition) for subtopology_id, count in task_counts.items() for partition in range(count)]
    stateful_tasks = [task for task in tasks if task[0] in stateful]
    board = _Board(members, len(tasks), len(stateful_tasks) * standby_count, rack_tags)
    board.place_active(tasks)
    if standby_count > 0:
        board.place_standbys(stateful_tasks, standby_count)
    return board.result()


class _Member:
    __slots__ = ("active", "member_id", "process", "standby", "task_count")

    def __init__(self, member_id: str, process: _Process) -> None:
        self.member_id = member_id
        self.process = process
        self.active: list[Task] = []
        self.standby: list[Task] = []
        self.task_count = 0


class _Process:
    __slots__ = ("by_load", "load", "members", "place", "process_id", "task_count", "tasks")

    def __init__(self, process_id: str, place: _Place) -> None:
        self.process_id = process_id
        self.place = place
        self.members: list[_Member] = []
        self.tasks: set[Task] = set()
        self.task_count = 0
        self.load = 0.0
        self.by_load: list[tuple[int, str, _Member]] | None = None

    def least_loaded(self) -> _Member:
        """The caller gives it a task, and tasks are given out in no other way any more."""
        if len(self.members) == 1:
            return self.members[0]
        if self.by_load is None:
            self.by_load = [(each.task_count, each.member_id, each) for each in self.members]
            heapq.heapify(self.by_load)
        member = self.by_load[0][2]
        heapq.heapreplace(self.by_load, (member.task_count + 1, member.member_id, member))
        return member


class _Quota:
    """How many tasks a member may have."""

    __slots__ = ("_members", "_tasks", "limit")

    def __init__(self, task_count: int, member_count: int) -> None:
        self._tasks = task_count
        self._members = member_count
        self.limit = -(-task_count // member_count)

    def is_reached(self) -> None:
        """By one more member, which leaves the sum with its tasks."""
        self._members -= 1
        self._tasks -= self.limit
        self.limit = -(-self._tasks // self._members) if self._members else 0


class _Board:
    def __init__(
        self, members: Sequence[MemberInput], active_count: int, standby_count: int, rack_tags: Sequence[str]
    ) -> None:
        self._processes: dict[str, _Process] = {}
        self._members: dict[str, _Member] = {}
        self._was_active: dict[Task, _Member] = {}
        self._was_standby: dict[Task, list[_Member]] = {}
        self._holders: dict[Task, list[_Process]] = {}
        self._active_quota = _Quota(active_count, len(members))
        self._total_quota = _Quota(active_count + standby_count, len(members))
        self._has_places = bool(rack_tags)
        self._best: dict[tuple[_Place, ...], tuple[_Place, ...]] = {}
        """By the places of a task's holders."""
        inputs = sorted(members, key=lambda each: (each.process_id, each.member_id))
        for each in inputs:
            self._seat(each, rack_tags)
        for each in inputs:
            self._remember_restored(each)
        self._by_place: dict[_Place, list[_Process]] = {}
        for process in self._processes.values():
            self._by_place.setdefault(process.place, []).append(process)

    def _seat(self, given: MemberInput, rack_tags: Sequence[str]) -> None:
        process = self._processes.get(given.process_id)
        if process is None:
            place = tuple(given.client_tags.get(tag) for tag in rack_tags)
            process = self._processes[given.process_id] = _Process(given.process_id, place)
        member = self._members[given.member_id] = _Member(given.member_id, process)
        process.members.append(member)
        for task in given.previous.active:
            self._was_active[task] = member
        for task in given.previous.standby:
            self._was_standby.setdefault(task, []).append(member)

    def _remember_restored(self, given: MemberInput) -> None:
        member = self._members[given.member_id]
        for task in given.restored:
            if task not in self._was_standby and self._was_active.get(task) is not member:
                self._was_standby[task] = [member]

    def result(self) -> dict[str, Tasks]:
        return {
            member_id: Tasks(frozenset(member.active), frozenset(member.standby))
            for member_id, member in self._members.items()
        }

    def _give(self, member: _Member, task: Task, *, active: bool) -> None:
        process = member.process
        (member.active if active else member.standby).append(task)
        task_count = member.task_count = member.task_count + 1
        process.tasks.add(task)
        process.task_count += 1
        process.load = process.task_count / len(process.members)
        if active and task_count == self._active_quota.limit:
            self._active_quota.is_reached()
        if task_count == self._total_quota.limit:
            self._total_quota.is_reached()
        if self._has_places:
            self._holders.setdefault(task, []).append(process)

    # --- active tasks -------------------------------------------------------------------------------------------------

    def place_active(self, tasks: Iterable[Task]) -> None:
        """Partition by partition while tasks stay, so that tasks of one partition stay together; then subtopology by
        subtopology, so that each is spread over all."""
        rest = self._keep_active(sorted(tasks, key=_by_partition))
        self._spread(sorted(self._promote(rest)))

    def _spread(self, tasks: Iterable[Task]) -> None:
        """Each task to the member with the fewest, of these to the one in the least loaded process. Kafka asks for the
        process first, by which a member can end up with two more than another."""
        queue = [_rank(member) for member in self._members.values()]
        heapq.heapify(queue)
        for task in tasks:
            while queue[0] != (rank := _rank(queue[0][-1])):  # its process has got tasks since
                heapq.heapreplace(queue, rank)
            member = queue[0][-1]
            self._give(member, task, active=True)
            heapq.heapreplace(queue, _rank(member))

    def _keep_active(self, tasks: Iterable[Task]) -> list[Task]:
        rest = []
        for task in tasks:
            member = self._was_active.get(task)
            if member is not None and member.task_count < self._active_quota.limit:
                self._give(member, task, active=True)
            else:
                rest.append(task)
        return rest

    def _promote(self, tasks: Iterable[Task]) -> list[Task]:
        rest = []
        for task in tasks:
            kept = self._was_standby.get(task)
            member = min(kept, key=_by_load) if kept else None
            if member is not None and member.task_count < self._active_quota.limit:
                self._give(member, task, active=True)
            else:
                rest.append(task)
        return rest

    # --- standbys -----------------------------------------------------------------------------------------------------

    def place_standbys(self, tasks: Iterable[Task], copies: int) -> None:
        rest = []
        for task in sorted(tasks, key=_by_partition, reverse=True):
            kept = 0
            while kept < copies and (member := self._previous_holder(task)) is not None:
                self._give(member, task, active=False)
                kept += 1
            if kept < copies:
                rest.append((task, copies - kept))
        queues = {place: _queue(processes) for place, processes in self._by_place.items()}
        for task, missing in sorted(rest, reverse=True):
            for _ in range(missing):
                if not self._place_anywhere(task, queues):
                    break

    def _previous_holder(self, task: Task) -> _Member | None:
        """Where the task was, if a standby may be there: the member that ran it before those that kept a copy."""
        active = self._was_active.get(task)
        if active is not None and self._may_keep(active, task):
            return active
        kept = [each for each in self._was_standby.get(task, ()) if self._may_keep(each, task)]
        return min(kept, key=_by_load) if kept else None

    def _may_keep(self, member: _Member, task: Task) -> bool:
        process = member.process
        if task in process.tasks or member.task_count >= self._total_quota.limit:
            return False
        return not self._has_places or process.place in self._best_places(task)

    def _best_places(self, task: Task) -> tuple[_Place, ...]:
        """Of the places with a process that does not hold the task yet, those that add most to its spread."""
        taken = tuple(process.place for process in self._holders.get(task, ()))
        best = self._best.get(taken)
        if best is None:
            left = [place for place, processes in self._by_place.items() if len(processes) > taken.count(place)]
            novelty = {place: _novelty(place, taken) for place in left}
            highest = max(novelty.values(), default=())
            best = self._best[taken] = tuple(place for place in left if novelty[place] == highest)
        return best

    def _place_anywhere(self, task: Task, queues: Mapping[_Place, list[_Queued]]) -> bool:
        """Give a standby to the least loaded process that has none of the task, in the best of the places left."""
        if not self._has_places:
            return self._place_in(task, queues[()])
        candidates = [queues[place] for place in self._best_places(task)]
        if not candidates:
            return False
        queue = min(candidates, key=lambda queue: _first_free(queue, task)) if len(candidates) > 1 else candidates[0]
        return self._place_in(task, queue)

    def _place_in(self, task: Task, queue: list[_Queued]) -> bool:
        passed = []
        while queue and task in queue[0][2].tasks:
            passed.append(heapq.heappop(queue))
        if queue:
            process = queue[0][2]
            self._give(process.least_loaded(), task, active=False)
            heapq.heapreplace(queue, (process.load, process.process_id, process))
        found = bool(queue)
        for each in passed:
            heapq.heappush(queue, each)
        return found


_Queued = tuple[float, str, _Process]


def _novelty(place: _Place, taken: Sequence[_Place]) -> tuple[bool, ...]:
    """For each tag, whether nobody has this value yet. A missing value is never new."""
    return tuple(
        value is not None and all(other[index] != value for other in taken) for index, value in enumerate(place)
    )


def _queue(processes: Iterable[_Process]) -> list[_Queued]:
    queue = [(process.load, process.process_id, process) for process in processes]
    heapq.heapify(queue)
    return queue


def _first_free(queue: list[_Queued], task: Task) -> tuple[float, str]:
    """Load and id of the least loaded process without the task. There is one."""
    if task not in queue[0][2].tasks:
        return queue[0][:2]
    passed = heapq.heappop(queue)
    found = _first_free(queue, task)
    heapq.heappush(queue, passed)
    return found


def _rank(member: _Member) -> tuple[int, float, str, str, _Member]:
    return member.task_count, member.process.load, member.process.process_id, member.member_id, member


def _by_partition(task: Task) -> tuple[int, str]:
    return task[1], task[0]


def _by_load(member: _Member) -> tuple[float, int, str, str]:
    return member.process.load, member.task_count, member.process.process_id, member.member_id
