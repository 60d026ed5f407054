"""Evaluates the rules over the samples of one cluster: samples in, changes of findings out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from ottla.health.engine import Engine
from ottla.health.facts import Coverage
from ottla.health.finding import Change, ChangeType, Severity
from ottla.health.rule import RULES
from ottla.health.samples import Sample, fact_in

__all__ = ["SampleEvaluator"]

HOLDS: Final = frozenset({"hold_s", "internal_hold_s"})
"""Thresholds that say how long a condition must last."""
_SEVERITIES: Final = list(Severity)


class SampleEvaluator:
    """The engine of one cluster, fed with samples; it also knows what is not visible there.

    With `longest_hold_s`, for a short look, a condition that must last longer than that opens its finding at once.
    `intervals_s` are those of the observer, whose samples must not count as stale before the next is due. `connection`
    is added to the commands of findings.
    """

    def __init__(
        self,
        thresholds: Mapping[str, float] | None = None,
        muted: Iterable[str] = (),
        *,
        longest_hold_s: float | None = None,
        intervals_s: Mapping[str, float] | None = None,
        connection: str = "",
    ) -> None:
        self.muted = frozenset(muted)
        own = {**_shortened(longest_hold_s), **_stale(intervals_s or {}), **(thresholds or {})}
        self.engine = Engine(own, self.muted, connection=connection)
        self._opened: set[Severity] = set()
        self.cluster = ""
        self.first_ms = 0
        self.last_ms = 0
        self._hidden: dict[str, Coverage] = {}

    def take(self, sample: Sample) -> list[Change]:
        self.cluster = sample.cluster or self.cluster
        self.first_ms = self.first_ms or sample.ts
        self.last_ms = max(self.last_ms, sample.ts)
        fact = fact_in(sample)
        if fact is None:
            return []
        if isinstance(fact, Coverage):
            self._hidden.pop(fact.what, None)
            self._hidden |= {} if fact.visible else {fact.what: fact}
        return self._noted(self.engine.take(sample.ts, fact))

    def advance(self, now_ms: int) -> list[Change]:
        return self._noted(self.engine.advance(now_ms))

    def _noted(self, changes: list[Change]) -> list[Change]:
        opened = {ChangeType.OPENED, ChangeType.REOPENED}
        self._opened |= {each.finding.severity for each in changes if each.what in opened}
        return changes

    def has_finding(self, severity: Severity, *, ever: bool) -> bool:
        """Whether a finding of this severity or a worse one is open, or was at any time."""
        current = {each.severity for each in self.engine.findings() if each.is_open}
        bad = set(_SEVERITIES[: _SEVERITIES.index(severity) + 1])
        return not bad.isdisjoint(current | (self._opened if ever else set()))

    @property
    def hidden(self) -> list[Coverage]:
        """The things that are not visible here, apart from rules that cannot be checked."""
        return [each for _, each in sorted(self._hidden.items())]

    @property
    def healthy(self) -> list[str]:
        """The rules that could be checked and found nothing."""
        unseen = {each.rule for each in self.engine.unseen()}
        found = {each.rule for each in self.engine.findings() if each.is_open}
        return [name for name in RULES if name not in unseen | found | self.muted]


def _shortened(longest_hold_s: float | None) -> dict[str, float]:
    if longest_hold_s is None:
        return {}
    return {
        f"{one.name}.{key}": min(value, longest_hold_s)
        for one in RULES.values()
        if one.tier.value == "A"
        for key, value in one.limits.items()
        if key in HOLDS
    }


def _stale(intervals_s: Mapping[str, float]) -> dict[str, float]:
    """A threshold of observer-stale that fits long intervals."""
    usual_s = RULES["observer-stale"].limits["interval_s"]
    return {"observer-stale.interval_s": max(usual_s, min(intervals_s.values(), default=usual_s))}
