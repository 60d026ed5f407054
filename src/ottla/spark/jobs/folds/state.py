"""The state of a fold: small enough to be kept between the batches of a stream."""

from __future__ import annotations

from typing import Final

import msgspec

from ottla.spark.jobs.folds.rows import Rebalance

__all__ = [
    "NOBODY",
    "NOTHING",
    "Assignments",
    "Counted",
    "EpochBump",
    "Handovers",
    "Held",
    "Holding",
    "State",
    "TrackedMember",
    "Warmup",
]

NOTHING: Final[frozenset[str]] = frozenset()
NOBODY: Final = -1

Held = frozenset[str]
"""Partitions as `topic id-partition`, or tasks as `subtopology_partition`."""
Holding = tuple[Held, Held, Held, Held]
"""What a member has: active, still to be revoked, standby, warm-up."""


class Assignments(msgspec.Struct, array_like=True, frozen=True):
    """What a member held when the assignment had converged."""

    instance: str | None
    process: str | None
    active: Held
    standby: Held = NOTHING
    warmup: Held = NOTHING


class TrackedMember(msgspec.Struct, array_like=True):
    id: str
    joined_ms: int
    """NOBODY if it joined before the history began."""
    client: str = ""
    host: str = ""
    rack: str | None = None
    instance: str | None = None
    process: str | None = None
    subscribed: str = ""
    assignor: str | None = None
    rebalance_timeout_ms: int | None = None
    topology_epoch: int | None = None
    epoch: int = 0
    state: int = 0
    """0: stable, 1: has to revoke something, 2: waits for something. Other numbers are from newer releases."""
    active: Held = NOTHING
    standby: Held = NOTHING
    warmup: Held = NOTHING
    pending: Held = NOTHING
    pending_since_ms: int = 0
    target: bytes = b""
    """The record's value, not decoded, because it is seldom needed."""
    assignment: bytes = b""
    """The bytes of what it holds, not decoded: the next record often has the same."""
    is_reconciled: bool = False


class Handovers(msgspec.Struct, array_like=True):
    """When active tasks were revoked and assigned since the last converged assignment."""

    revoking_ms: dict[str, int] = msgspec.field(default_factory=dict)
    released_ms: dict[str, int] = msgspec.field(default_factory=dict)
    gained_ms: dict[str, int] = msgspec.field(default_factory=dict)


class Warmup(msgspec.Struct, array_like=True):
    """A warm-up task of a process, or one that has just ended."""

    task: str
    member: str
    process: str | None
    group_epoch: int
    started_ms: int
    ended_ms: int | None = None


class EpochBump(msgspec.Struct, array_like=True):
    """An increase of the group epoch."""

    at_ms: int
    by: int
    is_same_who: bool
    """Whether members, subscriptions, topology and topics are the same as at the bump before."""
    has_converged: bool
    """Whether the assignment before it had converged."""
    trigger: str
    is_warmup_step: bool = False


class Counted(msgspec.Struct, array_like=True):
    """The counts of the current window."""

    start_ms: int
    epochs: int = 0
    quiet_epochs: int = 0
    joins: int = 0
    leaves: int = 0
    fences: int = 0
    short_lived: int = 0
    members: set[str] = msgspec.field(default_factory=set)
    lifetimes_ms: list[int] = msgspec.field(default_factory=list)
    stable_ms: int = 0
    peopled_ms: int = 0
    longest_ms: int | None = None
    alarm: str | None = None
    alarm_reason: str | None = None
    deleted: str = ""
    """The type of a group that was deleted in this window: the rest of its state is gone."""


class State(msgspec.Struct, array_like=True):
    source: str = "records"
    type: str = ""
    partition: int = NOBODY
    offset: int = NOBODY
    """The last record that was taken; repeated records are skipped."""
    ts: int = NOBODY
    """The time of the last record or sample."""
    next_seq: int = 0
    """The place of the next event: among those of a record, or of a sample."""
    state: str = "Empty"
    state_since_ms: int = 0
    epoch: int = NOBODY
    assignment_epoch: int = NOBODY
    metadata_hash: int | None = None
    fresh_hash: int | None = None
    """The last hash that was not among the recent ones, which means that a topic changed."""
    recent_hashes: list[int] = msgspec.field(default_factory=list)
    configs: dict[str, str] | None = None
    topology_epoch: int | None = None
    validated_topology_epoch: int | None = None
    failed_topology_epoch: int | None = None
    topology: bytes = b""
    protocol: str | None = None
    initialized: int | None = None
    """A digest of the partitions that a share group can assign."""
    regexes: dict[str, str] = msgspec.field(default_factory=dict)
    members: dict[str, TrackedMember] = msgspec.field(default_factory=dict)
    reconciling: int = 0
    away: int = 0
    """How many static members have left temporarily."""
    causes: list[tuple[str, str | None]] = msgspec.field(default_factory=list)
    """Possible reasons for the next epoch bump, since the last one."""
    older_causes: list[tuple[str, str | None]] = msgspec.field(default_factory=list)
    """Reasons before that, since the last target."""
    has_new_who: bool = False
    rebalance: Rebalance | None = None
    converged: dict[str, Assignments] | None = None
    """The assignments of members when the group last converged."""
    has_converged: bool = False
    """Whether the newest group epoch has converged."""
    target_tasks_changed: set[str] = msgspec.field(default_factory=set)
    target_tasks_warming: set[str] = msgspec.field(default_factory=set)
    handovers: Handovers = msgspec.field(default_factory=Handovers)
    warmups: list[Warmup] = msgspec.field(default_factory=list)
    rises: list[EpochBump] = msgspec.field(default_factory=list)
    counted: Counted | None = None
    seen_ms: int = NOBODY
    """When the last sample was taken."""
    has_gap: bool = False
    """Whether the samples of the current rebalance have a gap, so that its duration is unknown."""
