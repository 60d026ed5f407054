"""The size of a batch: shares of a limit, and waiting for enough records."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import ceil, floor

from ottla.spark.offsets import Offsets, TopicPartition

__all__ = ["Patience", "limited"]


def limited(limit: int, start: Offsets, latest: Offsets) -> dict[TopicPartition, int]:
    """End offsets of a batch of about `limit` offsets, shared in proportion to what each partition has.

    A partition with few gets at least one, so that it does not starve. `start` must have every partition that
    counts; of others everything is taken.
    """
    sizes = {at: end - start[at] for at, end in latest.items() if at in start and end > start[at]}
    total = float(sum(sizes.values()))
    if total < 1:
        return dict(latest)
    return {at: _end(limit, total, start[at], end) if at in sizes else end for at, end in latest.items()}


def _end(limit: int, total: float, start: int, end: int) -> int:
    share = limit * ((end - start) / total)
    return min(end, start + (ceil(share) if share < 1 else floor(share)))


class Patience:
    """Waits until there are enough new offsets, or until the last batch was too long ago."""

    def __init__(self, wanted: int, delay_ms: int, now_ms: Callable[[], float]) -> None:
        self._wanted = wanted
        self._delay_ms = delay_ms
        self._now_ms = now_ms
        self._last_ms = float("-inf")

    def is_enough(self, start: Offsets, latest: Mapping[TopicPartition, int]) -> bool:
        """Whether a batch runs now; if so, this is remembered as the time of the last batch."""
        found = sum(end - start.get(at, 0) for at, end in latest.items())
        is_due = self._now_ms() - self._last_ms >= self._delay_ms
        if is_due or found >= self._wanted:
            self._last_ms = self._now_ms()
            return True
        return False
