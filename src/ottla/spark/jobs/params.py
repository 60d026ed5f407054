"""The parameters of the jobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

__all__ = ["DAY_MS", "HOUR_MS", "MINUTE_MS", "Isolation", "Params"]

MINUTE_MS: Final = 60_000
HOUR_MS: Final = 60 * MINUTE_MS
DAY_MS: Final = 24 * HOUR_MS

Isolation = Literal["read_uncommitted", "read_committed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Params:
    """The same for all jobs of a run. Times are milliseconds since 1970."""

    from_ms: int | None = None
    """Rows of events before this are left out. Earlier events are read all the same, so that a rebalance that began
    before the range has its true beginning."""
    to_ms: int | None = None
    """Rows of events at this time or later are left out."""
    isolation: Isolation = "read_uncommitted"
    """Whether readers stop at the last stable offset, to which lag is then counted."""
    lateness_ms: int = 10 * MINUTE_MS
    """How late a row may come and still enter its window in a stream."""
    stability_window_ms: int = HOUR_MS
    share_window_ms: int = MINUTE_MS
    quorum_window_ms: int = 10_000
    lag_window_ms: int = 10_000
    share_limit: int = 5
    """The delivery count limit of share groups whose configs are not known: Kafka's default."""
    share_lock_ms: int = 30_000
    state_timeout_ms: int = 7 * DAY_MS
    """When a group has been empty for this long, its last assignment is forgotten: new members take nothing over."""
    thresholds: Mapping[str, float] = field(default_factory=dict)
    """The thresholds of the health rules, by `rule.key`."""
    connection: str = ""
    """The options with which the commands of findings reach the cluster."""
    topic_names: Mapping[str, str] = field(default_factory=dict)
    """Topic id -> name, where known: records of groups have only ids."""
    in_driver: bool = False
    """The driver does what workers would do: for few rows, that takes less time than to start them."""
    share_limits: Mapping[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    """(Cluster, group) -> the delivery count limit and the lock duration in milliseconds of a share group, where known.
    The empty group name stands for all groups without configs of their own."""
