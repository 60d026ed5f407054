"""Patterns: RE2's language, whole names, slices, and no pattern that takes the broker's time."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.core.groups.consumer.group import ConsumerGroup
from ottla.core.groups.consumer.patterns import SLICE_MATCHES, Resolution, check_regex, refresh_at_ms
from ottla.core.groups.consumer.records import ResolvedRegex
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject


def resolve(regexes: list[str], names: list[str], **denied: Any) -> dict[str, list[str]]:
    resolution = Resolution(regexes, names, 7, 99, lambda operation, kind, name: name not in denied)
    while (found := resolution.step()) is None:
        pass
    assert all((each.topics_version, each.resolved_at_ms) == (7, 99) for each in found.values())
    return {regex: sorted(each.topics) for regex, each in found.items()}


def test_the_whole_name_counts():
    assert resolve(["t", "t.*", "^t$"], ["t", "t1", "at"]) == {"t": ["t"], "t.*": ["t", "t1"], "^t$": ["t"]}


def test_topics_that_may_not_be_described_are_not_found():
    assert resolve([".*"], ["open", "closed"], closed=True) == {".*": ["open"]}


def test_no_names_and_no_matches():
    assert resolve(["a"], []) == {"a": []}
    assert resolve(["a"], ["b"]) == {"a": []}


def test_ten_thousand_names_take_a_bounded_number_of_slices():
    names = [f"topic-{number}" for number in range(10_000)]
    resolution = Resolution(["topic-.*7", "x"], names, 0, 0, lambda *_: True)
    slices = 1
    while (found := resolution.step()) is None:
        slices += 1
    assert slices == 2 * len(names) / SLICE_MATCHES
    assert len(found["topic-.*7"].topics) == 1_000


@pytest.mark.parametrize(
    "regex", ["(", "a**", "[", r"(a)\1", "(?=a)", "(?<!a)b", "((a{1000}){1000}){1000}", r"(\pL{1,30}x){0,30}", "\\"]
)
def test_what_re2_does_not_know_or_would_not_run_is_refused(regex: str):
    with pytest.raises(Reject) as refused:
        check_regex(regex)
    assert refused.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert "RE2" in (refused.value.message or "")


@pytest.mark.parametrize(
    "regex", ["(a+)+$", "(a|aa)+$", "(.*a){9}", "((.{0,9}){0,9}){0,9}", "(" * 900 + "a" + ")" * 900]
)
def test_a_bomb_for_other_engines_is_matched_at_once(regex: str):
    """Each of these takes a backtracking engine longer than anybody lives, or Java's port of RE2 seconds."""
    assert set(resolve([regex], ["a" * 248 + "!"])) == {regex}


def test_when_patterns_are_resolved_again():
    group = ConsumerGroup("g")
    assert refresh_at_ms(group, [], 0, 600_000, 1_000) == float("inf")
    assert refresh_at_ms(group, ["a"], 0, 600_000, 1_000) == float("-inf")
    group.set_resolved("a", ResolvedRegex(frozenset(), 5, 1_000))
    assert refresh_at_ms(group, ["a"], 5, 600_000, 1_000) == 601_001
    assert refresh_at_ms(group, ["a"], 6, 600_000, 1_000) == 11_001
    assert refresh_at_ms(group, ["a", "b"], 5, 600_000, 1_000) == 11_001
    assert refresh_at_ms(group, ["a"], 5, 600_000, 999) == float("-inf"), "the clock was set back"
