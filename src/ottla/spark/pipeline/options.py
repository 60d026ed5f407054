"""The options of a run or a stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ottla.health.samples import OBSERVATIONS
from ottla.spark.jobs.params import DAY_MS, HOUR_MS, MINUTE_MS, Isolation
from ottla.spark.pipeline.ingest import Starts
from ottla.spark.pipeline.tables import Days, Format, day_of

__all__ = ["RunOptions", "Say"]

Say = Callable[[str], None]
LATENESS_MS: Final = 10 * MINUTE_MS


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    out: Path
    format: Format = "parquet"
    since_ms: int | None = None
    lateness_ms: int = LATENESS_MS
    share_window_ms: int | None = None
    """The length of the windows of share_delivery; None for a minute, or less if the events cover little time."""
    isolation: Isolation = "read_uncommitted"
    thresholds: Mapping[str, float] = field(default_factory=dict)
    observations: tuple[str, ...] = ()
    """Directories with files of an observer."""
    topic: str = OBSERVATIONS
    command: str = ""
    connection: str = ""
    """The options with which the commands of findings reach the cluster."""

    @property
    def first_day_ms(self) -> int | None:
        """The start of the first day: days are always computed as a whole."""
        return None if self.since_ms is None else self.since_ms // DAY_MS * DAY_MS

    @property
    def days(self) -> Days:
        first = self.first_day_ms
        return Days(first=None if first is None else day_of(first))

    @property
    def starts(self) -> Starts:
        first = self.first_day_ms
        # Lag as time needs an hour before the range; slow rules need more.
        return Starts() if first is None else Starts(first - 2 * HOUR_MS, first - DAY_MS)
