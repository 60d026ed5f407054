"""The history of share groups: the in-flight window according to the state topic, and deliveries over time."""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple

from ottla.health.facts import ShareMetrics, ShareOffsets, ShareState, ShareWindow, StateBatch
from ottla.health.series import Series

__all__ = ["BUCKET_MS", "Archived", "Bucket", "Deliveries", "ShareGroupHistory", "SharePartitionHistory"]

BUCKET_MS: Final = 10_000
BUCKETS: Final = 360
OFFSETS: Final = 10_000
ARCHIVED: Final = 2_000
METRICS_SPACING_MS: Final = 5_000
STALE_MS: Final = 60_000
"""Numbers of an ottla broker that are older than this are no better than those from records."""

_AVAILABLE: Final = 0
_ARCHIVED: Final = 4


class Archived(NamedTuple):
    at_ms: int
    topic: str
    partition: int
    offset: int
    deliveries: int


class Bucket:
    """Ten seconds of deliveries, and of locks that expired, which only brokers tell."""

    __slots__ = ("deliveries", "expired", "redeliveries", "where")

    def __init__(self) -> None:
        self.deliveries = 0
        self.redeliveries = 0
        self.expired = 0
        self.where: dict[tuple[str, int], int] = {}

    def add(self, deliveries: int, redeliveries: int, where: tuple[str, int] | None = None) -> None:
        self.deliveries += deliveries
        self.redeliveries += redeliveries
        if where is not None and redeliveries:
            self.where[where] = self.where.get(where, 0) + redeliveries


class Deliveries:
    """The buckets of the last hour, by their start."""

    def __init__(self) -> None:
        self.buckets: dict[int, Bucket] = {}

    def at(self, at_ms: int) -> Bucket:
        start = at_ms // BUCKET_MS * BUCKET_MS
        if start not in self.buckets:
            while len(self.buckets) >= BUCKETS:
                del self.buckets[min(self.buckets)]
            self.buckets[start] = Bucket()
        return self.buckets[start]


class ShareGroupHistory:
    def __init__(self) -> None:
        self.at_ms = 0
        self.from_records = Deliveries()
        self.from_metrics = Deliveries()
        self._metrics_ms: int | None = None
        self.archived: deque[Archived] = deque(maxlen=ARCHIVED)
        self.delivered = Series(METRICS_SPACING_MS)
        self.expired = Series(METRICS_SPACING_MS)
        self.rejected = Series(METRICS_SPACING_MS)
        self._counters: dict[int, ShareMetrics] = {}

    @property
    def has_metrics(self) -> bool:
        return self._metrics_ms is not None and self.at_ms - self._metrics_ms <= STALE_MS

    @property
    def deliveries(self) -> Deliveries:
        """All acquisitions, if a broker counts them; else those whose end was written to the state topic."""
        return self.from_metrics if self.has_metrics else self.from_records

    def take_metrics(self, at_ms: int, fact: ShareMetrics) -> None:
        """Counters only grow; a smaller value comes from a broker that was restarted."""
        old = self._counters.get(fact.node)
        self._counters[fact.node] = fact
        self._metrics_ms = self.at_ms = at_ms
        if old is None:
            old = fact
        elif fact.delivered < old.delivered:
            old = ShareMetrics(group=fact.group, node=fact.node)
        bucket = self.from_metrics.at(at_ms)
        bucket.add(fact.delivered - old.delivered, fact.redelivered - old.redelivered)
        bucket.expired += fact.lock_expiries - old.lock_expiries
        _grow(self.delivered, at_ms, fact.delivered - old.delivered)
        _grow(self.expired, at_ms, fact.lock_expiries - old.lock_expiries)
        _grow(self.rejected, at_ms, fact.rejected - old.rejected)


def _grow(series: Series, at_ms: int, by: int) -> None:
    series.add(at_ms, (series.points[-1][1] if series.points else 0) + by)


class SharePartitionHistory:
    """The offsets of a share partition with their last written state and delivery count."""

    def __init__(self) -> None:
        self.at_ms = 0
        self.offsets: ShareOffsets | None = None
        self.window: ShareWindow | None = None
        self._window_ms = 0
        self.written: dict[int, tuple[int, int]] = {}
        self.has_records = False
        self.start: int | None = None
        self.waiting_since: int | None = None  # since when there is lag and the start offset does not move

    def take_offsets(self, at_ms: int, fact: ShareOffsets) -> None:
        moved = self._moves(fact.start)
        if not fact.lag:
            self.waiting_since = None
        elif moved or self.waiting_since is None:
            self.waiting_since = at_ms
        self.offsets = fact
        self._note_time(at_ms)

    def _note_time(self, at_ms: int) -> None:
        self.at_ms = at_ms
        if at_ms - self._window_ms > STALE_MS:
            self.window = None

    def take_window(self, at_ms: int, fact: ShareWindow) -> None:
        if self._moves(fact.start) and self.waiting_since is not None:
            self.waiting_since = at_ms
        self.window, self._window_ms, self.at_ms = fact, at_ms, at_ms

    def take_record(self, at_ms: int, fact: ShareState, group: ShareGroupHistory) -> None:
        """Takes a record of the state. The first snapshot gives the present state; it is no event."""
        is_base = not self.has_records and fact.record == "ShareSnapshot"
        when = fact.written_ms if fact.written_ms is not None else at_ms
        for batch in fact.batches:
            self._take_batch(when, fact, batch, None if is_base else group)
        if self._moves(fact.start) and self.waiting_since is not None:
            self.waiting_since = at_ms
        if fact.start is not None and fact.start >= 0:
            self.written = {offset: each for offset, each in self.written.items() if offset >= fact.start}
        self.has_records = True
        self._note_time(at_ms)

    def _take_batch(self, when: int, fact: ShareState, batch: StateBatch, group: ShareGroupHistory | None) -> None:
        new = (batch.state, batch.count)
        last = min(batch.last, batch.first + OFFSETS)
        ended = [each for each in range(batch.first, last + 1) if self.written.get(each) != new]
        for offset in ended:
            if len(self.written) < OFFSETS or offset in self.written:
                self.written[offset] = new
        if group is None or not ended or batch.count < 1:
            return
        where = (fact.topic or fact.topic_id or "", fact.partition)
        group.from_records.at(when).add(len(ended), len(ended) if batch.count > 1 else 0, where)
        if batch.state == _ARCHIVED:
            group.archived.extend(Archived(when, *where, offset, batch.count) for offset in ended)

    def _moves(self, start: int | None) -> bool:
        if start is None or start < 0 or start == self.start:
            return False
        self.start = start
        return True

    @property
    def lag(self) -> int | None:
        return self.offsets.lag if self.offsets else None

    @property
    def end(self) -> int | None:
        """The last offset in the window, as far as it is known."""
        if self.window is not None:
            return self.window.end
        return max(self.written, default=None) if self.has_records else None

    @property
    def first_count(self) -> int | None:
        """The delivery count of the record at the start offset, if it is known and the record is available."""
        if self.window is not None and self.window.first_count is not None:
            return self.window.first_count
        state, count = self.written.get(self.start if self.start is not None else -1, (_ARCHIVED, 0))
        return count if state == _AVAILABLE else None
