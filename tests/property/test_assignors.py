"""What assignors promise, whatever the group: checked on random groups and on groups that change step by step."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.core.groups.assignors import ASSIGNORS, MemberSpec, Target, assign_range, assign_uniform

Groups = tuple[list[MemberSpec], dict[bytes, int]]


def topic_ids(count: int) -> list[bytes]:
    return [number.to_bytes(16, "big") for number in range(1, count + 1)]


@st.composite
def groups(draw: st.DrawFn, *, mixed: bool = True) -> Groups:
    """Members that own nothing yet, and topics."""
    counts = {each: draw(st.integers(1, 8)) for each in topic_ids(draw(st.integers(1, 6)))}
    everything = frozenset(counts)
    subscriptions = st.sets(st.sampled_from(sorted(counts))).map(frozenset) if mixed else st.just(everything)
    members = []
    for number in range(draw(st.integers(1, 7))):
        instance_id = draw(st.none() | st.just(f"i{9 - number}"))
        members.append(MemberSpec(f"m{number}", instance_id, draw(subscriptions), {}))
    return members, counts


def with_targets(members: list[MemberSpec], targets: Mapping[str, Target]) -> list[MemberSpec]:
    return [member._replace(target=targets[member.member_id]) for member in members]


def pairs(target: Target) -> set[tuple[bytes, int]]:
    return {(topic_id, partition) for topic_id, partitions in target.items() for partition in partitions}


def check_valid(members: list[MemberSpec], counts: Mapping[bytes, int], targets: Mapping[str, Target]) -> None:
    owned = [each for target in targets.values() for each in sorted(pairs(target))]
    assert len(owned) == len(set(owned)), "a partition has two owners"
    wanted = frozenset().union(*(member.topic_ids for member in members))
    assert set(owned) == {(topic_id, each) for topic_id in wanted for each in range(counts[topic_id])}
    for member in members:
        target = targets[member.member_id]
        assert set(target) <= member.topic_ids, "somebody got what he does not subscribe to"
        assert all(partitions and list(partitions) == sorted(partitions) for partitions in target.values())


@pytest.mark.parametrize("name", sorted(ASSIGNORS))
@given(group=groups())
def test_every_subscribed_partition_has_one_owner_who_subscribes_to_it(name: str, group: Groups) -> None:
    members, counts = group
    targets = ASSIGNORS[name](members, counts)
    assert set(targets) == {member.member_id for member in members}
    check_valid(members, counts, targets)


@pytest.mark.parametrize("name", sorted(ASSIGNORS))
@given(group=groups())
def test_an_assignment_that_is_kept_comes_back_itself(name: str, group: Groups) -> None:
    members, counts = group
    members = with_targets(members, ASSIGNORS[name](members, counts))
    again = ASSIGNORS[name](members, counts)
    assert all(again[member.member_id] is member.target for member in members)


@pytest.mark.parametrize("name", sorted(ASSIGNORS))
@given(group=groups(), other=groups())
def test_any_change_of_members_and_topics_ends_in_a_valid_assignment(name: str, group: Groups, other: Groups) -> None:
    """Members of the second group keep what the first one gave to whoever had their name; topics grow and go."""
    members, counts = group
    old = ASSIGNORS[name](members, counts)
    later, later_counts = other
    grown = {topic_id: max(count, counts.get(topic_id, 0)) for topic_id, count in later_counts.items()}
    later = [member._replace(target=old.get(member.member_id, {})) for member in later]
    check_valid(later, grown, ASSIGNORS[name](later, grown))


@given(group=groups(mixed=False), gone=st.integers(0, 6), new=st.integers(0, 3))
def test_uniform_is_balanced_and_moves_no_more_than_it_must(group: Groups, gone: int, new: int) -> None:
    members, counts = group
    old = assign_uniform(members, counts)
    stay = with_targets(members, old)[gone:] + [
        MemberSpec(f"n{number}", None, frozenset(counts), {}) for number in range(new)
    ]
    if not stay:
        return
    targets = assign_uniform(stay, counts)
    loads = sorted(len(pairs(target)) for target in targets.values())
    assert loads[-1] - loads[0] <= 1
    # Who stays loses only what is beyond the larger quota, or beyond the smaller when the extras are used up.
    total = sum(counts.values())
    quota, extras = divmod(total, len(stay))
    lost = sum(len(pairs(member.target) - pairs(targets[member.member_id])) for member in stay)
    held = sorted((len(pairs(member.target)) for member in stay), reverse=True)
    must = sum(max(0, load - (quota + (place < extras))) for place, load in enumerate(held))
    assert lost == must


@given(group=groups())
def test_uniform_leaves_no_move_that_would_even_out_mixed_subscriptions(group: Groups) -> None:
    members, counts = group
    targets = assign_uniform(members, counts)
    loads = {member.member_id: len(pairs(targets[member.member_id])) for member in members}
    for owner in members:
        for topic_id in targets[owner.member_id]:
            for taker in members:
                if topic_id in taker.topic_ids:
                    assert loads[owner.member_id] - loads[taker.member_id] <= 1


@given(group=groups())
def test_range_gives_contiguous_blocks_in_the_order_of_members(group: Groups) -> None:
    members, counts = group
    targets = assign_range(members, counts)
    ordered = sorted(members, key=lambda member: (member.instance_id is None, member.instance_id or member.member_id))
    for topic_id, count in counts.items():
        blocks = [targets[each.member_id].get(topic_id, ()) for each in ordered if topic_id in each.topic_ids]
        assert not blocks or [each for block in blocks for each in block] == list(range(count))
        sizes = [len(block) for block in blocks]
        assert sizes == sorted(sizes, reverse=True)
        assert not sizes or sizes[0] - sizes[-1] <= 1


def test_range_lines_up_topics_of_the_same_size() -> None:
    first, second = topic_ids(2)
    members = [MemberSpec(f"m{number}", None, frozenset((first, second)), {}) for number in range(3)]
    targets = assign_range(members, {first: 7, second: 7})
    assert [target[first] for target in targets.values()] == [(0, 1, 2), (3, 4), (5, 6)]
    assert all(target[first] == target[second] for target in targets.values())


def test_uniform_gives_up_its_last_partitions_first() -> None:
    (topic_id,) = topic_ids(1)
    members = [
        MemberSpec("a", None, frozenset((topic_id,)), {topic_id: (0, 1, 2, 3)}),
        MemberSpec("b", None, frozenset((topic_id,)), {}),
    ]
    assert assign_uniform(members, {topic_id: 4}) == {"a": {topic_id: (0, 1)}, "b": {topic_id: (2, 3)}}


def test_members_without_topics_get_nothing() -> None:
    members = [MemberSpec("a", None, frozenset(), {topic_ids(1)[0]: (0,)})]
    assert assign_uniform(members, {}) == {"a": {}}
    assert assign_range(members, {}) == {"a": {}}
    assert assign_uniform([], {}) == {}
