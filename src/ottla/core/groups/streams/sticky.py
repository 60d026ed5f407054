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
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Final, NamedTuple

from ottla.core.groups.streams.tasks import NO_TASKS, Task, Tasks

__all__ = ["NAME", "MemberInput", "assign"]

NAME: Final = "sticky"

_SUBTOPOLOGY_ID: Final = itemgetter(0)
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
    tasks = _by_partition(task_counts)
    stateful_tasks = [task for task in tasks if task[0] in stateful]
    board = _Board(members, len(tasks), len(stateful_tasks) * standby_count, rack_tags)
    board.place_active(tasks)
    if standby_count > 0:
        board.place_standbys(stateful_tasks, standby_count)
    return board.result()


class _Member:
    __slots__ = ("active", "number", "process", "standby", "task_count")

    def __init__(self, number: int, process: _Process) -> None:
        self.number = number
        """Its place in the order of process ids and member ids."""
        self.process = process
        self.active: list[Task] = []
        self.standby: list[Task] = []
        self.task_count = 0


class _Process:
    __slots__ = ("members", "number", "place", "rank", "step", "takers", "tasks")

    def __init__(self, number: int, place: _Place) -> None:
        self.number = number
        """Its place in the order of process ids."""
        self.place = place
        self.members: list[_Member] = []
        self.tasks: set[Task] = set()
        self.rank = number
        """Less for a smaller load, which is tasks by members; for the same load, for a smaller process id."""
        self.step = 0
        """What a task adds to the rank: a multiple of the number of processes, so that ranks are never the same."""
        self.takers = _in_turn(self.members)
        """Who takes a standby that the process gets."""


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
        whole_load = math.lcm(*(len(process.members) for process in self._processes.values()))
        for process in self._processes.values():
            process.step = whole_load // len(process.members) * len(self._processes)
            self._by_place.setdefault(process.place, []).append(process)

    def _seat(self, given: MemberInput, rack_tags: Sequence[str]) -> None:
        process = self._processes.get(given.process_id)
        if process is None:
            place = tuple(given.client_tags.get(tag) for tag in rack_tags)
            process = self._processes[given.process_id] = _Process(len(self._processes), place)
        member = self._members[given.member_id] = _Member(len(self._members), process)
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

    def _give(self, member: _Member, role: list[Task], task: Task) -> None:
        """`role` is the member's own list of active tasks or of standbys."""
        process = member.process
        role.append(task)
        task_count = member.task_count = member.task_count + 1
        process.tasks.add(task)
        process.rank += process.step
        if task_count == self._total_quota.limit:
            self._total_quota.is_reached()
        if self._has_places:
            self._holders.setdefault(task, []).append(process)

    # --- active tasks -------------------------------------------------------------------------------------------------

    def place_active(self, tasks: Iterable[Task]) -> None:
        """Partition by partition while tasks stay, so that tasks of one partition stay together; then subtopology by
        subtopology, so that each is spread over all."""
        rest = self._promote(self._keep_active(tasks))
        self._spread(sorted(rest, key=_SUBTOPOLOGY_ID))  # which leaves those of a subtopology ordered by partition

    def _spread(self, tasks: Sequence[Task]) -> None:
        """Each task to the member with the fewest, of these to the one in the least loaded process. Kafka asks for the
        process first, by which a member can end up with two more than another.

        So all members that have the fewest take one each before any takes a second.
        """
        fewest = min(member.task_count for member in self._members.values())
        rest = iter(tasks)
        rest_count = len(tasks)
        while rest_count > 0:
            takers = _by_coming_load([member for member in self._members.values() if member.task_count == fewest])
            for member, task in zip(takers, rest, strict=False):
                self._give(member, member.active, task)
            rest_count -= len(takers)
            fewest += 1

    def _keep(self, member: _Member, task: Task) -> bool:
        """Give an active task to a member that has state of it, unless it has its share."""
        if member.task_count >= self._active_quota.limit:
            return False
        self._give(member, member.active, task)
        if member.task_count == self._active_quota.limit:
            self._active_quota.is_reached()
        return True

    def _keep_active(self, tasks: Iterable[Task]) -> list[Task]:
        rest = []
        for task in tasks:
            member = self._was_active.get(task)
            if member is None or not self._keep(member, task):
                rest.append(task)
        return rest

    def _promote(self, tasks: Iterable[Task]) -> list[Task]:
        rest = []
        for task in tasks:
            member = _least_loaded(self._was_standby.get(task, ()))
            if member is None or not self._keep(member, task):
                rest.append(task)
        return rest

    # --- standbys -----------------------------------------------------------------------------------------------------

    def place_standbys(self, tasks: Sequence[Task], copies: int) -> None:
        """From the last task to the first. `tasks` are ordered by partition."""
        with_state = self._was_active.keys() | self._was_standby.keys()
        rest = []
        for task in reversed(tasks):
            missing = copies - self._keep_standbys(task, copies) if task in with_state else copies
            rest += [task] * missing
        queues = {place: _queue(processes) for place, processes in self._by_place.items()}
        for task in sorted(rest, key=_SUBTOPOLOGY_ID, reverse=True):
            self._place_in(task, self._best_queue(task, queues) if self._has_places else queues[()])

    def _keep_standbys(self, task: Task, copies: int) -> int:
        """Give standbys of a task to where it was; how many."""
        for kept in range(copies):
            member = self._previous_holder(task)
            if member is None:
                return kept
            self._give(member, member.standby, task)
        return copies

    def _previous_holder(self, task: Task) -> _Member | None:
        """Where the task was, if a standby may be there: the member that ran it before those that kept a copy."""
        active = self._was_active.get(task)
        if active is not None and self._may_keep(active, task):
            return active
        kept = [each for each in self._was_standby.get(task, ()) if self._may_keep(each, task)]
        return _least_loaded(kept)

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

    def _best_queue(self, task: Task, queues: Mapping[_Place, list[_Queued]]) -> list[_Queued]:
        """Of the best of the places left, the one with the least loaded process that has none of the task."""
        candidates = [queues[place] for place in self._best_places(task)]
        if len(candidates) > 1:
            return min(candidates, key=lambda queue: _first_free(queue, task))
        return candidates[0] if candidates else []

    def _place_in(self, task: Task, queue: list[_Queued]) -> None:
        """Give a standby to the least loaded process of a queue that has none of the task, if there is one."""
        if not queue:
            return
        process = queue[0][1]
        if task not in process.tasks:
            member = next(process.takers)
            self._give(member, member.standby, task)
            heapq.heapreplace(queue, (process.rank, process))
            return
        passed = heapq.heappop(queue)
        self._place_in(task, queue)
        heapq.heappush(queue, passed)


_Queued = tuple[int, _Process]
"""A process with its rank, which orders the queue."""


def _novelty(place: _Place, taken: Sequence[_Place]) -> tuple[bool, ...]:
    """For each tag, whether nobody has this value yet. A missing value is never new."""
    return tuple(
        value is not None and all(other[index] != value for other in taken) for index, value in enumerate(place)
    )


def _queue(processes: Iterable[_Process]) -> list[_Queued]:
    queue = [(process.rank, process) for process in processes]
    heapq.heapify(queue)
    return queue


def _first_free(queue: list[_Queued], task: Task) -> int:
    """The rank of the least loaded process without the task. There is one."""
    if task not in queue[0][1].tasks:
        return queue[0][0]
    passed = heapq.heappop(queue)
    found = _first_free(queue, task)
    heapq.heappush(queue, passed)
    return found


def _by_partition(task_counts: Mapping[str, int]) -> list[Task]:
    """All tasks: those of partition 0 first, ordered by subtopology."""
    subtopologies = sorted(task_counts.items())
    return [
        (subtopology_id, partition)
        for partition in range(max(task_counts.values(), default=0))
        for subtopology_id, count in subtopologies
        if partition < count
    ]


def _in_turn(members: Iterable[_Member]) -> Iterator[_Member]:
    """Members, given by number, in the order in which they take tasks if each goes to the one that has the fewest. It
    must have taken its task before the next one is asked for, and nobody may get any otherwise."""
    for count in itertools.count(min(member.task_count for member in members)):
        yield from [member for member in members if member.task_count == count]


def _by_coming_load(members: Iterable[_Member]) -> list[_Member]:
    """Members, given by number, in the order in which each takes one task: the least loaded process first. What a
    member takes counts for those of its process that come after it."""
    coming_rank: dict[_Process, int] = {}
    ranks: dict[_Member, int] = {}
    for member in members:
        process = member.process
        rank = ranks[member] = coming_rank.get(process, process.rank)
        coming_rank[process] = rank + process.step
    return sorted(ranks, key=ranks.__getitem__)


def _least_loaded(members: Sequence[_Member]) -> _Member | None:
    if len(members) > 1:
        return min(members, key=_by_load)
    return members[0] if members else None


def _by_load(member: _Member) -> tuple[int, int, int]:
    process = member.process
    return process.rank - process.number, member.task_count, member.number
