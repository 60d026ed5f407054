"""Durations of any number of events in little memory: they are counted in buckets that are one percent wide."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import exp, log
from typing import Final

_BUCKET_WIDTH: Final = log(1.01)


class Latencies:
    """A histogram of durations in nanoseconds; quantiles are exact to half the width of a bucket."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()
        self._total_ns = 0
        self.count = 0
        self.max_ns = 0

    def add(self, duration_ns: int) -> None:
        self._counts[round(log(max(duration_ns, 1)) / _BUCKET_WIDTH)] += 1
        self._total_ns += duration_ns
        self.count += 1
        self.max_ns = max(self.max_ns, duration_ns)

    def merge(self, other: Latencies) -> None:
        self._counts.update(other._counts)
        self._total_ns += other._total_ns
        self.count += other.count
        self.max_ns = max(self.max_ns, other.max_ns)

    @property
    def mean_ns(self) -> float | None:
        return self._total_ns / self.count if self.count else None

    def quantile_ns(self, share: float) -> int | None:
        """The duration that a `share` of all do not exceed; None if there are none."""
        wanted = share * self.count
        seen = 0
        for number in sorted(self._counts):
            seen += self._counts[number]
            if seen >= wanted:
                return min(round(exp(number * _BUCKET_WIDTH)), self.max_ns)
        return None

    def counts_below(self, bounds_ns: Sequence[int]) -> list[int]:
        """How many are up to each bound and above the one before it; the last number counts the rest."""
        found = [0] * (len(bounds_ns) + 1)
        for number, count in self._counts.items():
            duration_ns = exp(number * _BUCKET_WIDTH)
            place = next((index for index, bound in enumerate(bounds_ns) if duration_ns <= bound), len(bounds_ns))
            found[place] += count
        return found
