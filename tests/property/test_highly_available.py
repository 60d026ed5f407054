"""The aims of the highly available assignor, for groups of any make-up, any history and any state of their copies."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from ottla.core.groups.streams import sticky
from ottla.core.groups.streams.assignment import is_step
from ottla.core.groups.streams.highly_available import Limits, Plan, plan
from ottla.core.groups.streams.reconciliation import Holders
from ottla.core.groups.streams.sticky import MemberInput
from ottla.core.groups.streams.tasks import Task, Tasks

LAG = 10_000


class Situation(NamedTuple):
    members: list[MemberInput]
    counts: dict[str, int]
    stateful: frozenset[str]
    standby_count: int
    warmup_count: int
    holders: Holders = Holders({}, {}, {})

    def plan(self) -> Plan:
        limits = Limits(self.warmup_count, LAG)
        return plan(self.members, self.counts, self.stateful, self.standby_count, (), limits, self.holders)

    @property
    def process(self) -> dict[str, str]:
        return {each.member_id: each.process_id for each in self.members}

    @property
    def tasks(self) -> list[Task]:
        return [(each, partition) for each, count in self.counts.items() for partition in range(count)]

    @property
    def stateful_tasks(self) -> list[Task]:
        return [task for task in self.tasks if task[0] in self.stateful]

    def owners(self) -> dict[Task, str]:
        """Before."""
        known = set(self.tasks)
        return {task: each.member_id for each in self.members for task in each.previous.active & known}

    def is_near(self, task: Task, process_id: str) -> bool:
        """By reports, or by trust in those that never report."""
        own = [each for each in self.members if each.process_id == process_id]
        if any(each.lags.get(task, LAG + 1) <= LAG for each in own):
            return True
        return any(each.reports_lags is False and task in each.previous.standby | each.previous.warmup for each in own)

    def after(self, made: Plan, *, caught_up: bool = False) -> Situation:
        """Everybody has what the plan gives; with `caught_up`, all copies have been restored too."""
        members = [
            each._replace(
                previous=made.targets[each.member_id],
                lags=each.lags | dict.fromkeys(_all(made.targets[each.member_id]), 0) if caught_up else each.lags,
            )
            for each in self.members
        ]
        return self._replace(members=members, holders=holders_of(made.targets, self.process))


def _all(target: Tasks) -> frozenset[Task]:
    return target.active | target.standby | target.warmup


def holders_of(targets: dict[str, Tasks], process: dict[str, str]) -> Holders:
    active, standby, warmup = {}, {}, {}
    for member_id, target in targets.items():
        active.update(dict.fromkeys(target.active, process[member_id]))
        for index, tasks in ((standby, target.standby), (warmup, target.warmup)):
            for task in tasks:
                index.setdefault(task, set()).add(process[member_id])
    return Holders(active, standby, warmup)


def owners_of(made: Plan) -> dict[Task, str]:
    return {task: member_id for member_id, target in made.targets.items() for task in target.active}


@st.composite
def groups(draw: st.DrawFn, reports: tuple[bool | None, ...] = (True, True, True, False, None)) -> Situation:
    members = []
    for process in range(draw(st.integers(1, 4))):
        reports_lags = draw(st.sampled_from(reports))
        members += [
            MemberInput(f"m{process}-{thread}", f"p{process}", reports_lags=reports_lags)
            for thread in range(draw(st.integers(1, 2)))
        ]
    counts = {str(each): draw(st.integers(1, 5)) for each in range(draw(st.integers(1, 3)))}
    stateful = frozenset(draw(st.sets(st.sampled_from(sorted(counts)), min_size=1)))
    return Situation(members, counts, stateful, draw(st.integers(0, 2)), draw(st.integers(0, 3)))


LAGS = st.sampled_from((0, 1, LAG, LAG + 1, 1_000_000, 2**63))


def with_lags(draw: st.DrawFn, situation: Situation) -> Situation:
    tasks = st.sampled_from(situation.stateful_tasks)
    members = [
        each._replace(lags=draw(st.dictionaries(tasks, LAGS, max_size=6)) if each.reports_lags else {})
        for each in situation.members
    ]
    return situation._replace(members=members)


@st.composite
def situations(draw: st.DrawFn, reports: tuple[bool | None, ...] = (True, True, True, False, None)) -> Situation:
    """A group that has been through some changes: members that came and went, copies on their way."""
    situation = draw(groups(reports))
    for _ in range(draw(st.integers(0, 3))):
        present = draw(st.lists(st.sampled_from(situation.members), min_size=1, unique_by=lambda each: each.member_id))
        smaller = with_lags(draw, situation._replace(members=present))
        targets = smaller.plan().targets
        members = [each._replace(previous=targets.get(each.member_id, Tasks())) for each in situation.members]
        situation = situation._replace(members=members)
        if draw(st.booleans()):
            situation = situation._replace(holders=holders_of(targets, situation.process))
    return with_lags(draw, situation)


@given(situations())
def test_every_task_is_active_once(situation: Situation):
    targets = situation.plan().targets
    assert set(targets) == set(situation.process)
    assert sorted(task for target in targets.values() for task in target.active) == sorted(situation.tasks)


@given(situations())
def test_no_task_with_state_moves_to_a_cold_process(situation: Situation):
    owners, made, process = situation.owners(), situation.plan(), situation.process
    reports = {each.member_id: each.reports_lags for each in situation.members}
    for task, new in owners_of(made).items():
        old = owners.get(task)
        if task[0] in situation.stateful and old is not None and process[old] != process[new]:
            assert reports[new] is False or situation.is_near(task, process[new])


@given(situations())
def test_who_has_caught_up_gets_the_task_of_who_is_gone(situation: Situation):
    owners, made, process = situation.owners(), situation.plan(), situation.process
    reports = {each.member_id: each.reports_lags for each in situation.members}
    for task, new in owners_of(made).items():
        if task[0] in situation.stateful and task not in owners and reports[new] is not False:
            near = {each for each in process.values() if situation.is_near(task, each)}
            assert not near or process[new] in near or situation.holders.active.get(task) == process[new]


@given(situations())
def test_there_are_never_more_warmups_than_allowed(situation: Situation):
    given_ = {
        (task, situation.process[member_id])
        for member_id, target in situation.plan().targets.items()
        for task in target.warmup
    }
    held = {(task, each) for task, processes in situation.holders.warmup.items() for each in processes}
    assert len(given_) <= situation.warmup_count
    assert len(given_ | held) <= max(situation.warmup_count, len(held))


@given(situations())
def test_copies_of_a_task_are_in_processes_of_their_own(situation: Situation):
    copies = Counter(
        (task, situation.process[member_id])
        for member_id, target in situation.plan().targets.items()
        for role in target
        for task in role
    )
    assert set(copies.values()) <= {1}


@given(situations())
def test_there_are_as_many_copies_as_processes_allow(situation: Situation):
    wanted = min(situation.standby_count, len(set(situation.process.values())) - 1)
    copies: Counter[Task] = Counter()
    for target in situation.plan().targets.values():
        copies.update(target.standby)
        copies.update(target.warmup)
    assert all(copies[task] >= wanted for task in situation.stateful_tasks)


@given(situations())
def test_a_task_that_waits_keeps_its_standbys(situation: Situation):
    made, process = situation.plan(), situation.process
    owners = owners_of(made)
    for task, _ in made.waiting:
        before = {each.member_id for each in situation.members if task in each.previous.standby}
        before -= {each for each in before if process[each] == process[owners[task]]}
        kept = {member_id for member_id in before if task in made.targets[member_id].standby}
        assert len(kept) == min(len({process[each] for each in before}), situation.standby_count)


@given(situations())
def test_warmups_go_where_the_task_should_be(situation: Situation):
    made = situation.plan()
    for member_id, target in made.targets.items():
        assert {(task, situation.process[member_id]) for task in target.warmup} <= made.waiting


@given(situations(reports=(True,)))
def test_what_has_begun_goes_on(situation: Situation):
    """From where a plan leads, the same reports lead nowhere else: at most further warm-ups follow, for which there was
    no room. Where tasks had no owner the second plan may still be better than the first."""
    made = situation.plan()
    reached = situation.after(made)
    if len(situation.owners()) < len(situation.tasks):
        made = reached.plan()
        reached = reached.after(made)
    again = reached.plan()
    assert owners_of(again) == owners_of(made)
    assert all(target.warmup <= again.targets[each].warmup for each, target in made.targets.items())
    assert made.lacks_warmups or not is_step(made.targets, again.targets)


def run_to_the_end(situation: Situation) -> tuple[Plan, int]:
    """Everybody restores what he is given, until there is nothing to do; the number of steps."""
    made, steps = situation.plan(), 0
    while True:
        situation = situation.after(made, caught_up=True)
        following = situation.plan()
        if not is_step(made.targets, following.targets):
            return made, steps
        made, steps = following, steps + 1
        assert steps <= 2 * len(situation.tasks) + 2


@given(situations(reports=(True,)))
def test_balance_is_reached_in_the_end(situation: Situation):
    situation = situation._replace(warmup_count=situation.warmup_count or 1)
    made, _ = run_to_the_end(situation)
    sizes = [len(target.active) for target in made.targets.values()]
    assert max(sizes) - min(sizes) <= 1
    assert not made.waiting
    assert not any(target.warmup for target in made.targets.values())


@given(situations(reports=(True, False, None)))
def test_there_is_an_end_in_any_group(situation: Situation):
    run_to_the_end(situation)


@given(groups(reports=(True,)))
def test_a_new_process_gets_its_share_and_no_other_task_moves(situation: Situation):
    """One after another: as many moves as the sticky assignor needs, and no more."""
    newcomers = [each for each in situation.members if each.process_id == "p0"]
    stayers = situation.members[len(newcomers) :]
    situation = situation._replace(warmup_count=situation.warmup_count or 1)
    if not stayers:
        return
    before = situation._replace(members=stayers)
    first = before.plan()
    members = [each._replace(previous=first.targets.get(each.member_id, Tasks())) for each in situation.members]
    at_once = situation._replace(members=members, holders=holders_of(first.targets, before.process)).plan()
    cold = set(situation.stateful_tasks)
    assert not any(at_once.targets[each.member_id].active & cold for each in newcomers)
    made, _ = run_to_the_end(situation._replace(members=members, holders=holders_of(first.targets, before.process)))
    moved = sum(len(first.targets[each.member_id].active - made.targets[each.member_id].active) for each in stayers)
    assert moved == sum(len(made.targets[each.member_id].active) for each in newcomers)


@given(situations(reports=(False,)))
def test_a_group_that_reports_nothing_is_assigned_as_by_the_sticky_assignor(situation: Situation):
    wanted = sticky.assign(situation.members, situation.counts, situation.stateful, situation.standby_count)
    assert situation.plan() == Plan(wanted)


@given(situations(), st.randoms())
def test_the_order_of_members_does_not_matter(situation: Situation, random: Random):
    shuffled = list(situation.members)
    random.shuffle(shuffled)
    assert situation._replace(members=shuffled).plan() == situation.plan()


@given(situations(reports=(True,)))
def test_tasks_without_state_move_at_once(situation: Situation):
    stateless = situation._replace(stateful=frozenset())
    sizes = [len(target.active) for target in stateless.plan().targets.values()]
    assert max(sizes) - min(sizes) <= 1
