"""The short-hand of scenarios, and what it becomes in messages."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.wire.types.join_group import JoinGroupRequest
from ottla.wire.types.offset_commit import OffsetCommitRequest
from simulation.environment import CountedIds
from simulation.message_builder import Builder
from simulation.renderer import Renderer
from simulation.shorthand import Call, ShorthandError, parse

TOPIC_ID = bytes(range(16))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{}", {}),
        ("{a: 1, b: -2}", {"a": 1, "b": -2}),
        ("[x, y z, 3]", ["x", "y z", 3]),
        ("{a: {b: [null, true, false]}}", {"a": {"b": [None, True, False]}}),
        ('{reason: "two, words"}', {"reason": "two, words"}),
        ("f(a, 1, named=[2])", Call("f", ["a", 1], {"named": [2]})),
        ("{host: 10.0.0.1:9092}", {"host": "10.0.0.1:9092"}),
    ],
)
def test_parsing(text: str, value: Any) -> None:
    assert parse(text) == value


@pytest.mark.parametrize("text", ["{a: 1", "[1, 2", '{a: "x}', "{1}", "{a: }", "{} {}"])
def test_what_is_no_shorthand_is_refused(text: str) -> None:
    with pytest.raises(ShorthandError):
        parse(text)


def build(target: type, text: str) -> Any:
    return Builder(lambda given: given, {"t": TOPIC_ID}.__getitem__).message(target, parse(text))


def test_names_are_ours_or_kafkas() -> None:
    assert build(JoinGroupRequest, "{group_id: g}") == build(JoinGroupRequest, "{GroupId: g}")


def test_numbers_become_texts_where_a_text_is_wanted() -> None:
    assert build(JoinGroupRequest, "{group_id: 7}").group_id == "7"


def test_a_text_fills_the_first_field_of_a_struct() -> None:
    [protocol] = build(JoinGroupRequest, "{protocols: [range]}").protocols
    assert protocol.name == "range"


def test_bytes_are_texts_or_hexadecimal() -> None:
    texts, digits = build(JoinGroupRequest, "{protocols: [{metadata: abc}, {metadata: 0x00ff}]}").protocols
    assert (texts.metadata, digits.metadata) == (b"abc", b"\x00\xff")


def test_a_topic_is_named_by_its_id() -> None:
    request = build(OffsetCommitRequest, "{topics: [{topic_id: id(t)}]}")
    assert request.topics[0].topic_id == TOPIC_ID


@pytest.mark.parametrize(
    "text", ["subscription(t, u)", "subscription(t, owned={t: [0, 1]}, generation=4, rack=r)", "assignment(t=[0, 1])"]
)
def test_what_consumers_say_is_shown_as_it_is_written(text: str) -> None:
    field = "assignment" if text.startswith("assignment") else "metadata"
    [protocol] = build(JoinGroupRequest, f"{{protocols: [{{metadata: {text}}}]}}").protocols
    assert Renderer(str, lambda topic_id: None).value(protocol.metadata, field) == text


def test_counted_ids_are_shortened_in_both_of_their_texts() -> None:
    ids = CountedIds()
    ids.new()
    second = ids.new()
    assert ids.shorten(f"c1-{ids.lengthen(2)}") == "c1-#2"
    assert ids.shorten(ids.lengthen(1, dashed=False)) == "#1"
    assert second != ids.new()
