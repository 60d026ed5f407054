"""Every row of the tables of reconciliation, without a group around it."""

from __future__ import annotations

import pytest

from ottla.core.groups.streams.members import Current, MemberState
from ottla.core.groups.streams.reconciliation import Holders, reconcile
from ottla.core.groups.streams.tasks import NO_TASKS, NOTHING_HELD, Held, Task, Tasks
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject

A, B, C = (("0", each) for each in range(3))
FREE = Holders({}, {}, {})


def has(*active: Task, since: int = 1) -> Held:
    return Held(dict.fromkeys(active, since))


def want(*active: Task, standby: tuple[Task, ...] = ()) -> Tasks:
    return Tasks(frozenset(active), frozenset(standby))


def test_stable_at_the_target_is_left_alone():
    current = Current(5, 4, MemberState.STABLE, has(A))
    assert reconcile(current, 5, want(B), None, "p", FREE) is current


def test_something_to_revoke_that_may_still_be_owned():
    current = reconcile(Current(5, 4, MemberState.STABLE, has(A, B)), 6, want(A, C), None, "p", FREE)
    assert current == Current(5, 5, MemberState.UNREVOKED_TASKS, has(A), has(B))


def test_something_to_revoke_that_is_known_to_be_given_up():
    current = reconcile(Current(5, 4, MemberState.STABLE, has(A, B)), 6, want(A, C), want(A), "p", FREE)
    assert current == Current(6, 5, MemberState.STABLE, Held({A: 1, C: 6}))


def test_a_standby_that_is_still_owned_is_revoked_first():
    held = Held({A: 1}, frozenset((B,)))
    current = reconcile(Current(5, 4, MemberState.STABLE, held), 6, want(A), want(A, standby=(B,)), "p", FREE)
    assert (current.state, current.pending) == (MemberState.UNREVOKED_TASKS, Held({}, frozenset((B,))))


@pytest.mark.parametrize("owned", [None, want(A, B)])
def test_unrevoked_waits_for_its_own_pending_set(owned: Tasks | None):
    current = Current(5, 5, MemberState.UNREVOKED_TASKS, has(A), has(B))
    assert reconcile(current, 9, want(C), owned, "p", FREE) is current


def test_unrevoked_goes_straight_to_the_newest_target():
    current = Current(5, 5, MemberState.UNREVOKED_TASKS, has(A), has(B))
    assert reconcile(current, 9, want(A), want(A), "p", FREE) == Current(9, 5, MemberState.STABLE, has(A))


def test_unrevoked_that_must_give_up_more():
    current = Current(5, 5, MemberState.UNREVOKED_TASKS, has(A), has(B))
    assert reconcile(current, 9, want(), want(A), "p", FREE) == Current(
        6, 5, MemberState.UNREVOKED_TASKS, NOTHING_HELD, has(A)
    )


@pytest.mark.parametrize(
    "holders",
    [
        Holders({B: "other"}, {}, {}),
        Holders({B: "p"}, {}, {}),
        Holders({}, {B: {"p"}}, {}),
        Holders({}, {}, {B: {"p"}}),
    ],
    ids=["active elsewhere", "active in the own process", "own standby", "own warm-up"],
)
def test_an_active_task_that_is_held(holders: Holders):
    current = reconcile(Current(5, 4, MemberState.STABLE, has(A)), 6, want(A, B), None, "p", holders)
    assert current == Current(6, 5, MemberState.UNRELEASED_TASKS, has(A))


def test_a_standby_elsewhere_does_not_hold_up_an_active_task():
    holders = Holders({}, {B: {"other"}}, {})
    current = reconcile(Current(5, 4, MemberState.STABLE, has(A)), 6, want(A, B), None, "p", holders)
    assert current.state is MemberState.STABLE


@pytest.mark.parametrize(
    "holders", [Holders({B: "p"}, {}, {}), Holders({}, {B: {"p"}}, {}), Holders({}, {}, {B: {"p"}})]
)
def test_a_standby_waits_for_its_own_process_only(holders: Holders):
    current = Current(5, 4, MemberState.STABLE, NOTHING_HELD)
    waiting = reconcile(current, 6, want(standby=(B,)), None, "p", holders)
    assert (waiting.state, waiting.assigned.standby) == (MemberState.UNRELEASED_TASKS, frozenset())
    given = reconcile(current, 6, want(standby=(B,)), None, "q", holders)
    assert (given.state, given.assigned.standby) == (MemberState.STABLE, {B})


def test_part_of_the_new_tasks_is_free():
    current = reconcile(
        Current(5, 4, MemberState.STABLE, NOTHING_HELD), 6, want(A, B), None, "p", Holders({A: "q"}, {}, {})
    )
    assert current == Current(6, 5, MemberState.UNRELEASED_TASKS, has(B, since=6))


def test_unreleased_tries_again():
    current = Current(6, 5, MemberState.UNRELEASED_TASKS, has(A))
    assert reconcile(current, 6, want(A, B), None, "p", FREE) == Current(6, 6, MemberState.STABLE, Held({A: 1, B: 6}))


@pytest.mark.parametrize("owned", [None, want(A)])
def test_a_state_that_a_newer_coordinator_wrote_is_fenced(owned: Tasks | None):
    with pytest.raises(Reject) as caught:
        reconcile(Current(5, 4, MemberState.UNKNOWN, has(A)), 6, want(A), owned, "p", FREE)
    assert caught.value.code is ErrorCode.FENCED_MEMBER_EPOCH


def test_unless_the_member_owns_nothing():
    current = reconcile(Current(5, 4, MemberState.UNKNOWN, has(A)), 6, want(A), NO_TASKS, "p", FREE)
    assert current == Current(6, 5, MemberState.STABLE, has(A))
