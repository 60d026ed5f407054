"""What the assignor of share groups promises, whatever the group: on random groups, and on groups that change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from math import ceil

from hypothesis import given
from hypothesis import strategies as st

from ottla.core.groups.assignors import MemberSpec
from ottla.core.groups.assignors.simple import assign
from ottla.core.share.group.members import Partitions

Groups = tuple[list[MemberSpec], dict[bytes, frozenset[int]]]
Place = tuple[bytes, int]

TOPIC_IDS = [bytes([number]) * 16 for number in range(1, 5)]


@st.composite
def targets(draw: st.DrawFn) -> Partitions:
    """What somebody had: it need not exist any more, and others may have had it, too."""
    found = draw(st.dictionaries(st.sampled_from(TOPIC_IDS), st.sets(st.integers(0, 9), min_size=1)))
    return {topic_id: tuple(sorted(partitions)) for topic_id, partitions in found.items()}


@st.composite
def groups(draw: st.DrawFn, *, mixed: bool) -> Groups:
    partitions = {
        topic_id: frozenset(draw(st.sets(st.integers(0, 7), min_size=1)))
        for topic_id in draw(st.sets(st.sampled_from(TOPIC_IDS)))
    }
    subscriptions = st.frozensets(st.sampled_from(TOPIC_IDS))
    common = draw(subscriptions)
    members = [
        MemberSpec(f"m{number}", None, draw(subscriptions) if mixed else common, draw(targets()))
        for number in range(draw(st.integers(1, 9)))
    ]
    return members, partitions


def places(target: Partitions) -> set[Place]:
    return {(topic_id, partition) for topic_id, partitions in target.items() for partition in partitions}


def check_shared(members: list[MemberSpec], wanted: set[Place], found: Mapping[str, Partitions]) -> None:
    """Members share places: each place has as many as all others, and nobody has two more than another."""
    if not members or not wanted:
        return
    had = {member.member_id: places(found[member.member_id]) & wanted for member in members}
    sharing = ceil(len(members) / len(wanted))
    counts = Counter(place for each in had.values() for place in each)
    assert {place: counts[place] for place in wanted} == dict.fromkeys(wanted, sharing)
    sizes = [len(each) for each in had.values()]
    assert max(sizes) - min(sizes) <= 1
    assert min(sizes) >= 1 or len(members) < len(wanted)


def all_places(partitions: Mapping[bytes, frozenset[int]], topic_ids: frozenset[bytes]) -> set[Place]:
    return {(topic_id, each) for topic_id in topic_ids if topic_id in partitions for each in partitions[topic_id]}


@given(group=groups(mixed=True))
def test_nobody_has_what_is_not_there_or_not_subscribed_to(group: Groups):
    members, partitions = group
    found = assign(members, partitions)
    assert list(found) == [member.member_id for member in members]
    for member in members:
        target = found[member.member_id]
        assert places(target) <= all_places(partitions, member.topic_ids)
        assert all(each and list(each) == sorted(set(each)) for each in target.values())


@given(group=groups(mixed=False))
def test_members_that_want_the_same_share_all_partitions(group: Groups):
    members, partitions = group
    check_shared(members, all_places(partitions, members[0].topic_ids), assign(members, partitions))


@given(group=groups(mixed=True))
def test_members_that_want_different_topics_share_each_topic(group: Groups):
    members, partitions = group
    found = assign(members, partitions)
    if len({member.topic_ids for member in members}) > 1:
        for topic_id in partitions:
            subscribed = [member for member in members if topic_id in member.topic_ids]
            check_shared(subscribed, all_places(partitions, frozenset([topic_id])), found)


@given(group=groups(mixed=True))
def test_what_is_balanced_stays(group: Groups):
    members, partitions = group
    found = assign(members, partitions)
    settled = [member._replace(target=found[member.member_id]) for member in members]
    again = assign(settled, partitions)
    assert all(again[member.member_id] is member.target for member in settled)


@given(group=groups(mixed=False), leaver=st.integers(0, 8))
def test_nobody_loses_anything_when_somebody_leaves_a_group_that_has_a_partition_for_each(group: Groups, leaver: int):
    members, partitions = group
    wanted = all_places(partitions, members[0].topic_ids)
    if len(members) > len(wanted):
        return
    found = assign(members, partitions)
    left = [member._replace(target=found[member.member_id]) for member in members]
    del left[leaver % len(left)]
    after = assign(left, partitions) if left else {}
    for member in left:
        assert places(after[member.member_id]) >= places(member.target)


@given(group=groups(mixed=False))
def test_a_newcomer_takes_only_what_it_is_to_have(group: Groups):
    members, partitions = group
    wanted = all_places(partitions, members[0].topic_ids)
    if len(members) >= len(wanted):
        return
    found = assign(members, partitions)
    settled = [member._replace(target=found[member.member_id]) for member in members]
    after = assign([*settled, MemberSpec("new", None, members[0].topic_ids, {})], partitions)
    for member in settled:
        assert places(after[member.member_id]) <= places(member.target)
