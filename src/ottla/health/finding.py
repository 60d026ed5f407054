"""A finding: a problem of one subject, since when it exists, one sentence about it, and what to do."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

__all__ = ["Change", "ChangeType", "Finding", "NextStep", "Severity", "State", "Subject", "Tier", "by_urgency"]


class Severity(StrEnum):
    CRITICAL = "critical"
    WARNING = "warning"
    NOTICE = "notice"


class State(StrEnum):
    OPEN = "open"
    RESOLVED = "resolved"


class Tier(StrEnum):
    """The source of the facts: the APIs of any cluster, samples over time, records of internal topics, or an ottla
    broker."""

    ADMIN = "A"
    SAMPLES = "S"
    RECORDS = "R"
    OTTLA = "O"


class Subject(msgspec.Struct, frozen=True, omit_defaults=True):
    kind: str
    name: str
    topic: str | UnsetType = UNSET  # set if the finding is about one topic of a group
    partition: int | UnsetType = UNSET
    member: str | UnsetType = UNSET


class NextStep(msgspec.Struct, frozen=True, omit_defaults=True):
    """A recommended step: in words, as a command to type, as a page of the console."""

    text: str
    command: str | UnsetType = UNSET
    href: str | UnsetType = UNSET

    def on(self, connection: str) -> NextStep:
        """The same with a command that has these options, which say how to connect to the cluster."""
        if not connection or not isinstance(self.command, str):
            return self
        return msgspec.structs.replace(self, command=f"{self.command} {connection}")


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`since_ms` and `until_ms` are the first and the last time at which the condition was true. Between two samples
    nobody looks: it may have come true up to `precision_ms` earlier and have ended so much later; unset, the times are
    exact. `times` counts how often the finding opened: if the condition comes true again within ten minutes, the same
    finding reopens. The sentence of a resolved finding is in the past tense."""

    id: str
    rule: str
    severity: Severity
    state: State
    subject: Subject
    since_ms: int
    until_ms: int | UnsetType = UNSET
    precision_ms: int | UnsetType = UNSET
    times: int
    evidence: dict[str, Any]
    sentence: str
    next: list[NextStep]
    tier: Tier

    @property
    def is_open(self) -> bool:
        return self.state is State.OPEN


class ChangeType(StrEnum):
    OPENED = "opened"
    REOPENED = "reopened"
    CHANGED = "changed"
    RESOLVED = "resolved"


class Change(msgspec.Struct, frozen=True):
    """A change of a finding, and the finding after it."""

    at_ms: int
    what: ChangeType
    finding: Finding


_ORDER = list(Severity)


def by_urgency(finding: Finding) -> tuple[bool, int, int, str, str, str]:
    """Sorts findings: open ones first, then by severity, then by age."""
    severity = _ORDER.index(finding.severity)
    return not finding.is_open, severity, finding.since_ms, finding.rule, finding.subject.name, finding.id
