"""What a child process computes: as the assignors themselves; and assignors of one's own, kept to the rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from ottla.assignors import AssignorError, Member, Topic, load_assignor
from ottla.core.groups.assignors import MemberSpec, assign_range, assign_uniform
from ottla.core.groups.assignors.computation import ENTRIES_MAX, Choice, answer, part_of, read_targets, request_of
from ottla.core.groups.assignors.simple import assign

HERE = __name__
IDS = [number.to_bytes(16, "big") for number in range(40)]


def targets_of(choice: Choice, *parts: bytes) -> dict[str, Any]:
    return {member: target for part in answer(request_of(choice, parts)) for member, target in read_targets(part)}


def members(count: int) -> list[MemberSpec]:
    return [MemberSpec(f"m{number:02}", None, frozenset(IDS[: 40 - number]), {}) for number in range(count)]


def parts_of(specs: Sequence[MemberSpec], partitions: Any) -> list[bytes]:
    topics = [(topic_id, partitions, "", ()) for topic_id in IDS]
    told = [(each.member_id, None, None, number, each.target or None) for number, each in enumerate(specs)]
    return [
        part_of(topics=topics[:25]),
        part_of(topics=topics[25:], subscriptions=[list(each.topic_ids) for each in specs[:3]], members=told[:2]),
        part_of(subscriptions=[list(each.topic_ids) for each in specs[3:]], members=told[2:]),
    ]


@pytest.mark.parametrize(("name", "assignor"), [("uniform", assign_uniform), ("range", assign_range)])
def test_consumer_groups(name: str, assignor: Any):
    specs = members(7)
    assert targets_of(Choice(name), *parts_of(specs, 3)) == assignor(specs, dict.fromkeys(IDS, 3))


def test_share_groups():
    specs = members(7)
    expected = assign(specs, dict.fromkeys(IDS, frozenset((0, 2))))
    assert targets_of(Choice("simple"), *parts_of(specs, (0, 2))) == expected


def test_only_what_changes_comes_back():
    specs = members(3)
    settled = assign_uniform(specs, dict.fromkeys(IDS, 2))
    again = [each._replace(target=settled[each.member_id]) for each in specs]
    assert targets_of(Choice("uniform"), *parts_of(again, 2)) == {}
    again[1] = again[1]._replace(target={})
    assert targets_of(Choice("uniform"), *parts_of(again, 2)) == {"m01": settled["m01"]}


def test_a_large_answer_comes_in_parts():
    topic_ids = [number.to_bytes(16, "big") for number in range(3 * ENTRIES_MAX)]
    told = [(f"m{number}", None, None, 0, None) for number in range(10)]
    parts = [part_of([(each, 1, "", ()) for each in topic_ids], [topic_ids], told)]  # type: ignore[arg-type]
    found = [read_targets(part) for part in answer(request_of(Choice("uniform"), parts))]
    assert len(found) > 2
    assert max(sum(len(target) for _, target in part) for part in found) < 2 * ENTRIES_MAX


# --- assignors of one's own -------------------------------------------------------------------------------------------


class Given:
    """Gives what the test says."""

    name = "given"
    answer: Any = None
    asked: Any = None

    def assign(self, members: Sequence[Member], topics: Mapping[str, Topic]) -> Any:
        Given.asked = members, topics
        return Given.answer


def ask(given: Any) -> dict[str, Any]:
    Given.answer = given
    topics = [(IDS[0], 3, "t", (("r1",), ("r2",), ())), (IDS[1], 1, "u", ((),))]
    told = [("a", "i", "r1", 0, {IDS[0]: (0, 1), IDS[9]: (0,)}), ("b", None, None, 1, None)]
    part = part_of(topics, [[IDS[0], IDS[1]], [IDS[0]]], told)
    return targets_of(Choice(f"{HERE}:Given", is_own=True), part)


def test_what_an_assignor_of_ones_own_is_given():
    ask({})
    (first, second), topics = Given.asked
    assert first == Member("a", "i", "r1", frozenset(("t", "u")), {"t": (0, 1)})
    assert second == Member("b", None, None, frozenset(("t",)), {})
    assert topics["t"] == Topic("t", 3, (frozenset(("r1",)), frozenset(("r2",)), frozenset()))
    assert topics["u"].partition_count == 1


def test_what_it_gives_is_the_target():
    assert ask({"a": {"t": [2, 0], "u": {0}}, "b": {"t": range(1, 2)}}) == {
        "a": {IDS[0]: (0, 2), IDS[1]: (0,)},
        "b": {IDS[0]: (1,)},
    }


def test_who_is_left_out_gets_nothing():
    assert ask({"b": {"t": []}}) == {"a": {}, "b": {}}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (None, "it gives NoneType, not a mapping of member ids"),
        ({"c": {}}, "there is no member 'c'"),
        ({"a": [0]}, "it gives member a list, not a mapping of topics"),
        ({"b": {"u": [0]}}, "it gives member b the topic 'u', without a subscription to it"),
        ({"a": {"t": [3]}}, "topic t has 3 partitions, and none is 3"),
        ({"a": {"t": [-1]}}, "topic t has 3 partitions, and none is -1"),
        ({"a": {"t": ["0"]}}, "topic t has 3 partitions, and none is '0'"),
        ({"a": {"t": [1]}, "b": {"t": [1]}}, "it gives partition 1 of t to a and to b"),
    ],
)
def test_what_it_must_not_give(given: Any, told: str):
    with pytest.raises(AssignorError) as caught:
        ask(given)
    assert str(caught.value) == told


# --- loading ----------------------------------------------------------------------------------------------------------


class NoName:
    def assign(self, members: object, topics: object) -> object: ...


class NoMethod:
    name = "x"


class Blank(NoName):
    name = " "


class Raising(NoName):
    name = "x"

    def __init__(self) -> None:
        raise ValueError("no licence")


@pytest.mark.parametrize("name", [f"{HERE}:Given", f"{HERE}.Given"])
def test_an_assignor_is_found_by_its_dotted_name(name: str):
    assert load_assignor(name).name == "given"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("sticky", "sticky is neither uniform nor range nor a dotted name such as package.module:Name"),
        ("no_such_package.module:Name", "no_such_package.module cannot be imported: No module named 'no_such_package'"),
        (f"{HERE}:Missing", f"{HERE} has no class Missing"),
        (f"{HERE}:ask", f"{HERE} has no class ask"),
        (f"{HERE}:NoName", f"{HERE}:NoName must have a name and a method assign(members, topics)"),
        (f"{HERE}:NoMethod", f"{HERE}:NoMethod must have a name and a method assign(members, topics)"),
        (f"{HERE}:Blank", f"the name of {HERE}:Blank must be a text that is not blank"),
        (f"{HERE}:Raising", f"{HERE}:Raising cannot be made: no licence"),
    ],
)
def test_a_bad_name_is_refused(name: str, told: str):
    with pytest.raises(AssignorError) as caught:
        load_assignor(name)
    assert str(caught.value) == told
