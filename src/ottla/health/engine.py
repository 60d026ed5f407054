"""The engine that runs the rules: facts in, findings out.

The time is that of the latest fact, or the one given to `advance`. Checks that are due before a fact run before it, so
the result does not depend on how often `advance` is called.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from typing import Final

import ottla.health.rules  # noqa: F401  enters the rules
from ottla.health.cluster_history import Election
from ottla.health.conditions import CLOSE_MS, Condition
from ottla.health.configs import KnownConfigs
from ottla.health.coverage import Unseen
from ottla.health.facts import FACTS, Fact, Gone, Group
from ottla.health.finding import Change, ChangeType, Finding, Subject, by_urgency
from ottla.health.history import Bounds, History
from ottla.health.rule import (
    RULES,
    Limits,
    Match,
    Rule,
    RuleContext,
    Scope,
    Scopes,
    ThresholdError,
    check_thresholds,
    limits_of,
)
from ottla.health.share_history import ShareGroupHistory

__all__ = ["Engine"]

RESOLVED: Final = 1_000
SWEEP_MS: Final = 60_000
CONDITIONS: Final = 50_000

Key = tuple[str, Scope]
SWEEP: Final[Key] = ("", ())
_NO_CONDITIONS: Final[Mapping[Subject, Condition]] = {}
ROUND_MS: Final = 500
"""Facts of one kind with longer pauses between them come from different rounds."""


class Pauses:
    """How long nobody had looked before the newest fact.

    An observer asks for all facts of a kind together: what comes shortly after another belongs to the same round.
    """

    def __init__(self) -> None:
        self._rounds: dict[str, tuple[int, int]] = {}  # kind -> its newest fact, and the pause before its round
        self._kind = ""

    def take(self, at_ms: int, kind: str) -> None:
        last_ms, pause_ms = self._rounds.get(kind, (at_ms, 0))
        self._rounds[kind] = at_ms, at_ms - last_ms if at_ms - last_ms > ROUND_MS else pause_ms
        self._kind = kind

    def before(self, now_ms: int) -> int:
        """The pause before the sample of this time; 0 if there was none then, and for the first round."""
        at_ms, pause_ms = self._rounds.get(self._kind, (0, 0))
        return pause_ms if at_ms == now_ms else 0


class Engine:
    """The findings of one cluster.

    `thresholds` are keyed by `rule.key`, in the unit of the rule's default. `muted` rules are never checked.
    """

    def __init__(
        self,
        thresholds: Mapping[str, float] | None = None,
        muted: Iterable[str] = (),
        bounds: Bounds | None = None,
        *,
        connection: str = "",
    ) -> None:
        """`connection` is added to the commands that findings recommend: the options for reaching this cluster."""
        check_thresholds(thresholds or {})
        silent = set(muted)
        for name in sorted(silent - set(RULES)):
            raise ThresholdError(f'there is no rule "{name}"')
        self._rules = [each for each in RULES.values() if each.name not in silent]
        self._limits: dict[str, Limits] = {each.name: limits_of(each, thresholds or {}) for each in self._rules}
        self._history = History(bounds or Bounds())
        self._on = {kind: [each for each in self._rules if kind in each.on] for kind in FACTS}
        self._conditions: dict[Key, dict[Subject, Condition]] = {}
        self._condition_count = 0
        self._resolved: deque[Finding] = deque(maxlen=RESOLVED)
        self._due: list[tuple[int, int, Key]] = []
        self._due_at: dict[Key, int] = {}
        self._due_count = 0
        self._dropped = 0
        self._connection = connection
        self._pauses = Pauses()
        self._is_sample = True
        """Whether the newest fact is a sample."""

    def take(self, at_ms: int, fact: Fact, *, is_sample: bool = True) -> list[Change]:
        """Takes a fact and the time at which it was seen, or written if it comes from records; returns the changes of
        findings. A late fact counts as seen now: no earlier change is taken back."""
        now_ms = max(at_ms, self._history.now_ms)
        changes = list(self._run_due(now_ms - 1))
        self._is_sample = is_sample
        if is_sample:
            self._pauses.take(now_ms, fact.kind)
            self._history.sampled_ms = now_ms
        fact = self._history.take(now_ms, fact)
        scopes_of: Scopes | None = None
        scopes: tuple[Scope, ...] = ()
        group_type = fact.type if isinstance(fact, Group) else None
        for each in self._on[fact.kind]:
            if each.scopes is not scopes_of:
                scopes_of, scopes = each.scopes, tuple(each.scopes(fact))
            is_of_other_type = group_type is not None and each.group_type not in (None, group_type)
            for scope in scopes:
                if not is_of_other_type or (each.name, scope) in self._conditions:
                    changes += self._check(each, scope)
        if isinstance(fact, Gone):
            changes += self._deny(fact.name)
        self._schedule(SWEEP, (now_ms // SWEEP_MS + 1) * SWEEP_MS)
        changes += self._run_due(now_ms)
        return self._noted(changes)

    def advance(self, now_ms: int) -> list[Change]:
        """The changes of findings that follow from the passing of time."""
        return self._noted(list(self._run_due(max(now_ms, self._history.now_ms))))

    def findings(self) -> list[Finding]:
        """Open findings and those resolved last, the most urgent first."""
        return sorted([*self.open_findings(), *self._resolved], key=by_urgency)

    def open_findings(self) -> Iterator[Finding]:
        """Open findings, in no order."""
        for scope in self._conditions.values():
            yield from (each.finding for each in scope.values() if each.finding is not None and each.is_open)

    def unseen(self) -> list[Unseen]:
        """The rules that cannot be checked in this cluster, each with the reason."""
        return [each for one in self._rules if (each := self._unseen(one))]

    def _unseen(self, one: Rule) -> Unseen | None:
        missing = one.missing(self._history)
        if not missing:
            return None
        return Unseen(one.name, missing, "; ".join(self._history.visible.why_not(what) for what in missing))

    def limits(self, name: str) -> Limits:
        """The thresholds that a rule is checked with."""
        return self._limits.get(name, RULES[name].limits)

    @property
    def elections(self) -> tuple[Election, ...]:
        """The elections of the quorum's leader that were seen."""
        return tuple(self._history.quorum.elections)

    def share_group(self, name: str) -> ShareGroupHistory | None:
        """What was seen of the deliveries of a share group."""
        return self._history.share_groups.get(name)

    @property
    def configs(self) -> KnownConfigs:
        return self._history.configs

    @property
    def forgotten(self) -> int:
        """How many entries and conditions were dropped because a bound was reached."""
        return self._history.dropped + self._dropped

    def _run_due(self, until_ms: int) -> Iterator[Change]:
        due = self._due
        while due and due[0][0] <= until_ms:
            at_ms, _, key = heappop(due)
            if self._due_at.get(key) != at_ms:
                continue
            del self._due_at[key]
            self._history.now_ms = max(self._history.now_ms, at_ms)
            yield from self._sweep() if key == SWEEP else self._check_by_time(RULES[key[0]], key[1])
        self._history.now_ms = max(self._history.now_ms, until_ms)

    def _schedule(self, key: Key, at_ms: int | None) -> None:
        """Check this scope at this time, or earlier if that is already scheduled."""
        if at_ms is None or at_ms <= self._history.now_ms:
            return
        known = self._due_at.get(key)
        if known is None or at_ms < known:
            self._due_at[key] = at_ms
            self._due_count += 1
            heappush(self._due, (at_ms, self._due_count, key))

    def _check_by_time(self, one: Rule, scope: Scope) -> Iterator[Change]:
        """Check a scope although no fact came. Only a rule that persists can tell its condition without a new fact."""
        if one.persists:
            yield from self._check(one, scope)
        else:
            yield from self._settle((one.name, scope))

    def _check(self, one: Rule, scope: Scope) -> Sequence[Change]:
        key = (one.name, scope)
        ctx = self._context(one, scope)
        found = list(one.check(ctx))
        # Most checks find nothing where nothing was found before.
        changes = self._changes(key, one, found) if found or key in self._conditions else ()
        if one.wake is not None:
            self._schedule(key, one.wake(ctx))
        return changes

    def _changes(self, key: Key, one: Rule, found: Iterable[Match]) -> Sequence[Change]:
        matches = _true_now(found, self._history.now_ms)
        changes = [change for match in matches.values() for change in self._matched(key, one, match)]
        if key in self._conditions:
            changes += self._unmatch_others(key, matches)
        return changes

    def _unmatch_others(self, key: Key, matches: Container[Subject]) -> Iterator[Change]:
        """Conditions of this scope without a match are false now."""
        for subject, condition in self._conditions[key].items():
            if subject not in matches:
                condition.unmatched(self._history.now_ms)
        yield from self._settle(key)

    def _context(self, one: Rule, scope: Scope) -> RuleContext:
        known = self._conditions.get((one.name, scope), _NO_CONDITIONS)
        return RuleContext(self._history, self._history.now_ms, scope, self._limits[one.name], known)

    def _matched(self, key: Key, one: Rule, match: Match) -> Iterator[Change]:
        condition = self._condition(key, one, match)
        if condition is None:
            return
        yield from condition.matched(self._history.now_ms, match)
        self._schedule(key, match.until_ms)
        self._schedule(key, match.again_ms)
        if one.persists and self._history.now_ms < condition.holds_ms:
            self._schedule(key, round(condition.holds_ms))

    def _condition(self, key: Key, one: Rule, match: Match) -> Condition | None:
        known = self._conditions.get(key, {}).get(match.subject)
        if known is not None:
            return known
        if self._condition_count >= CONDITIONS:
            self._dropped += 1
            return None
        now_ms = self._history.now_ms
        since_ms = now_ms if match.since_ms is None else match.since_ms
        pause_ms = self._pauses.before(now_ms) if match.precision_ms is None else match.precision_ms
        new = Condition(
            one, self._limits[one.name], match.subject, since_ms, since_ms, now_ms,
            connection=self._connection, pause_ms=pause_ms, is_from_records=not self._is_sample,
        )  # fmt: skip
        self._conditions.setdefault(key, {})[match.subject] = new
        self._condition_count += 1
        return new

    def _settle(self, key: Key) -> Iterator[Change]:
        """Close findings whose conditions have been false for long enough, and forget conditions that are over."""
        now_ms = self._history.now_ms
        scope = self._conditions.get(key, {})
        for subject, condition in list(scope.items()):
            yield from condition.close(now_ms)
            if condition.is_open and condition.false_since is not None:
                self._schedule(key, condition.false_since + CLOSE_MS)
            elif condition.is_over(now_ms):
                del scope[subject]
                self._condition_count -= 1
        if not scope:
            self._conditions.pop(key, None)

    def _deny(self, gone: str | None = None) -> Iterator[Change]:
        """Conditions about something that the history has forgotten are false."""
        for name, scope in [key for key in self._conditions if gone is None or gone in key[1]]:
            ctx = self._context(RULES[name], scope)
            yield from self._unmatch_others((name, scope), {each.subject for each in RULES[name].check(ctx)})

    def _sweep(self) -> Iterator[Change]:
        self._history.sweep()
        yield from self._deny()

    def _noted(self, changes: list[Change]) -> list[Change]:
        for change in changes:
            if change.what is ChangeType.REOPENED:
                kept = (each for each in self._resolved if each.id != change.finding.id)
                self._resolved = deque(kept, RESOLVED)
            elif change.what is ChangeType.RESOLVED:
                self._resolved.append(change.finding)
        return changes


def _true_now(matches: Iterable[Match], now_ms: int) -> dict[Subject, Match]:
    return {each.subject: each for each in matches if each.until_ms is None or each.until_ms > now_ms}
