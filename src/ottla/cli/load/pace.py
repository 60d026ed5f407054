"""When the records of a load are due."""

from __future__ import annotations

from typing import NamedTuple


class Due(NamedTuple):
    """Records to send together: the number of the first, and how many."""

    first: int
    size: int


class Pace:
    """Hands out records at a rate, or as fast as they are taken. `total` is how many there are, `seconds` how long it
    lasts; whichever comes first ends it."""

    def __init__(self, rate: float | None, *, total: int | None, seconds: float | None, batch_max: int) -> None:
        self._rate = rate
        self._seconds = seconds
        self._batch_max = batch_max
        self._total = total
        if rate is not None and seconds is not None:
            in_time = max(1, round(rate * seconds))
            self._total = in_time if total is None else min(total, in_time)
        self._taken = 0

    def is_over(self, passed_s: float) -> bool:
        if self._total is not None:
            return self._taken >= self._total
        return self._seconds is not None and passed_s >= self._seconds

    def wait_s(self, passed_s: float, linger_s: float) -> float:
        """How long to wait until there is a batch: until it is full, or its first record has waited for `linger_s`."""
        if self._rate is None:
            return 0.0
        lingered_s = self.due_at_s(self._taken) + linger_s
        full_s = self.due_at_s(self._taken + self._batch_max - 1)
        return max(0.0, min(lingered_s, full_s) - passed_s)

    def take(self, passed_s: float) -> Due:
        """The records that are due, no more than fit into a batch."""
        count = self._batch_max
        if self._rate is not None:
            count = min(count, max(1, int(passed_s * self._rate) + 1 - self._taken))
        if self._total is not None:
            count = min(count, self._total - self._taken)
        due = Due(self._taken, count)
        self._taken += count
        return due

    def due_at_s(self, number: int) -> float:
        return 0.0 if self._rate is None else number / self._rate

    @property
    def has_rate(self) -> bool:
        return self._rate is not None
