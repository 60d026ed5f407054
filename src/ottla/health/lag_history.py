"""The history of the offsets and the lag of groups."""

from __future__ import annotations

from typing import Final

from ottla.health.facts import Lag
from ottla.health.series import Series
from ottla.wire.lag import lag_ms

__all__ = ["LagHistory", "TopicLagHistory", "lag_of"]

SPACING_MS: Final = 15_000


class LagHistory:
    """The offsets of a group in one partition."""

    __slots__ = ("at_ms", "before_ms", "commits", "end_when_moved", "fact", "moved_ms", "starts", "waiting_since")

    def __init__(self) -> None:
        self.fact: Lag | None = None
        self.at_ms = 0
        self.moved_ms = 0  # when the present committed offset was first seen
        self.before_ms = 0  # when an earlier committed offset was last seen
        self.end_when_moved = 0
        self.waiting_since: int | None = None  # since when there is lag and the committed offset does not move
        self.commits = Series(SPACING_MS)
        self.starts = Series(SPACING_MS)

    def take(self, at_ms: int, fact: Lag) -> None:
        moved = self.fact is None or self.fact.committed != fact.committed
        if moved:
            self.before_ms = self.at_ms if self.fact else at_ms
            self.moved_ms, self.end_when_moved = at_ms, fact.high_watermark or 0
        if not lag_of(fact):
            self.waiting_since = None
        elif moved or self.waiting_since is None:
            self.waiting_since = at_ms
        if fact.committed is not None:
            self.commits.add(at_ms, fact.committed)
        if fact.log_start is not None:
            self.starts.add(at_ms, fact.log_start)
        self.fact, self.at_ms = fact, at_ms

    @property
    def lag(self) -> int | None:
        return lag_of(self.fact) if self.fact else None

    @property
    def has_news(self) -> bool:
        """Whether records were appended since the committed offset moved."""
        return self.fact is not None and (self.fact.high_watermark or 0) > self.end_when_moved


def lag_of(fact: Lag) -> int | None:
    """How many records a group has not committed yet; None if it has committed nothing or the end is unknown."""
    if fact.committed is None or fact.committed < 0 or fact.high_watermark is None:
        return None
    return max(0, fact.high_watermark - fact.committed)


class TopicLagHistory:
    """The lag of a group in a whole topic. It keeps running sums, so a sample costs the same whatever the number of
    partitions."""

    __slots__ = ("_partitions", "at_ms", "consumed", "lag", "lags", "produced")

    def __init__(self) -> None:
        self._partitions: dict[int, tuple[int, int, int | None]] = {}  # partition -> (done, end, time of the last done)
        self.at_ms = 0
        self.lag = 0
        self.lags = Series(SPACING_MS)
        self.produced = Series(SPACING_MS)
        self.consumed = Series(SPACING_MS)

    def take(self, at_ms: int, partition: int, done: int, end: int, committed_ts: int | None) -> None:
        old_done, old_end, _ = self._partitions.get(partition, (done, end, None))
        known = partition in self._partitions
        self.lag += (end - done) - ((old_end - old_done) if known else 0)
        self._partitions[partition] = (done, end, committed_ts)
        self.lags.add(at_ms, self.lag)
        self.produced.add(at_ms, _last(self.produced) + max(0, end - old_end))
        self.consumed.add(at_ms, _last(self.consumed) + max(0, done - old_done))
        self.at_ms = at_ms

    @property
    def partition_count(self) -> int:
        return len(self._partitions)

    def worst_partition(self) -> int:
        return max(self._partitions, key=lambda each: self._partitions[each][1] - self._partitions[each][0])

    def behind_ms(self, now_ms: int) -> tuple[float, bool]:
        """How long ago the next record to consume was produced; and whether that is known, or at least that long."""
        since_ms = self.produced.when(_last(self.produced) - self.lag)
        if since_ms is None:
            times = [at_ms for done, end, at_ms in self._partitions.values() if at_ms and at_ms > 0 and done < end]
            since_ms = min(times, default=None)
        known_ms = lag_ms(self.lag, since_ms, now_ms)
        return (self.produced.span_ms, False) if known_ms is None else (known_ms, True)

    def per_minute(self, now_ms: int) -> float:
        before = self.lags.at(now_ms - 60_000)
        return self.lag - before if before is not None else 0


def _last(series: Series) -> float:
    return series.points[-1][1] if series.points else 0
