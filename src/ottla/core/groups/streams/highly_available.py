"""The highly available assignor: ours. No task with state moves to a member that would have to restore it first.

Its aims, in this order:

1. every task is active at exactly one member, at any time;
2. a task with state stays with its owner until the process that is to have it has caught up: until it has reported that
   it is behind by no more than the acceptable lag. Tasks without state move at once;
3. whoever is to have a task, and is not near enough, gets a *warm-up* of it, a copy that is restored while the owner
   goes on. There are never more of these than allowed, counting those that members have still to give up;
4. a task whose owner is gone goes at once to where most of its state is, even if that member has its share already;
5. in the end, when everybody has caught up, active tasks are balanced: two members differ by at most one;
6. of tasks that must move for this, those do of which the new owner has most already, and what has begun goes on;
7. while a task waits it keeps its standbys, and it has no fewer copies than asked for: a warm-up counts as one;
8. everything else is as the sticky assignor has it, which says who *should* have what. This one says how much of that
   may happen now.

Members that report no offsets, such as clients of version 0, count as in the sticky assignor: tasks move to them at
once, and they get no warm-ups. A group of only such members gets what the sticky assignor gives. Of members that have
not been heard since the coordinator took over it is open whether they report: they keep what they have, and get no
warm-up and no task with state that somebody else has.

State directories belong to processes, so it is processes that are near a task or far from it. Between two members of a
process a task moves at once; no copy could be made for it there.

The result is a whole target. It is kept as any other, so a coordinator that takes over goes on where the last one was;
what is open between the two assignments, the one that should be and the one that is, is worked out anew each time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from ottla.core.groups.streams import sticky
from ottla.core.groups.streams.reconciliation import Holders
from ottla.core.groups.streams.sticky import MemberInput
from ottla.core.groups.streams.tasks import Task, Tasks

__all__ = ["NAME", "UNTOLD_LAG", "Copy", "Limits", "Plan", "plan"]

NAME: Final = "highly_available"
UNTOLD_LAG: Final = 2**63
"""Of who has some state of a task, and nobody knows how much: more than any lag that is known."""

Copy = tuple[Task, str]
"""A task, and the process that has state of it or is to have some."""

NOBODY: Final = Holders({}, {}, {})


class Limits(NamedTuple):
    warmup_count: int = 2
    acceptable_lag: int = 10_000


DEFAULT_LIMITS: Final = Limits()


class Plan(NamedTuple):
    targets: dict[str, Tasks]
    waiting: frozenset[Copy] = frozenset()
    """Tasks that are not where they should be, with the processes that should have them."""
    lacks_warmups: bool = False
    """Whether some of these wait for a warm-up that there may not be yet."""


def plan(
    members: Sequence[MemberInput],
    task_counts: Mapping[str, int],
    stateful: frozenset[str],
    standby_count: int = 0,
    rack_tags: Sequence[str] = (),
    limits: Limits = DEFAULT_LIMITS,
    holders: Holders = NOBODY,
) -> Plan:
    """The next target of each member. `holders` are the processes that have tasks now, whatever the targets were."""
    if all(each.reports_lags is False for each in members):
        return Plan(sticky.assign(members, task_counts, stateful, standby_count, rack_tags))
    group = _Group(members, limits.acceptable_lag, holders)
    tasks = [(subtopology_id, partition) for subtopology_id, count in task_counts.items() for partition in range(count)]
    stateful_tasks = sorted((task for task in tasks if task[0] in stateful), key=_by_partition)
    owners = group.owners(tasks)
    moved = _nearest_moves(group, owners, stateful_tasks, _Shares(owners, group.process, len(tasks)))
    wished = sticky.assign(_as_if_moved(group, moved), task_counts, stateful, standby_count, rack_tags)
    draft = _Draft(group, wished)
    draft.hold_back(owners, stateful_tasks)
    if not draft.waiting:
        return Plan(wished)
    draft.keep_standbys(standby_count)
    lacks_warmups = draft.warm_up(limits.warmup_count)
    draft.fill_up(standby_count)
    waiting = frozenset((task, group.process[wish]) for task, wish in draft.waiting.items())
    return Plan(draft.result(), waiting, lacks_warmups)


class _Group:
    """Its members, and how near their processes are to tasks."""

    def __init__(self, members: Sequence[MemberInput], acceptable_lag: int, holders: Holders) -> None:
        self.members = sorted(members, key=lambda each: (each.process_id, each.member_id))
        self.holders = holders
        self.process = {each.member_id: each.process_id for each in self.members}
        self.reports = {each.member_id: each.reports_lags for each in self.members}
        self.members_of: dict[str, list[str]] = {}
        self.lags: dict[Task, dict[str, int]] = {}
        """By task, how far processes are behind that have state of it."""
        self.standbys: dict[Task, list[str]] = {}
        self.warmups: dict[Task, list[str]] = {}
        """By task, members that were to have such a copy."""
        self.trusted: set[Copy] = set()
        """Of these, copies of which nobody will ever say how far they are."""
        self._acceptable_lag = acceptable_lag
        for each in self.members:
            self.members_of.setdefault(each.process_id, []).append(each.member_id)
            self._take(each)
        for each in self.members:
            self._take_untold(each)

    def _take(self, member: MemberInput) -> None:
        for task in member.previous.standby:
            self.standbys.setdefault(task, []).append(member.member_id)
        for task in member.previous.warmup:
            self.warmups.setdefault(task, []).append(member.member_id)
        for task, lag in member.lags.items():
            known = self.lags.setdefault(task, {})
            known[member.process_id] = min(lag, known.get(member.process_id, lag))

    def _take_untold(self, member: MemberInput) -> None:
        """Copies that nothing has been said of. A client that never does so is trusted to keep up, as in sticky."""
        is_trusted = member.reports_lags is False
        for task in member.previous.standby | member.previous.warmup:
            known = self.lags.setdefault(task, {})
            if member.process_id not in known:
                known[member.process_id] = self._acceptable_lag if is_trusted else UNTOLD_LAG
                self.trusted |= {(task, member.process_id)} if is_trusted else set()

    def owners(self, tasks: Iterable[Task]) -> dict[Task, str]:
        """Who was to run each task, as far as these are still members."""
        known = set(tasks)
        return {task: each.member_id for each in self.members for task in each.previous.active if task in known}

    def is_near(self, task: Task, process_id: str) -> bool:
        return self.lags.get(task, {}).get(process_id, UNTOLD_LAG) <= self._acceptable_lag

    def rank(self, task: Task, process_id: str) -> int:
        """0 if it has caught up, else how far it is behind. Who runs the task has all of it, unless told otherwise."""
        if self.is_near(task, process_id):
            return 0
        lag = self.lags.get(task, {}).get(process_id, 2 * UNTOLD_LAG)
        return 0 if lag >= UNTOLD_LAG and self.holders.active.get(task) == process_id else lag

    def near_processes(self, task: Task) -> list[str]:
        """Who has any state of a task."""
        running = self.holders.active.get(task)
        return sorted({*self.lags.get(task, ()), *((running,) if running in self.members_of else ())})

    def least_busy(self, process_id: str, counts: Counter[str]) -> str:
        return min(self.members_of[process_id], key=lambda member_id: (counts[member_id], member_id))


# --- who should have what ---------------------------------------------------------------------------------------------


class _Shares:
    """How many tasks members have, and whether a move brings their numbers nearer to each other by the fewest moves."""

    def __init__(self, owners: Mapping[Task, str], members: Iterable[str], task_count: int) -> None:
        self.counts = Counter(owners.values())
        names = list(members)
        self._low, rest = divmod(task_count, len(names))
        self.high = self._low + bool(rest)
        self._missing = sum(max(0, self._low - self.counts[each]) for each in names)
        """Up to the lower share."""
        self._extra = sum(max(0, self.counts[each] - self.high) for each in names)
        """Beyond the higher one."""
        self._unowned = task_count - len(owners)

    def is_better(self, old: str, new: str) -> bool:
        has_extra, is_missing = self.counts[old] > self.high, self.counts[new] < self._low
        if has_extra and is_missing:
            return True
        if is_missing:
            return self.counts[old] > self._low and self._missing > self._extra + self._unowned
        return has_extra and self.counts[new] < self.high and self._extra > self._missing

    def move(self, old: str, new: str) -> None:
        self._extra -= self.counts[old] > self.high
        self.counts[old] -= 1
        self._unowned += 1
        self.adopt(new)

    def adopt(self, new: str) -> None:
        """Give a task that nobody owns."""
        self._missing -= self.counts[new] < self._low
        self.counts[new] += 1
        self._unowned -= 1


def _nearest_moves(
    group: _Group, owners: Mapping[Task, str], stateful: Sequence[Task], shares: _Shares
) -> dict[Task, str]:
    """Owners after those moves that balance the group and for which the new owner has state already."""
    moved = dict(owners)
    orphans = [task for task in stateful if task not in owners]
    for task in sorted(orphans, key=lambda task: len(group.lags.get(task, ()))):  # who has the least choice comes first
        _adopt(group, task, moved, shares)
    for task, process_id in _begun_first(group, moved, stateful):
        new = group.least_busy(process_id, shares.counts)
        if group.process[moved[task]] != process_id and shares.is_better(moved[task], new):
            shares.move(moved[task], new)
            moved[task] = new
    return moved


def _adopt(group: _Group, task: Task, moved: dict[Task, str], shares: _Shares) -> None:
    """Give a task without an owner to the nearest member that has not its share yet, if there is one."""
    candidates = [group.least_busy(process_id, shares.counts) for process_id in group.near_processes(task)]
    free = [each for each in candidates if shares.counts[each] < shares.high]
    if free:
        new = min(free, key=lambda each: (group.rank(task, group.process[each]), shares.counts[each], each))
        moved[task] = new
        shares.adopt(new)


def _begun_first(group: _Group, owners: Mapping[Task, str], stateful: Iterable[Task]) -> list[Copy]:
    """Who has state of which task: those that have caught up, then warm-ups, then the nearest. Who never reports is
    left out: anything may move to him at any time."""
    ranked = []
    for task in stateful:
        begun = {group.process[each] for each in group.warmups.get(task, ())}
        for process_id, lag in group.lags.get(task, {}).items() if task in owners else ():
            if (task, process_id) not in group.trusted:
                is_far = not group.is_near(task, process_id)
                key = (is_far, process_id not in begun, lag if is_far else 0, *_by_partition(task), process_id)
                ranked.append((key, task))
    return [(task, key[-1]) for key, task in sorted(ranked)]


def _as_if_moved(group: _Group, owners: Mapping[Task, str]) -> list[MemberInput]:
    """What the sticky assignor is told: that tasks have these owners, and that warm-ups are standbys."""
    active: dict[str, list[Task]] = {}
    for task, member_id in owners.items():
        active.setdefault(member_id, []).append(task)
    return [
        each._replace(
            previous=Tasks(frozenset(active.get(each.member_id, ())), each.previous.standby | each.previous.warmup),
            restored=frozenset(),
        )
        for each in group.members
    ]


# --- what of it may happen now ----------------------------------------------------------------------------------------


class _Draft:
    """A target in the making: `owners`, `standbys` and `warmups` by task."""

    def __init__(self, group: _Group, wished: Mapping[str, Tasks]) -> None:
        self._group = group
        self.owners = {task: member_id for member_id, target in wished.items() for task in target.active}
        self.standbys: dict[Task, list[str]] = {}
        for member_id in group.process:
            for task in wished[member_id].standby:
                self.standbys.setdefault(task, []).append(member_id)
        self.warmups: dict[Task, str] = {}
        self.waiting: dict[Task, str] = {}
        """Tasks that are not where they should be -> who should have them."""

    def result(self) -> dict[str, Tasks]:
        active: dict[str, list[Task]] = {member_id: [] for member_id in self._group.process}
        standby: dict[str, list[Task]] = {member_id: [] for member_id in active}
        warmup: dict[str, list[Task]] = {member_id: [] for member_id in active}
        for task, member_id in self.owners.items():
            active[member_id].append(task)
        for task, member_ids in self.standbys.items():
            for member_id in member_ids:
                standby[member_id].append(task)
        for task, member_id in self.warmups.items():
            warmup[member_id].append(task)
        return {each: Tasks(*map(frozenset, (active[each], standby[each], warmup[each]))) for each in active}

    def hold_back(self, owners: Mapping[Task, str], stateful: Iterable[Task]) -> None:
        """Leave tasks where they were that are not near enough to where they should be."""
        counts = Counter(self.owners.values())
        for task in stateful:
            wish, owner = self.owners[task], owners.get(task)
            if not self._may_move(task, owner, wish):
                stay = owner if owner is not None else self._nearest(task, wish, counts)
                counts[wish] -= 1
                counts[stay] += 1
                self.owners[task] = stay
                if stay != wish:
                    self.waiting[task] = wish

    def _may_move(self, task: Task, owner: str | None, wish: str) -> bool:
        group = self._group
        if group.reports[wish] is False or group.is_near(task, group.process[wish]):
            return True
        return owner is not None and group.process[owner] == group.process[wish]

    def _nearest(self, task: Task, wish: str, counts: Counter[str]) -> str:
        """For a task whose owner is gone: of those that have most of its state, who has least to do."""
        group = self._group
        processes = group.near_processes(task)
        least = min((group.rank(task, each) for each in processes), default=0)
        best = [each for each in processes if group.rank(task, each) == least]
        if not best or group.process[wish] in best:
            return wish
        return min((group.least_busy(each, counts) for each in best), key=lambda each: (counts[each], each))

    def keep_standbys(self, standby_count: int) -> None:
        """Of tasks that wait: as they were, and only what is missing as it should be."""
        process = self._group.process
        for task in self.waiting:
            taken = {process[self.owners[task]]}
            kept: list[str] = []
            for each in (*self._group.standbys.get(task, ()), *self.standbys.get(task, ())):
                if len(kept) < standby_count and process[each] not in taken:
                    kept.append(each)
                    taken.add(process[each])
            self.standbys[task] = kept

    def warm_up(self, warmup_count: int) -> bool:
        """Give warm-ups to who waits, as far as there may be; whether there should be more."""
        group = self._group
        held = {(task, process_id) for task, holders in group.holders.warmup.items() for process_id in holders}
        given: set[Copy] = set()
        is_short = False
        for copy in self._wanting_warmups(held):
            if len(given) < warmup_count and (copy in held or len(held | given) < warmup_count):
                given.add(copy)
                self.warmups[copy[0]] = self._warmer(*copy)
            else:
                is_short = True
        return is_short

    def _wanting_warmups(self, held: set[Copy]) -> list[Copy]:
        """Those that are there already first, then those that are nearest."""
        group = self._group
        ranked = []
        for task, wish in self.waiting.items():
            process_id = group.process[wish]
            is_begun = (task, process_id) in held or any(
                group.process[each] == process_id for each in group.warmups.get(task, ())
            )
            if not self._has_standby(task, process_id) and (is_begun or group.reports[wish]):
                rank = (not is_begun, group.rank(task, process_id), *_by_partition(task))
                ranked.append((rank, (task, process_id)))
        return [copy for _, copy in sorted(ranked)]

    def _warmer(self, task: Task, process_id: str) -> str:
        """The member of a process that warms up a task: who does so already, else who is to have it."""
        already = [each for each in self._group.warmups.get(task, ()) if self._group.process[each] == process_id]
        return already[0] if already else self.waiting[task]

    def fill_up(self, standby_count: int) -> None:
        """Where a task that waits has a copy less than it should have, since its owner should be one of them, who is to
        have it keeps a standby until then."""
        for task, wish in self.waiting.items():
            process_id = self._group.process[wish]
            if (
                task not in self.warmups
                and len(self.standbys[task]) < standby_count
                and not self._has_standby(task, process_id)
            ):
                self.standbys[task].append(wish)

    def _has_standby(self, task: Task, process_id: str) -> bool:
        return any(self._group.process[each] == process_id for each in self.standbys.get(task, ()))


def _by_partition(task: Task) -> tuple[int, str]:
    return task[1], task[0]
