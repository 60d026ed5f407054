"""Who of a group is done, who moves, and who waits for whom."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.client import TopicPartition
from ottla.console import group_members
from ottla.console.group_members import Awaited, MemberState, TaskMark, compact, read_by_tasks, states_of, task_marks
from ottla.console.pages.group import awaited
from ottla.health.facts import Group, GroupMember, Subtopology, Tasks, TopicPartitions


def held(*partitions: int) -> tuple[TopicPartitions, ...]:
    return (TopicPartitions(topic="orders", partitions=partitions),) if partitions else ()


def member(name: str, epoch: int, has: tuple[int, ...], target: tuple[int, ...] = ()) -> GroupMember:
    return GroupMember(member=name, epoch=epoch, assigned=held(*has), target=held(*target))


def group(*members: GroupMember, kind: str = "consumer", state: str = "Reconciling") -> Group:
    return Group(group="g", type=kind, state=state, group_epoch=4, assignment_epoch=4, members=members)


def state_of(one: GroupMember, found: Group) -> MemberState:
    return states_of(found)[found.members.index(one)]


def test_who_has_all_of_its_target_is_stable():
    one = member("a", 4, (0, 1), (1, 0))
    assert state_of(one, group(one)).state == "stable"


def test_who_waits_names_the_one_that_still_has_it():
    late, waiting = member("a", 3, (0, 1), (0,)), member("b", 4, (), (1,))
    found = group(late, waiting)
    assert state_of(late, found).state == "moving"
    assert state_of(waiting, found).waiting_for == [Awaited("orders-1", ["a"], is_certain=True)]


def test_what_nobody_is_shown_with_may_be_with_all_who_are_behind():
    late, done, waiting = member("a", 3, (0,), (0,)), member("c", 4, (2,), (2,)), member("b", 4, (), (1,))
    found = state_of(waiting, group(late, done, waiting))
    assert (found.state, found.waiting_for) == ("waiting", [Awaited("orders-1", ["a"], is_certain=False)])


def test_of_many_who_are_behind_the_first_are_named_and_the_others_counted():
    late, waiting = [member(f"m{each}", 3, ()) for each in range(500)], member("b", 4, (), (1,))
    (found,) = state_of(waiting, group(*late, waiting)).waiting_for
    assert (found.holders, found.others) == (["m0", "m1", "m2"], 497)
    assert awaited(found, {}) == "for orders-1, not yet revoked by m0 or m1 or m2 or one of 497 others"
    assert awaited(Awaited("orders-1", ["m0"], is_certain=False), {}) == "for orders-1, not yet revoked by m0"


def test_a_large_group_that_rebalances_is_looked_through_once(monkeypatch: pytest.MonkeyPatch):
    looked_at: list[object] = []
    shares = group_members.shares

    def counted(*held: Any) -> list[str]:
        looked_at.append(held)
        return shares(*held)

    monkeypatch.setattr(group_members, "shares", counted)
    members = [member(f"m{each}", 4, (each,), (each, 100 + each, 200 + each)) for each in range(100)]
    found = states_of(group(*members))
    assert {each.state for each in found} == {"waiting"}
    assert len(looked_at) <= 3 * len(members)


def test_who_has_more_than_its_target_moves():
    one = member("a", 4, (0, 1), (0,))
    assert state_of(one, group(one)).state == "moving"


@pytest.mark.parametrize(
    ("kind", "state", "epoch", "expected"),
    [
        ("classic", "Stable", 0, "stable"),
        ("classic", "PreparingRebalance", 0, "moving"),
        ("classic", "Dead", 0, None),
        ("share", "Stable", 4, "stable"),
        ("share", "Stable", 3, "moving"),
        ("consumer", "Stable", -2, "left"),
    ],
)
def test_kinds_without_targets(kind: str, state: str, epoch: int, expected: str | None):
    one = member("a", epoch, (0,))
    assert state_of(one, group(one, kind=kind, state=state)).state == expected


def test_tasks_are_marked_with_everybody_who_has_them_or_is_to_have_them():
    one = GroupMember(member="a", tasks=Tasks(active=("0_2", "0_10")), target_tasks=Tasks(active=("0_2",)))
    two = GroupMember(member="b", tasks=Tasks(), target_tasks=Tasks(active=("0_10",), standby=("0_2",)))
    assert task_marks(group(one, two, kind="streams")) == [
        TaskMark("0_2", "a", "active", "running"),
        TaskMark("0_2", "b", "standby", "waiting"),
        TaskMark("0_10", "a", "active", "leaving"),
        TaskMark("0_10", "b", "active", "waiting"),
    ]


def test_neighbours_are_joined():
    assert compact(held(0, 1, 2, 7), None) == ["orders: 0–2, 7"]
    assert compact((), Tasks(active=("0_1",), standby=("1_0",), warmup=("1_1",))) == [
        "0_1",
        "1_0 (standby)",
        "1_1 (warm-up)",
    ]


def test_tasks_read_the_partition_of_their_number_of_each_source_topic():
    first = GroupMember(member="first", tasks=Tasks(active=("0_0", "1_1"), standby=("0_1",)))
    second = GroupMember(member="second", tasks=Tasks(active=("0_1",)))
    parts = (
        Subtopology(id="0", source=("lines", "words"), changelog=("store",)),
        Subtopology(id="1", repartition_source=("totals-repartition",)),
    )
    found = Group(group="g", type="streams", state="Stable", members=(first, second), subtopologies=parts)
    assert list(read_by_tasks(found)) == [
        (TopicPartition("lines", 0), "first"),
        (TopicPartition("words", 0), "first"),
        (TopicPartition("totals-repartition", 1), "first"),
        (TopicPartition("lines", 1), "second"),
        (TopicPartition("words", 1), "second"),
    ]
