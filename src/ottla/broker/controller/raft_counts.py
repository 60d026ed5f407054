"""Counts what happens to the metadata log: records, elections, how long they take.

Averages, maxima and rates are over windows of time, as Kafka's are: the last 30 s, and those that are running.
"""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple

from ottla.broker.network.quotas.rates import Rate, Windows

__all__ = ["Latency", "RaftCounts"]

_WINDOWS: Final = Windows(num=2, size_ms=30_000)


class Latency:
    """How long something took, on average and at most, in the last window and the one that is running."""

    def __init__(self) -> None:
        self._windows: deque[tuple[int, list[float]]] = deque(maxlen=_WINDOWS.num)
        """When each began; how often, how long in sum, and how long at most."""

    def record(self, duration_ms: float, now_ms: int) -> None:
        if not self._windows or now_ms - self._windows[-1][0] >= _WINDOWS.size_ms:
            self._windows.append((now_ms, [0, 0, 0]))
        window = self._windows[-1][1]
        window[0] += 1
        window[1] += duration_ms
        window[2] = max(window[2], duration_ms)

    def average_and_max(self, now_ms: int) -> tuple[float, float] | None:
        """None if nothing was recorded in that time."""
        found = [values for began_ms, values in self._windows if now_ms - began_ms < _WINDOWS.num * _WINDOWS.size_ms]
        if not found:
            return None
        return sum(each[1] for each in found) / sum(each[0] for each in found), max(each[2] for each in found)


class _Uncommitted(NamedTuple):
    end_offset: int
    timestamp_ms: int
    appended_at_ms: int
    is_own: bool


class RaftCounts:
    """Counts of one node since it has started."""

    def __init__(self, now_ms: int, last_timestamp_ms: int) -> None:
        self.appended = Rate(_WINDOWS, now_ms)
        """Records that this node has appended as leader."""
        self.fetched = Rate(_WINDOWS, now_ms)
        self.commit_latency = Latency()
        self.election_latency = Latency()
        self.leaders = 0
        """How often another node, or this one, has become leader."""
        self.committed_timestamp_ms = last_timestamp_ms
        """When the last committed record was made."""
        self.snapshots_loaded = 0
        self._uncommitted: deque[_Uncommitted] = deque()
        self._election_began_at_ms: int | None = None

    def append(self, end_offset: int, count: int, timestamp_ms: int, now_ms: int, *, is_own: bool) -> None:
        """A batch was appended: a leader's own, or one of its leader."""
        (self.appended if is_own else self.fetched).record(count, now_ms)
        self._uncommitted.append(_Uncommitted(end_offset, timestamp_ms, now_ms, is_own))

    def truncated(self, end_offset: int) -> None:
        while self._uncommitted and self._uncommitted[-1].end_offset > end_offset:
            self._uncommitted.pop()

    def replaced(self, timestamp_ms: int) -> None:
        """A snapshot has replaced the log; its last record was made at a time."""
        self._uncommitted.clear()
        self.committed_timestamp_ms = timestamp_ms
        self.snapshots_loaded += 1

    def committed(self, end_offset: int, now_ms: int) -> None:
        while self._uncommitted and self._uncommitted[0].end_offset <= end_offset:
            batch = self._uncommitted.popleft()
            self.committed_timestamp_ms = max(self.committed_timestamp_ms, batch.timestamp_ms)
            if batch.is_own:
                self.commit_latency.record(now_ms - batch.appended_at_ms, now_ms)

    def standing(self, now_ms: int) -> None:
        """This node stands for election."""
        if self._election_began_at_ms is None:
            self._election_began_at_ms = now_ms

    def elected(self, now_ms: int) -> None:
        """A leader is known."""
        self.leaders += 1
        if self._election_began_at_ms is not None:
            self.election_latency.record(now_ms - self._election_began_at_ms, now_ms)
            self._election_began_at_ms = None
