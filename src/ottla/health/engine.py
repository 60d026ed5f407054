"""Facts in, findings out.

Time is that of the facts, or what `advance` is told. Everything that is due before a fact happens before it, so that
the answers do not depend on how often `advance` is called.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterable, Iterator, Mapping
from heapq import heappop, heappush
from typing import Final

import ottla.health.rules  # noqa: F401  enters the rules
from ottla.health.conditions import CLOSE_MS, Condition
from ottla.health.coverage import Unseen
from ottla.health.facts import FACTS, Fact, Gone
from ottla.health.finding import Change, Finding, Subject, What, by_urgency
from ottla.health.rule import RULES, Limits, Rule, Scope, See, Sighting, ThresholdError, check_thresholds, limits_of
from ottla.health.world import Bounds, World

__all__ = ["Engine"]

RESOLVED: Final = 1_000
SWEEP_MS: Final = 60_000
CONDITIONS: Final = 50_000

Key = tuple[str, Scope]
SWEEP: Final[Key] = ("", ())


class Engine:
    """The findings of one cluster.

    `thresholds` are given as `rule.key`, in the units of the rule's own. Rules that are `muted` never look.
    """

    def __init__(
        self, thresholds: Mapping[str, float] | None = None, muted: Iterable[str] = (), bounds: Bounds | None = None
    ) -> None:
        check_thresholds(thresholds or {})
        silent = set(muted)
        for name in sorted(silent - set(RULES)):
            raise ThresholdError(f'there is no rule "{name}"')
        self._rules = [each for each in RULES.values() if each.name not in silent]
        self._limits: dict[str, Limits] = {each.name: limits_of(each, thresholds or {}) for each in self._rules}
        self._world = World(bounds or Bounds())
        self._on = {kind: [each for each in self._rules if kind in each.on] for kind in FACTS}
        self._conditions: dict[Key, dict[Subject, Condition]] = {}
        self._condition_count = 0
        self._resolved: deque[Finding] = deque(maxlen=RESOLVED)
        self._due: list[tuple[int, int, Key]] = []
        self._due_at: dict[Key, int] = {}
        self._due_count = 0
        self._dropped = 0

    def take(self, at_ms: int, fact: Fact) -> list[Change]:
        """Takes a fact in, with the moment at which it was seen, and says what became of findings. One that comes late
        counts as seen now: what was said is not taken back."""
        now_ms = max(at_ms, self._world.now_ms)
        changes = list(self._run_due(now_ms - 1))
        fact = self._world.take(now_ms, fact)
        for each in self._on[fact.kind]:
            for scope in each.scopes(fact):
                changes += self._look(each, scope)
        if isinstance(fact, Gone):
            changes += self._deny(fact.name)
        self._look_at(SWEEP, (now_ms // SWEEP_MS + 1) * SWEEP_MS)
        changes += self._run_due(now_ms)
        return self._noted(changes)

    def advance(self, now_ms: int) -> list[Change]:
        """Says what became of findings by the passing of time alone."""
        return self._noted(list(self._run_due(max(now_ms, self._world.now_ms))))

    def findings(self) -> list[Finding]:
        """Open findings and those resolved last, the most urgent first."""
        conditions = (each for scope in self._conditions.values() for each in scope.values())
        current = [each.finding for each in conditions if each.finding is not None and each.is_open]
        return sorted([*current, *self._resolved], key=by_urgency)

    def unseen(self) -> list[Unseen]:
        """The rules that cannot be checked here, each with the reason."""
        return [each for one in self._rules if (each := self._unseen(one))]

    def _unseen(self, one: Rule) -> Unseen | None:
        missing = one.missing(self._world)
        if not missing:
            return None
        return Unseen(one.name, missing, "; ".join(self._world.seen.why_not(what) for what in missing))

    @property
    def forgotten(self) -> int:
        """How much was left out for want of room."""
        return self._world.dropped + self._dropped

    def _run_due(self, until_ms: int) -> Iterator[Change]:
        due = self._due
        while due and due[0][0] <= until_ms:
            at_ms, _, key = heappop(due)
            if self._due_at.get(key) != at_ms:
                continue
            del self._due_at[key]
            self._world.now_ms = max(self._world.now_ms, at_ms)
            yield from self._sweep() if key == SWEEP else self._look_by_time(RULES[key[0]], key[1])
        self._world.now_ms = max(self._world.now_ms, until_ms)

    def _look_at(self, key: Key, at_ms: int | None) -> None:
        """Asks for a look at a moment to come, or earlier."""
        if at_ms is None or at_ms <= self._world.now_ms:
            return
        known = self._due_at.get(key)
        if known is None or at_ms < known:
            self._due_at[key] = at_ms
            self._due_count += 1
            heappush(self._due, (at_ms, self._due_count, key))

    def _look_by_time(self, one: Rule, scope: Scope) -> Iterator[Change]:
        """Only time has passed: what was true of sampled facts is neither confirmed nor denied."""
        if one.carries:
            yield from self._look(one, scope)
        else:
            yield from self._settle((one.name, scope))

    def _look(self, one: Rule, scope: Scope) -> Iterator[Change]:
        key = (one.name, scope)
        see = self._see(one, scope)
        sightings = _true_now(one.look(see), see.now_ms)
        for sighting in sightings.values():
            yield from self._sighted(key, one, sighting)
        if key in self._conditions:
            yield from self._judged(key, sightings)
        if one.wake is not None:
            self._look_at(key, one.wake(see))

    def _judged(self, key: Key, sightings: Container[Subject]) -> Iterator[Change]:
        """What was not sighted is false now."""
        for subject, condition in self._conditions[key].items():
            if subject not in sightings:
                condition.unsighted(self._world.now_ms)
        yield from self._settle(key)

    def _see(self, one: Rule, scope: Scope) -> See:
        known = self._conditions.get((one.name, scope), {})
        now_ms = self._world.now_ms

        def began(subject: Subject) -> int:
            condition = known.get(subject)
            return condition.since_ms if condition and (condition.is_true or condition.is_open) else now_ms

        return See(self._world, now_ms, scope, self._limits[one.name], began)

    def _sighted(self, key: Key, one: Rule, sighting: Sighting) -> Iterator[Change]:
        condition = self._condition(key, one, sighting)
        if condition is None:
            return
        yield from condition.sighted(self._world.now_ms, sighting)
        self._look_at(key, sighting.until_ms)
        self._look_at(key, sighting.again_ms)
        if one.carries and not condition.is_open:
            self._look_at(key, round(condition.since_ms + sighting.hold_ms))

    def _condition(self, key: Key, one: Rule, sighting: Sighting) -> Condition | None:
        known = self._conditions.get(key, {}).get(sighting.subject)
        if known is not None:
            return known
        if self._condition_count >= CONDITIONS:
            self._dropped += 1
            return None
        now_ms = self._world.now_ms
        since_ms = now_ms if sighting.since_ms is None else sighting.since_ms
        new = Condition(one, self._limits[one.name], sighting.subject, since_ms, now_ms)
        self._conditions.setdefault(key, {})[sighting.subject] = new
        self._condition_count += 1
        return new

    def _settle(self, key: Key) -> Iterator[Change]:
        """Closes what has been false for long enough, and forgets what nobody needs to know of."""
        now_ms = self._world.now_ms
        scope = self._conditions.get(key, {})
        for subject, condition in list(scope.items()):
            yield from condition.close(now_ms)
            if condition.is_open and condition.false_since is not None:
                self._look_at(key, condition.false_since + CLOSE_MS)
            elif condition.is_over(now_ms):
                del scope[subject]
                self._condition_count -= 1
        if not scope:
            self._conditions.pop(key, None)

    def _deny(self, gone: str | None = None) -> Iterator[Change]:
        """Some things are forgotten: what was said of them is no longer true, and of others nothing new is known."""
        for name, scope in [key for key in self._conditions if gone is None or gone in key[1]]:
            see = self._see(RULES[name], scope)
            yield from self._judged((name, scope), {each.subject for each in RULES[name].look(see)})

    def _sweep(self) -> Iterator[Change]:
        self._world.sweep()
        yield from self._deny()

    def _noted(self, changes: list[Change]) -> list[Change]:
        for change in changes:
            if change.what is What.REOPENED:
                kept = (each for each in self._resolved if each.id != change.finding.id)
                self._resolved = deque(kept, RESOLVED)
            elif change.what is What.RESOLVED:
                self._resolved.append(change.finding)
        return changes


def _true_now(sightings: Iterable[Sighting], now_ms: int) -> dict[Subject, Sighting]:
    return {each.subject: each for each in sightings if each.until_ms is None or each.until_ms > now_ms}
