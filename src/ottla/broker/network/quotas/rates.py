"""Rates and token buckets, computed as in Kafka; `now_ms` is passed in, so that tests can move time.

A `Rate` adds up what was recorded in the last windows of time (11 of 1 s unless configured otherwise), of which the
newest is still running. It is cautious at the start: what has not been looked at for all but one of the windows is
divided by their whole length all the same, so that a first burst is not taken for a high rate.

A `TokenBucket` fills with so many tokens a second, and up to what all windows together give; it may be overdrawn once.
"""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["PAUSE_MAX_MS", "Rate", "TokenBucket", "Windows", "rounded"]

PAUSE_MAX_MS: Final = 2**31 - 1
"""More than 24 days cannot be told to a client."""
_SECOND_MS: Final = 1000


class Windows(NamedTuple):
    """The windows of time over which a rate is computed."""

    num: int = 11
    size_ms: int = 1000

    @property
    def full_seconds(self) -> float:
        """All windows but the running one."""
        return (self.num - 1) * self.size_ms / _SECOND_MS

    @property
    def all_seconds(self) -> float:
        return self.num * self.size_ms / _SECOND_MS


class _Sample:
    """What was recorded in one window."""

    __slots__ = ("last_ms", "start_ms", "value")

    def __init__(self, now_ms: int) -> None:
        self.reset(now_ms)

    def reset(self, now_ms: int) -> None:
        self.value = 0.0
        self.start_ms = self.last_ms = now_ms


class Rate:
    """A rate per second over moving windows."""

    __slots__ = ("_current", "_samples", "_windows")

    def __init__(self, windows: Windows, now_ms: int) -> None:
        self._windows = windows
        self._samples = [_Sample(now_ms)]
        self._current = 0

    def record(self, value: float, now_ms: int) -> None:
        sample = self._samples[self._current]
        if now_ms - sample.start_ms >= self._windows.size_ms:
            sample = self._advance(now_ms)
        sample.value += value
        sample.last_ms = now_ms

    def _advance(self, now_ms: int) -> _Sample:
        self._current = (self._current + 1) % (self._windows.num + 1)
        if self._current == len(self._samples):
            self._samples.append(_Sample(now_ms))
        else:
            self._samples[self._current].reset(now_ms)
        return self._samples[self._current]

    def span_ms(self, now_ms: int) -> int:
        """The time by which the sum is divided."""
        windows = self._windows
        self._forget_old(now_ms)
        elapsed_ms = now_ms - min(sample.start_ms for sample in self._samples)
        missing = windows.num - 1 - elapsed_ms // windows.size_ms
        return max(elapsed_ms + max(missing, 0) * windows.size_ms, 1)

    def per_second(self, now_ms: int) -> float:
        self._forget_old(now_ms)
        total = sum(sample.value for sample in self._samples)
        return total * _SECOND_MS / self.span_ms(now_ms)

    def _forget_old(self, now_ms: int) -> None:
        oldest_ms = now_ms - self._windows.num * self._windows.size_ms
        for sample in self._samples:
            if sample.last_ms <= oldest_ms:
                sample.reset(now_ms)

    def excess_ms(self, bound: float, now_ms: int) -> int:
        """How long nothing must be recorded until the rate is at its bound; 0 if it is not above it."""
        rate = self.per_second(now_ms)
        return _pause((rate - bound) / bound * self.span_ms(now_ms)) if rate > bound else 0


class TokenBucket:
    """A token bucket: a burst may take more tokens than come in."""

    __slots__ = ("_seconds", "_tokens", "_updated_ms")

    def __init__(self, windows: Windows, bound: float, now_ms: int) -> None:
        self._seconds = windows.all_seconds
        self._tokens = self._seconds * bound
        self._updated_ms = now_ms

    def tokens(self, bound: float, now_ms: int) -> float:
        """What is left; below 0 if more was taken than there was."""
        filled = self._tokens + bound * (now_ms - self._updated_ms) / _SECOND_MS
        self._tokens = min(self._seconds * bound, filled)
        self._updated_ms = now_ms
        return self._tokens

    def take(self, count: float, bound: float, now_ms: int) -> None:
        self._tokens = min(self._seconds * bound, self.tokens(bound, now_ms) - count)

    def excess_ms(self, bound: float, now_ms: int) -> int:
        """How long it takes until nothing is owed; 0 if nothing is."""
        tokens = self.tokens(bound, now_ms)
        return _pause(-tokens / bound * _SECOND_MS) if tokens < 0 else 0


def _pause(ms: float) -> int:
    return rounded(min(ms, PAUSE_MAX_MS))


def rounded(value: float) -> int:
    """To the nearest whole number, halves up."""
    return int(value + 0.5)
