"""The aims of the sticky assignor, for groups of any make-up and any history."""

from __future__ import annotations

from collections import Counter
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.core.groups.streams.sticky import MemberInput, assign
from ottla.core.groups.streams.tasks import Tasks

Group = tuple[list[MemberInput], dict[str, int], frozenset[str], int]


@st.composite
def groups(draw: st.DrawFn) -> Group:
    process_count = draw(st.integers(1, 6))
    members = [
        MemberInput(f"m{process}-{thread}", f"p{process}")
        for process in range(process_count)
        for thread in range(draw(st.integers(1, 3)))
    ]
    counts = {str(each): draw(st.integers(1, 9)) for each in range(draw(st.integers(1, 3)))}
    stateful = frozenset(draw(st.sets(st.sampled_from(sorted(counts)))))
    return members, counts, stateful, draw(st.integers(0, 2))


def with_history(members: list[MemberInput], targets: dict[str, Tasks]) -> list[MemberInput]:
    return [each._replace(previous=targets.get(each.member_id, Tasks())) for each in members]


@st.composite
def groups_with_history(draw: st.DrawFn) -> Group:
    """Members come and go, partitions and standbys are added: what is left is an assignment of some other group."""
    members, counts, stateful, standbys = draw(groups())
    before = draw(st.lists(st.sampled_from(members), min_size=1, unique_by=lambda each: each.member_id))
    earlier = {each: draw(st.integers(1, count)) for each, count in counts.items()}
    targets = assign(before, earlier, stateful, draw(st.integers(0, 2)))
    return with_history(members, targets), counts, stateful, standbys


def all_tasks(counts: dict[str, int]) -> list[tuple[str, int]]:
    return [(each, partition) for each, count in counts.items() for partition in range(count)]


@given(groups_with_history())
def test_every_task_is_active_once(group: Group):
    members, counts, stateful, standbys = group
    targets = assign(members, counts, stateful, standbys)
    assert set(targets) == {each.member_id for each in members}
    assert sorted(task for target in targets.values() for task in target.active) == sorted(all_tasks(counts))


@given(groups_with_history())
def test_active_tasks_are_balanced(group: Group):
    members, counts, stateful, standbys = group
    sizes = [len(target.active) for target in assign(members, counts, stateful, standbys).values()]
    assert max(sizes) - min(sizes) <= 1


@given(groups_with_history())
def test_copies_of_a_task_are_in_processes_of_their_own(group: Group):
    members, counts, stateful, standbys = group
    process = {each.member_id: each.process_id for each in members}
    targets = assign(members, counts, stateful, standbys)
    holders = Counter(
        (task, process[member_id])
        for member_id, target in targets.items()
        for task in (*target.active, *target.standby)
    )
    assert set(holders.values()) <= {1}


@given(groups_with_history())
def test_there_are_as_many_standbys_as_processes_allow(group: Group):
    members, counts, stateful, standbys = group
    possible = min(standbys, len({each.process_id for each in members}) - 1)
    copies = Counter(task for target in assign(members, counts, stateful, standbys).values() for task in target.standby)
    assert copies == Counter({task: possible for task in all_tasks(counts) if task[0] in stateful and possible})


@given(groups_with_history())
def test_a_task_leaves_a_member_only_if_that_has_its_share(group: Group):
    members, counts, stateful, standbys = group
    targets = assign(members, counts, stateful, standbys)
    share = len(all_tasks(counts)) // len(members)
    known = set(all_tasks(counts))
    for each in members:
        if (each.previous.active & known) - targets[each.member_id].active:
            assert len(targets[each.member_id].active) >= share


@given(groups())
def test_nothing_moves_when_nothing_changes(group: Group):
    members, counts, stateful, standbys = group
    targets = assign(members, counts, stateful, standbys)
    again = assign(with_history(members, targets), counts, stateful, standbys)
    assert {each: target.active for each, target in again.items()} == {
        each: target.active for each, target in targets.items()
    }


@given(groups())
def test_no_more_moves_than_a_new_member_needs(group: Group):
    members, counts, stateful, standbys = group
    newcomer, stayers = members[0], members[1:]
    if not stayers:
        return
    before = assign(stayers, counts, stateful, standbys)
    after = assign(with_history(members, before), counts, stateful, standbys)
    moved = sum(len(before[each.member_id].active - after[each.member_id].active) for each in stayers)
    assert moved == len(after[newcomer.member_id].active)


@given(groups())
def test_only_the_tasks_of_who_left_move_if_the_others_were_balanced(group: Group):
    members, counts, stateful, standbys = group
    if len(members) < 2:
        return
    before = assign(members, counts, stateful, standbys)
    stayers = members[1:]
    after = assign(with_history(stayers, before), counts, stateful, standbys)
    for each in stayers:
        assert before[each.member_id].active <= after[each.member_id].active


@given(groups(), st.randoms())
def test_the_order_of_members_does_not_matter(group: Group, random: Random):
    members, counts, stateful, standbys = group
    shuffled = list(members)
    random.shuffle(shuffled)
    assert assign(members, counts, stateful, standbys) == assign(shuffled, counts, stateful, standbys)


@settings(max_examples=50)
@given(st.integers(2, 4), st.integers(1, 3), st.integers(1, 12), st.integers(1, 2))
def test_copies_are_spread_over_zones_first(zones: int, per_zone: int, partitions: int, standbys: int):
    members = [
        MemberInput(f"m{zone}-{each}", f"p{zone}-{each}", client_tags={"zone": f"z{zone}", "rack": f"r{each}"})
        for zone in range(zones)
        for each in range(per_zone)
    ]
    targets = assign(members, {"0": partitions}, frozenset("0"), standbys, ("zone", "rack"))
    zone_of = {each.member_id: each.client_tags["zone"] for each in members}
    for partition in range(partitions):
        copies = [
            zone_of[member_id]
            for member_id, target in targets.items()
            if ("0", partition) in target.active | target.standby
        ]
        assert len(set(copies)) == min(zones, 1 + standbys)


@given(groups_with_history())
def test_processes_are_loaded_by_their_number_of_members(group: Group):
    """Counting all tasks, nobody is idle while another of its process has two more."""
    members, counts, stateful, _ = group
    targets = assign(members, counts, stateful, 0)
    loads: dict[str, list[int]] = {}
    for each in members:
        loads.setdefault(each.process_id, []).append(len(targets[each.member_id].active))
    assert all(max(each) - min(each) <= 1 for each in loads.values())
