"""When findings open, hold, close and come back. Alike for all rules.

A condition opens a finding when it was true for as long as its rule says, and the finding closes when the condition was
false for half a minute. One that comes true again within ten minutes reopens the same finding.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

import msgspec
from msgspec import UNSET

from ottla.health.finding import Change, Finding, State, Subject, What
from ottla.health.rule import Limits, Rule, Sighting

__all__ = ["CLOSE_MS", "REMEMBER_MS", "Condition"]

CLOSE_MS: Final = 30_000
REMEMBER_MS: Final = 600_000
CHANGE_MS: Final = 10_000
"""A finding whose numbers move is told of again no sooner than this."""


@dataclass(slots=True)
class Condition:
    """One rule and one subject."""

    rule: Rule
    limits: Limits
    subject: Subject
    since_ms: int  # of the present stretch of truth
    last_ms: int  # its last moment
    is_exact: bool = False  # the rule itself told the last moment
    false_since: int | None = None
    finding: Finding | None = None
    told_ms: int = 0

    @property
    def is_true(self) -> bool:
        return self.false_since is None

    @property
    def is_open(self) -> bool:
        return self.finding is not None and self.finding.is_open

    def sighted(self, now_ms: int, sighting: Sighting) -> Iterator[Change]:
        """The condition is true now."""
        if not self.is_true:
            self._true_again(now_ms, sighting)
        self.is_exact = sighting.seen_ms is not None
        self.last_ms = now_ms if sighting.seen_ms is None else sighting.seen_ms
        if self.is_open:
            yield from self._changed(now_ms, sighting)
        elif now_ms - self.since_ms >= sighting.hold_ms:
            yield self._open(now_ms, sighting)

    def _true_again(self, now_ms: int, sighting: Sighting) -> None:
        self.false_since = None
        if not self.is_open:
            self.since_ms = now_ms if sighting.since_ms is None else sighting.since_ms

    def _open(self, now_ms: int, sighting: Sighting) -> Change:
        again = self.finding
        since_ms = again.since_ms if again else self.since_ms
        times = again.times + 1 if again else 1
        finding = self._finding(sighting, since_ms, times)
        return self._tell(now_ms, What.REOPENED if again else What.OPENED, finding)

    def _finding(self, sighting: Sighting, since_ms: int, times: int) -> Finding:
        return Finding(
            id=_id(self.rule.name, self.subject, since_ms),
            rule=self.rule.name,
            severity=sighting.severity or self.rule.severity,
            state=State.OPEN,
            subject=self.subject,
            since_ms=since_ms,
            times=times,
            evidence={**sighting.evidence, "thresholds": dict(self.limits)} if self.limits else sighting.evidence,
            sentence=sighting.sentence,
            next=sighting.next,
            tier=sighting.tier or self.rule.tier,
        )

    def _changed(self, now_ms: int, sighting: Sighting) -> Iterator[Change]:
        old = self.finding
        if old is None:
            return
        new = self._finding(sighting, old.since_ms, old.times)
        self.finding = new
        is_due = now_ms - self.told_ms >= CHANGE_MS and new != old
        if new.severity != old.severity or is_due:
            yield self._tell(now_ms, What.CHANGED, new)

    def _tell(self, now_ms: int, what: What, finding: Finding) -> Change:
        self.finding, self.told_ms = finding, now_ms
        return Change(now_ms, what, finding)

    def unsighted(self, now_ms: int) -> None:
        """The condition is false now. What carries was true until this moment."""
        if not self.is_true:
            return
        self.false_since = now_ms
        if self.rule.carries and not self.is_exact:
            self.last_ms = now_ms

    def close(self, now_ms: int) -> Iterator[Change]:
        """Resolves the finding, if the condition has been false for long enough."""
        if self.finding is None or not self.is_open or self.false_since is None:
            return
        if now_ms - self.false_since >= CLOSE_MS:
            resolved = msgspec.structs.replace(self.finding, state=State.RESOLVED, until_ms=self.last_ms)
            yield self._tell(now_ms, What.RESOLVED, resolved)

    def is_over(self, now_ms: int) -> bool:
        """Nothing of it needs to be remembered."""
        if self.is_true or self.is_open:
            return False
        if self.finding is None:
            return True
        until_ms = self.finding.until_ms
        return until_ms is not UNSET and now_ms - until_ms > REMEMBER_MS


def _id(rule: str, subject: Subject, since_ms: int) -> str:
    """The same facts give the same id, wherever they are looked at."""
    digest = blake2b(msgspec.json.encode((rule, subject, since_ms)), digest_size=6)
    return f"{rule}-{digest.hexdigest()}"
