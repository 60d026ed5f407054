"""A rule: a check, the facts that trigger it, the facts that it needs, and its thresholds.

A rule checks one scope at a time (a topic, a group, a partition of a group) whenever a fact about it arrives, and
yields a match for each subject whose condition is true at that moment. How long a condition must be true before a
finding opens, and false before it closes, is the same for all rules: see `conditions`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from ottla.health.facts import Fact
from ottla.health.finding import NextStep, Severity, Subject, Tier
from ottla.health.history import History

if TYPE_CHECKING:
    from ottla.health.conditions import Condition

__all__ = [
    "RULES",
    "Check",
    "Limits",
    "Match",
    "Rule",
    "RuleContext",
    "Scope",
    "Scopes",
    "ThresholdError",
    "Wake",
    "parse_thresholds",
]

Scope = tuple[Any, ...]
Limits = Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A subject of which the condition of a rule is true now."""

    subject: Subject
    sentence: str
    past: str  # the sentence of the finding once it is resolved
    evidence: dict[str, Any]
    next: list[NextStep]
    severity: Severity | None = None  # None: the rule's
    tier: Tier | None = None  # None: the rule's
    hold_ms: float = 0  # how long it must be true before the finding opens
    since_ms: int | None = None  # when it became true, if before now
    precision_ms: int | None = None  # how exact that is; None: the pause before the newest sample
    seen_ms: int | None = None  # when it was last known to be true, if before now
    until_ms: int | None = None  # when it ends by itself
    again_ms: int | None = None  # check again then, whether or not facts come


@dataclass(slots=True)
class RuleContext:
    """The arguments of a check: the scope, the history, the time and the thresholds."""

    history: History
    now_ms: int
    scope: Scope
    limits: Limits
    known: Mapping[Subject, Condition]
    """The conditions of the scope."""

    def began(self, subject: Subject) -> int:
        """When the condition became true of a subject; now, if it was false before."""
        condition = self.known.get(subject)
        return condition.since_ms if condition and (condition.is_true or condition.is_open) else self.now_ms

    def ms(self, key: str) -> int:
        """A threshold given in seconds."""
        return round(self.limits[key] * 1000)

    def lasted_ms(self, subject: Subject) -> int:
        return self.now_ms - self.began(subject)


Check = Callable[[RuleContext], Iterable[Match]]
Scopes = Callable[[Fact], Iterable[Scope]]
Wake = Callable[[RuleContext], int | None]
"""When to check again even if no fact arrives, for conditions that become true as time passes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    name: str
    severity: Severity
    tier: Tier
    on: tuple[str, ...]  # kinds of facts after which it checks
    scopes: Scopes  # the scopes that a fact is about
    needs: tuple[tuple[str, ...], ...]  # of each of these, one alternative must be visible
    condition: str
    why: str
    limits: Limits = field(default_factory=dict)
    persists: bool = False  # facts come when they change, so the condition stays true until a fact says otherwise
    group_type: str | None = None  # the type of the groups that it is about
    check: Check
    wake: Wake | None = None

    def missing(self, history: History) -> list[str]:
        """The things that this rule needs and that are not visible in this cluster."""
        return [either[0] for either in self.needs if not any(each in history.visible for each in either)]

    def __reduce__(self) -> tuple[Callable[[str], Rule], tuple[str]]:
        """An engine that is pickled names its rules: they are code."""
        return _rule_named, (self.name,)


def _rule_named(name: str) -> Rule:
    return RULES[name]


RULES: Final[dict[str, Rule]] = {}
"""All rules by name, in the order in which they are described."""


def rule(
    name: str, severity: Severity, tier: Tier, *, on: Iterable[str], scope: Iterable[str] | Scopes,
    needs: Iterable[str], condition: str, why: str, limits: Limits | None = None, persists: bool = False,
    group_type: str | None = None, wake: Wake | None = None,
) -> Callable[[Check], Check]:  # fmt: skip
    """Registers a function as the check of a rule. The scope names fields of the facts; in `needs`, `a|b` means that
    one of the two is enough."""

    def enter(check: Check) -> Check:
        RULES[name] = Rule(
            name=name, severity=severity, tier=tier, on=tuple(on),
            scopes=scope if callable(scope) else _fields(tuple(scope)),
            needs=tuple(tuple(need.split("|")) for need in needs), condition=condition, why=why,
            limits=limits or {}, persists=persists, group_type=group_type, check=check, wake=wake,
        )  # fmt: skip
        return check

    return enter


@lru_cache
def _fields(names: tuple[str, ...]) -> Scopes:
    """The same function for the same names: rules of one scope are checked one after the other."""
    return lambda fact: (tuple([getattr(fact, name, None) for name in names]),)


class ThresholdError(ValueError):
    """There is no such rule, the rule has no such threshold, or the value is not a number."""


def limits_of(one: Rule, given: Mapping[str, float]) -> Limits:
    """A rule's thresholds: those given as `rule.key`, and its defaults."""
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
        raise ThresholdError(f'unknown threshold "{key}"; known: {known}')


def _unknown(given: Mapping[str, float]) -> Iterator[str]:
    known = {f"{one.name}.{limit}" for one in RULES.values() for limit in one.limits}
    yield from sorted(set(given) - known)
