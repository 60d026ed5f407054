"""The sticky assignor beside results of Kafka's own, with ties broken by process and member."""

from __future__ import annotations

from ottla.core.groups.streams.sticky import MemberInput, assign
from ottla.core.groups.streams.tasks import Task, Tasks


def member(member_id: str, process_id: str = "", active: str = "", standby: str = "") -> MemberInput:
    return MemberInput(member_id, process_id or member_id, Tasks(tasks(active), tasks(standby)))


def tasks(text: str) -> frozenset[Task]:
    """`0_1 0_2` or, for subtopology 0, `1 2`."""
    return frozenset((each.rpartition("_")[0] or "0", int(each.rpartition("_")[2])) for each in text.split())


def shown(targets: dict[str, Tasks]) -> dict[str, str]:
    marks = ("", "s")
    return {
        member_id: " ".join(
            f"{mark}{each[0]}_{each[1]}" for mark, role in zip(marks, target, strict=False) for each in sorted(role)
        )
        for member_id, target in targets.items()
    }


def test_tasks_go_round():
    assert shown(assign([member("A"), member("B")], {"0": 6}, frozenset())) == {
        "A": "0_0 0_2 0_4",
        "B": "0_1 0_3 0_5",
    }


def test_a_third_member_takes_one_from_each():
    members = [member("A", active="0 1 2"), member("B", active="3 4 5"), member("C")]
    assert shown(assign(members, {"0": 6}, frozenset())) == {"A": "0_0 0_1", "B": "0_3 0_4", "C": "0_2 0_5"}


def test_one_member_had_everything():
    members = [member("A", active="0 1 2 3 4 5 6"), member("B"), member("C")]
    assert shown(assign(members, {"0": 7}, frozenset())) == {"A": "0_0 0_1 0_2", "B": "0_3 0_5", "C": "0_4 0_6"}


def test_an_active_task_goes_where_its_standby_was():
    members = [member("A", active="0 1", standby="2 3"), member("C", active="4 5")]
    assert shown(assign(members, {"0": 6}, frozenset())) == {"A": "0_0 0_1 0_2", "C": "0_3 0_4 0_5"}


def test_one_process_has_no_place_for_standbys():
    members = [member("A1", "A"), member("A2", "A")]
    assert shown(assign(members, {"0": 3}, frozenset("0"), 1)) == {"A1": "0_0 0_2", "A2": "0_1"}


def test_standbys_of_two_processes():
    members = [member("A1", "A"), member("A2", "A"), member("B1", "B"), member("B2", "B")]
    assert shown(assign(members, {"0": 4, "1": 4}, frozenset("1"), 1)) == {
        "A1": "0_0 1_0 s1_3",
        "A2": "0_2 1_2 s1_1",
        "B1": "0_1 1_1 s1_2",
        "B2": "0_3 1_3 s1_0",
    }


def test_a_joining_member_gets_what_it_has_state_of():
    members = [member("A", active="0 1 2 3"), MemberInput("B", "B", restored=tasks("0 3"))]
    assert assign(members, {"0": 4}, frozenset("0"))["B"].active >= tasks("3")


def test_standbys_stay_where_the_task_was():
    members = [member("A", active="0"), member("B", active="1", standby="0"), member("C", standby="1")]
    targets = assign(members, {"0": 3}, frozenset("0"), 1)
    assert tasks("0") <= targets["B"].standby
    assert tasks("1") <= targets["C"].standby


def test_the_most_important_tag_comes_first():
    members = [
        MemberInput("A", "A", client_tags={"zone": "x", "rack": "1"}),
        MemberInput("B", "B", client_tags={"zone": "x", "rack": "2"}),
        MemberInput("C", "C", client_tags={"zone": "y", "rack": "1"}),
        MemberInput("D", "D", client_tags={"rack": "3"}),
    ]
    targets = assign(members, {"0": 4}, frozenset("0"), 1, ("zone", "rack"))
    active = {task: each for each, target in targets.items() for task in target.active}
    for each, target in targets.items():
        for task in target.standby:
            assert (each, active[task]) in {
                ("C", "A"),
                ("C", "B"),
                ("A", "C"),
                ("B", "C"),
                ("A", "D"),
                ("B", "D"),
                ("C", "D"),
            }


def test_nobody_there():
    assert assign([], {"0": 3}, frozenset()) == {}


def test_five_hundred_members_and_ten_thousand_tasks():
    members = [member(f"m{each:04}", f"p{each // 2:04}") for each in range(500)]
    counts = {str(each): 100 for each in range(100)}
    targets = assign(members, counts, frozenset(counts), 1)
    assert {len(each.active) for each in targets.values()} == {20}
    assert {len(each.standby) for each in targets.values()} == {20}
