"""Decides when findings open, close and reopen, in the same way for all rules.

A condition opens a finding when it has been true for as long as its rule says. The finding closes when the condition
has been false for half a minute; what comes meanwhile belongs to it if it lasts as long, too. If the condition comes
true again within ten minutes, the same finding reopens.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

from ottla.health.finding import Change, ChangeType, Finding, State, Subject, Tier
from ottla.health.rule import Limits, Match, Rule

__all__ = ["CLOSE_MS", "REMEMBER_MS", "Condition"]

CLOSE_MS: Final = 30_000
REMEMBER_MS: Final = 600_000
CHANGE_MS: Final = 10_000
"""The shortest time between two reports of a finding whose numbers change."""


@dataclass(slots=True)
class Condition:
    """The condition of one rule for one subject."""

    rule: Rule
    limits: Limits
    subject: Subject
    since_ms: int  # when it became true; of an open finding, the first time
    true_ms: int  # when it became true the last time
    last_ms: int  # when it was last known to be true
    is_exact: bool = False  # whether the rule itself gave last_ms
    hold_ms: float = 0
    false_since: int | None = None
    finding: Finding | None = None
    past: str = ""  # the finding's sentence once it is resolved
    reported_ms: int = 0
    connection: str = ""  # the options with which commands reach the cluster
    pause_ms: int = 0  # between the samples before and after it became true the first time
    is_from_records: bool = False  # whether a record, and no sample, made it true the first time

    @property
    def is_true(self) -> bool:
        return self.false_since is None

    @property
    def is_open(self) -> bool:
        return self.finding is not None and self.finding.is_open

    def matched(self, now_ms: int, match: Match) -> Iterator[Change]:
        """The condition is true now."""
        if not self.is_true:
            self._true_again(now_ms, match)
        self.is_exact, self.hold_ms = match.seen_ms is not None, match.hold_ms
        if self.is_open and now_ms < self.holds_ms:
            return
        self.last_ms, self.past = now_ms if match.seen_ms is None else match.seen_ms, match.past
        if self.is_open:
            yield from self._changed(now_ms, match)
        elif now_ms >= self.holds_ms:
            yield self._open(now_ms, match)

    @property
    def holds_ms(self) -> float:
        """When it has been true for long enough."""
        return self.true_ms + self.hold_ms

    def _true_again(self, now_ms: int, match: Match) -> None:
        self.false_since = None
        self.true_ms = now_ms if match.since_ms is None else match.since_ms
        if not self.is_open:
            self.since_ms = self.true_ms

    def _open(self, now_ms: int, match: Match) -> Change:
        again = self.finding
        since_ms = again.since_ms if again else self.since_ms
        times = again.times + 1 if again else 1
        finding = self._finding(match, since_ms, times)
        return self._change(now_ms, ChangeType.REOPENED if again else ChangeType.OPENED, finding)

    def _finding(self, match: Match, since_ms: int, times: int) -> Finding:
        return Finding(
            id=_id(self.rule.name, self.subject, since_ms),
            rule=self.rule.name,
            severity=match.severity or self.rule.severity,
            state=State.OPEN,
            subject=self.subject,
            since_ms=since_ms,
            precision_ms=self._precision_ms(match),
            times=times,
            evidence={**match.evidence, "thresholds": dict(self.limits)} if self.limits else match.evidence,
            sentence=match.sentence,
            next=[step.on(self.connection) for step in match.next],
            tier=self._tier(match),
        )

    def _precision_ms(self, match: Match) -> int | UnsetType:
        is_exact = self._tier(match) is Tier.RECORDS or not self.pause_ms
        return UNSET if is_exact else self.pause_ms

    def _tier(self, match: Match) -> Tier:
        return Tier.RECORDS if self.is_from_records else match.tier or self.rule.tier

    def _changed(self, now_ms: int, match: Match) -> Iterator[Change]:
        old = self.finding
        if old is None:
            return
        new = self._finding(match, old.since_ms, old.times)
        self.finding = new
        is_due = now_ms - self.reported_ms >= CHANGE_MS and new != old
        if new.severity != old.severity or is_due:
            yield self._change(now_ms, ChangeType.CHANGED, new)

    def _change(self, now_ms: int, what: ChangeType, finding: Finding) -> Change:
        self.finding, self.reported_ms = finding, now_ms
        return Change(now_ms, what, finding)

    def unmatched(self, now_ms: int) -> None:
        """The condition is false now. If the rule persists, the condition was true until now."""
        if not self.is_true:
            return
        self.false_since = now_ms
        if self.rule.persists and not self.is_exact and now_ms >= self.holds_ms:
            self.last_ms = now_ms

    def close(self, now_ms: int) -> Iterator[Change]:
        """Resolves the finding, if the condition has been false for long enough."""
        if self.finding is None or not self.is_open or self.false_since is None:
            return
        if now_ms - self.false_since >= CLOSE_MS:
            resolved = msgspec.structs.replace(
                self.finding, state=State.RESOLVED, sentence=self.past, until_ms=self.last_ms
            )
            yield self._change(now_ms, ChangeType.RESOLVED, resolved)

    def is_over(self, now_ms: int) -> bool:
        """Whether the condition can be forgotten."""
        if self.is_true or self.is_open:
            return False
        if self.finding is None:
            return True
        until_ms = self.finding.until_ms
        return until_ms is not UNSET and now_ms - until_ms > REMEMBER_MS


def _id(rule: str, subject: Subject, since_ms: int) -> str:
    """The id of a finding. The same facts give the same id in every process."""
    digest = blake2b(msgspec.json.encode((rule, subject, since_ms)), digest_size=6)
    return f"{rule}-{digest.hexdigest()}"
