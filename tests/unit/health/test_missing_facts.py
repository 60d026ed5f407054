"""Each rule says that it cannot look, and why, when a fact that it needs is not to be had."""

from __future__ import annotations

import pytest

from ottla.health import RULES, Engine
from ottla.health.coverage import NEEDS
from ottla.health.facts import Coverage
from tests.unit.health.story import START_MS

PAIRS = [(rule.name, either) for rule in RULES.values() for either in rule.needs]


def engine_without(*missing: str) -> Engine:
    engine = Engine()
    for what in NEEDS:
        why = f"no {what} here" if what in missing else None
        engine.take(START_MS, Coverage(what=what, visible=what not in missing, why=why))
    return engine


@pytest.mark.parametrize(("rule", "either"), PAIRS)
def test_a_rule_without_its_facts_is_named_with_the_reason(rule: str, either: tuple[str, ...]) -> None:
    unseen = {each.rule: each for each in engine_without(*either).unseen()}

    assert unseen[rule].needs == [either[0]]
    assert unseen[rule].why == f"no {either[0]} here"


@pytest.mark.parametrize(("rule", "either"), [pair for pair in PAIRS if len(pair[1]) > 1])
def test_one_of_several_sources_is_enough(rule: str, either: tuple[str, ...]) -> None:
    for kept in either:
        others = [each for each in either if each != kept]
        assert rule not in {each.rule for each in engine_without(*others).unseen()}


def test_where_all_can_be_seen_nothing_is_unseen() -> None:
    assert engine_without().unseen() == []


def test_everything_that_rules_need_has_words() -> None:
    assert {what for _, either in PAIRS for what in either} <= set(NEEDS)
