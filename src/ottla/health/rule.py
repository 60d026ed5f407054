"""What a rule is: when it looks, what it needs to see, what it says.

A rule looks at one scope at a time (a topic, a group, a partition of a group) whenever a fact about it came, and yields
a sighting for each subject of which its condition is true at that moment. How long it must be true before a finding
opens, and false before it closes, is kept in `conditions`, alike for all rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ottla.health.facts import Fact
from ottla.health.finding import Next, Severity, Subject, Tier
from ottla.health.world import World

__all__ = ["RULES", "Limits", "Look", "Rule", "Scope", "See", "Sighting", "ThresholdError", "Wake", "parse_thresholds"]

Scope = tuple[Any, ...]
Limits = Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """A condition is true of a subject now."""

    subject: Subject
    sentence: str
    evidence: dict[str, Any]
    next: list[Next]
    severity: Severity | None = None  # unless it is the rule's
    tier: Tier | None = None  # unless it is the rule's
    hold_ms: float = 0  # how long it must be true before the finding opens
    since_ms: int | None = None  # since when, if before this moment
    seen_ms: int | None = None  # the last moment of which it is known, if before this one
    until_ms: int | None = None  # it ends by itself at this moment
    again_ms: int | None = None  # look again then, whether or not facts come


@dataclass(slots=True)
class See:
    """What a rule has before it when it looks."""

    world: World
    now_ms: int
    scope: Scope
    limits: Limits
    began: Callable[[Subject], int]
    """Since when the condition is true of a subject; now, if it was not until now."""

    def ms(self, key: str) -> int:
        """A threshold given in seconds."""
        return round(self.limits[key] * 1000)

    def lasted_ms(self, subject: Subject) -> int:
        return self.now_ms - self.began(subject)


Look = Callable[[See], Iterable[Sighting]]
Scopes = Callable[[Fact], Iterable[Scope]]
Wake = Callable[[See], int | None]
"""When to look next although no fact may come, for conditions that come true by the passing of time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    name: str
    severity: Severity
    tier: Tier
    on: tuple[str, ...]  # kinds of facts after which it looks
    scopes: Scopes  # what of a fact it looks at
    needs: tuple[tuple[str, ...], ...]  # each of these must be seen, or one of its alternatives
    condition: str
    why: str
    limits: Limits = field(default_factory=dict)
    carries: bool = False  # facts are told when they change: what was true stays so until something else is told
    look: Look
    wake: Wake | None = None

    def missing(self, world: World) -> list[str]:
        """What this rule needs and cannot see here."""
        return [either[0] for either in self.needs if not any(each in world.seen for each in either)]


RULES: Final[dict[str, Rule]] = {}
"""All rules by name, in the order in which they are described."""


def rule(
    name: str, severity: Severity, tier: Tier, *, on: Iterable[str], scope: Iterable[str] | Scopes,
    needs: Iterable[str], condition: str, why: str, limits: Limits | None = None, carries: bool = False,
    wake: Wake | None = None,
) -> Callable[[Look], Look]:  # fmt: skip
    """Enters a function as a rule. Its scope is named by fields of the facts; in `needs`, `a|b` means that one of the
    two is enough."""

    def enter(look: Look) -> Look:
        RULES[name] = Rule(
            name=name, severity=severity, tier=tier, on=tuple(on),
            scopes=scope if callable(scope) else _fields(tuple(scope)),
            needs=tuple(tuple(need.split("|")) for need in needs), condition=condition, why=why,
            limits=limits or {}, carries=carries, look=look, wake=wake,
        )  # fmt: skip
        return look

    return enter


def _fields(names: tuple[str, ...]) -> Scopes:
    return lambda fact: (tuple(getattr(fact, name, None) for name in names),)


class ThresholdError(ValueError):
    """A rule that does not exist, a threshold that it does not have, or one that is no number."""


def limits_of(one: Rule, given: Mapping[str, float]) -> Limits:
    """A rule's thresholds, with those that were given for it as `rule.key`."""
    own = {key.removeprefix(one.name + "."): value for key, value in given.items() if key.startswith(one.name + ".")}
    return {**one.limits, **own}


def parse_thresholds(texts: Iterable[str]) -> dict[str, float]:
    """Thresholds written as `rule.key=value`."""
    found = {}
    for text in texts:
        key, _, value = text.partition("=")
        try:
            found[key.strip()] = float(value)
        except ValueError:
            raise ThresholdError(f'"{text}" is not of the form rule.key=number') from None
    check_thresholds(found)
    return found


def check_thresholds(given: Mapping[str, float]) -> None:
    for key in _unknown(given):
        known = ", ".join(f"{one.name}.{limit}" for one in RULES.values() for limit in one.limits)
        raise ThresholdError(f'no rule has a threshold "{key}"; there are {known}')


def _unknown(given: Mapping[str, float]) -> Iterator[str]:
    known = {f"{one.name}.{limit}" for one in RULES.values() for limit in one.limits}
    yield from sorted(set(given) - known)
