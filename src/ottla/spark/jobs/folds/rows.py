"""The output of a fold: rows of the four tables about groups, without the columns that all rows of a group share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import msgspec

from ottla.health.facts import Gone, Group

__all__ = ["STATE_CHANGED", "Event", "Movement", "Out", "Rebalance", "Row", "Window"]


STATE_CHANGED: Final = "state_changed"


class Event(msgspec.Struct, gc=False):
    """A row of group_timeline."""

    type: str
    ts: int
    seq: int
    event: str
    member: str | None
    old: str | None
    new: str | None
    group_epoch: int | None
    assignment_epoch: int | None
    offset: int | None
    detail: str | None

    @property
    def key(self) -> tuple[object, ...]:
        return ("group_timeline", self.ts, self.seq)

    @property
    def is_taken_back(self) -> bool:
        """Whether it takes back a change of state that was told too early."""
        return self.event == STATE_CHANGED and self.old == self.new


class Rebalance(msgspec.Struct, kw_only=True):
    """A row of rebalances; also, in the state of a fold, the rebalance that is under way."""

    type: str
    group_epoch: int
    started: int
    target_at: int | None = None
    ended: int | None = None
    duration_ms: int | None = None
    computing_ms: int | None = None
    revoking_ms: int | None = None
    ended_by: str = "open"
    trigger: str = "unknown"
    trigger_members: list[str] = []
    members_before: int | None = None
    members_after: int | None = None
    partitions_moved: float | None = None
    tasks_moved: int | None = None
    members_touched: int | None = None
    bytes_hint: int | None = None

    @property
    def key(self) -> tuple[object, ...]:
        return ("rebalances", self.group_epoch, self.started)


class Movement(msgspec.Struct, kw_only=True):
    """A row of task_movement."""

    type: str = "streams"
    group_epoch: int
    task: str
    role: str
    kind: str
    from_member: str | None = None
    to_member: str | None = None
    from_process: str | None = None
    to_process: str | None = None
    started: int
    ended: int | None = None
    warmup_ms: int | None = None
    revoke_ms: int | None = None

    @property
    def key(self) -> tuple[object, ...]:
        whose = (self.role, self.kind, self.from_member, self.to_member)
        return ("task_movement", self.group_epoch, self.task, *whose)


class Window(msgspec.Struct, kw_only=True):
    """A row of stability."""

    type: str
    window_start: int
    epochs: int = 0
    epochs_without_membership_change: int = 0
    joins: int = 0
    leaves: int = 0
    fences: int = 0
    distinct_members: int = 0
    short_lived: int = 0
    median_lifetime_s: float | None = None
    converged_share: float | None = None
    longest_rebalance_ms: int | None = None
    alarm: str | None = None
    alarm_reason: str | None = None

    @property
    def key(self) -> tuple[object, ...]:
        return ("stability", self.window_start)


Row = Event | Rebalance | Movement | Window


@dataclass(slots=True)
class Out:
    """The rows of a part of a group's history, in order, and the records that could not be read."""

    events: list[Event] = field(default_factory=list)
    rebalances: list[Rebalance] = field(default_factory=list)
    windows: list[Window] = field(default_factory=list)
    movements: list[Movement] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    facts: list[tuple[int, Group | Gone]] = field(default_factory=list)
    """What the health rules have to know, with its time."""
    open_facts: list[tuple[int, Group | Gone]] = field(default_factory=list)
    """The same of the moment at which the history is cut: facts that the next part may replace."""

    def rows(self) -> list[Row]:
        return [*self.events, *self.rebalances, *self.windows, *self.movements]

    def take(self) -> Out:
        """The rows so far, which are removed from here."""
        taken = Out(self.events, self.rebalances, self.windows, self.movements, self.faults, self.facts)
        self.events, self.rebalances, self.windows, self.movements, self.faults, self.facts = [], [], [], [], [], []
        return taken

    def __len__(self) -> int:
        return len(self.events) + len(self.rebalances) + len(self.windows) + len(self.movements) + len(self.facts)
