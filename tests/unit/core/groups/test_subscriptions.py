"""Subscriptions: counted once each, and the topics that they come to."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from ottla.core.groups.subscriptions import Subscriptions

A, B = frozenset({"a"}), frozenset({"b", "c"})


class Union:
    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, subscriptions: Iterable[frozenset[str]]) -> frozenset[str]:
        self.calls += 1
        return frozenset().union(*subscriptions)


@pytest.fixture
def union() -> Union:
    return Union()


@pytest.fixture
def subscriptions(union: Union) -> Subscriptions[frozenset[str]]:
    made = Subscriptions(union)
    for each in (A, A, B):
        made.move(None, each)
    return made


def test_each_is_counted_and_forgotten_with_its_last_member(subscriptions: Subscriptions[frozenset[str]]) -> None:
    assert subscriptions.counts == {A: 2, B: 1}
    subscriptions.move(B, A)
    assert dict(subscriptions.counts) == {A: 3}
    assert subscriptions.topics() == {"a"}


def test_topics_are_computed_again_only_after_a_change(
    subscriptions: Subscriptions[frozenset[str]], union: Union
) -> None:
    assert subscriptions.topics() == subscriptions.topics() == {"a", "b", "c"}
    assert subscriptions.topics_with([A], A) == {"a", "b", "c"}
    assert union.calls == 1
    subscriptions.forget_topics()
    subscriptions.topics()
    assert union.calls == 2


def test_topics_once_some_are_gone_and_one_has_come(subscriptions: Subscriptions[frozenset[str]]) -> None:
    assert subscriptions.topics_with([B], None) == {"a"}
    assert subscriptions.topics_with([A, A], frozenset({"d"})) == {"b", "c", "d"}
    assert subscriptions.counts == {A: 2, B: 1}


def test_topics_grow_with_subscriptions_that_come(subscriptions: Subscriptions[frozenset[str]]) -> None:
    subscriptions.topics()
    coming = frozenset({"c", "d"})
    assert subscriptions.topics_with([], coming) == {"a", "b", "c", "d"}
    subscriptions.move(None, coming)
    assert subscriptions.topics() == {"a", "b", "c", "d"}
    subscriptions.move(coming, B)
    assert subscriptions.topics() == {"a", "b", "c"}
