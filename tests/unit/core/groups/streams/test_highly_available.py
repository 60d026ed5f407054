"""The highly available assignor in cases that can be followed by hand."""

from __future__ import annotations

from typing import Any

from ottla.core.groups.streams.highly_available import UNTOLD_LAG, Limits, Plan, plan
from ottla.core.groups.streams.reconciliation import Holders
from ottla.core.groups.streams.sticky import MemberInput
from ottla.core.groups.streams.tasks import NO_TASKS, Tasks

STATEFUL = frozenset("0")


def tasks(*partitions: int) -> frozenset[tuple[str, int]]:
    return frozenset(("0", partition) for partition in partitions)


def had(*partitions: int, standby: tuple[int, ...] = (), warmup: tuple[int, ...] = ()) -> Tasks:
    return Tasks(tasks(*partitions), tasks(*standby), tasks(*warmup))


def member(name: str, previous: Tasks = NO_TASKS, lags: dict[int, int] | None = None, **fields: Any) -> MemberInput:
    known = {("0", partition): lag for partition, lag in (lags or {}).items()}
    return MemberInput(name, fields.pop("process", name), previous, **{"reports_lags": True, "lags": known, **fields})


def planned(*members: MemberInput, count: int, standbys: int = 0, warmups: int = 2, **fields: Any) -> Plan:
    return plan(members, {"0": count}, STATEFUL, standbys, limits=Limits(warmups, 10_000), **fields)


def test_nothing_with_state_moves_when_an_application_is_scaled_out():
    made = planned(member("A", had(0, 1, 2, 3)), member("B", lags={3: 1_000_000}), count=4)
    assert made.targets == {"A": had(0, 1, 2, 3), "B": had(warmup=(2, 3))}
    assert made.waiting == {(("0", 2), "B"), (("0", 3), "B")}
    assert not made.lacks_warmups


def test_a_task_moves_when_its_new_owner_is_within_the_limit():
    nearly = planned(member("A", had(0, 1)), member("B", had(warmup=(1,)), lags={1: 10_001}), count=2)
    assert nearly.targets == {"A": had(0, 1), "B": had(warmup=(1,))}
    near = planned(member("A", had(0, 1)), member("B", had(warmup=(1,)), lags={1: 10_000}), count=2)
    assert near.targets == {"A": had(0), "B": had(1)}


def test_an_instance_that_comes_back_gets_what_it_has_state_of():
    made = planned(member("A", had(0, 1, 2, 3)), member("B", lags={0: 0, 1: 50}), count=4)
    assert made.targets == {"A": had(2, 3), "B": had(0, 1)}


def test_what_has_most_is_warmed_up_first():
    made = planned(member("A", had(0, 1, 2, 3)), member("B", lags={0: 20_000, 3: 11_000}), count=4, warmups=1)
    assert made.targets["B"] == had(warmup=(3,))
    assert made.waiting == {(("0", 0), "B"), (("0", 3), "B")}
    assert made.lacks_warmups


def test_a_warmup_that_is_still_held_takes_the_place_of_another():
    holders = Holders({}, {}, {("0", 3): {"C"}})
    made = planned(member("A", had(0, 1)), member("B"), member("C"), count=2, warmups=1, holders=holders)
    assert made.targets["B"] == NO_TASKS
    assert made.lacks_warmups


def test_a_caught_up_standby_is_promoted_though_it_has_its_share():
    made = planned(member("B", had(2, 3, standby=(0, 1)), {0: 5, 1: 5}), member("C"), count=4)
    assert made.targets == {"B": had(0, 1, 2, 3), "C": had(warmup=(0, 1))}


def test_of_standbys_that_lag_the_nearest_is_promoted():
    made = planned(
        member("B", had(1, standby=(0,)), {0: 500_000}), member("C", had(2, standby=(0,)), {0: 20_000}), count=3
    )
    assert made.targets["C"].active == tasks(0, 2)


def test_a_task_is_given_back_to_who_still_runs_it():
    made = planned(member("A", had(1)), member("B", had(2)), count=3, holders=Holders({("0", 0): "A"}, {}, {}))
    assert made.targets["A"].active == tasks(0, 1)


def test_without_any_state_tasks_are_dealt_out():
    assert planned(member("A"), member("B"), count=2).targets == {"A": had(0), "B": had(1)}


def test_threads_of_a_process_share_its_state():
    made = planned(member("A1", had(0, 1), process="A"), member("A2", process="A"), count=2)
    assert made.targets == {"A1": had(0), "A2": had(1)}


def test_who_reports_nothing_gets_tasks_at_once_and_no_warmups():
    made = planned(member("A", had(0, 1, 2)), member("B", reports_lags=False), member("C"), count=3)
    assert made.targets == {"A": had(0, 2), "B": had(1), "C": had(warmup=(2,))}


def test_who_has_not_been_heard_yet_gets_nothing_new():
    made = planned(member("A", had(0, 1)), member("B", reports_lags=None), count=2)
    assert made.targets == {"A": had(0, 1), "B": NO_TASKS}
    assert not made.lacks_warmups


def test_a_task_that_waits_keeps_its_standby():
    made = planned(
        member("A", had(0, 1, standby=(2, 3)), {2: 0, 3: 0}),
        member("B", had(2, 3, standby=(0, 1)), {0: 0, 1: 0}),
        member("C"),
        count=4,
        standbys=1,
    )
    [waits] = [partition for (_, partition), _ in made.waiting]
    keeper = {0: "B", 1: "B", 2: "A", 3: "A"}[waits]
    assert ("0", waits) in made.targets[keeper].standby
    assert ("0", waits) in made.targets["C"].warmup


def test_a_copy_of_unknown_age_is_better_than_none():
    made = planned(member("B", had(1)), member("C", had(2), {0: UNTOLD_LAG}), count=3)
    assert made.targets["C"].active == tasks(0, 2)
