"""Axes: the positions and labels of ticks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final, NamedTuple

__all__ = ["Scale", "Tick", "ticks_of_durations", "ticks_of_time", "ticks_of_values"]

SECOND_MS: Final = 1000
MINUTE_MS: Final = 60 * SECOND_MS
HOUR_MS: Final = 60 * MINUTE_MS
DAY_MS: Final = 24 * HOUR_MS
STEPS_MS: Final = (
    *(n * SECOND_MS for n in (1, 2, 5, 10, 15, 30)),
    *(n * MINUTE_MS for n in (1, 2, 5, 10, 15, 30)),
    *(n * HOUR_MS for n in (1, 2, 3, 6, 12)),
    *(n * DAY_MS for n in (1, 2, 7, 14, 28, 91, 182, 365)),
)
TICKS: Final = 6
DURATIONS_MS: Final = {
    1: "1 ms", 10: "10 ms", 100: "100 ms", SECOND_MS: "1 s", 10 * SECOND_MS: "10 s", MINUTE_MS: "1 min",
    10 * MINUTE_MS: "10 min", HOUR_MS: "1 h", 10 * HOUR_MS: "10 h", 4 * DAY_MS: "4 d", 40 * DAY_MS: "40 d",
}  # fmt: skip


ROOM: Final = 0.02
"""Margin at both ends of a scale of durations, so that dots there are not cut off."""


class Tick(NamedTuple):
    value: float
    text: str


class Scale(NamedTuple):
    low: float
    high: float

    @property
    def length(self) -> float:
        return self.high - self.low

    def percent(self, value: float) -> float:
        return 100 * (value - self.low) / self.length


def ticks_of_time(scale: Scale) -> list[Tick]:
    """At most six ticks, at full seconds, minutes, hours or days of UTC."""
    step = next((each for each in STEPS_MS if scale.length / each <= TICKS), STEPS_MS[-1])
    first = math.ceil(scale.low / step) * step
    form = "%H:%M:%S" if step < MINUTE_MS else "%H:%M" if step < DAY_MS else "%m-%d"
    return [Tick(ms, datetime.fromtimestamp(ms / 1000, UTC).strftime(form)) for ms in _steps(first, scale.high, step)]


def _steps(first: float, last: float, step: float) -> Iterator[float]:
    for number in range(int((last - first) / step) + 1 if last >= first else 0):
        yield first + number * step


def ticks_of_values(low: float, high: float, count: int = 4) -> tuple[Scale, list[float]]:
    """A scale that begins and ends at ticks, and its ticks, which are 1, 2 or 5 times a power of ten apart."""
    reach = high - low or 1
    raw = reach / count
    power = 10 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw * 0.999)
    step = max(step, 1) if float(low).is_integer() and float(high).is_integer() else step
    first, last = math.floor(low / step), math.ceil(high / step)
    last = max(last, first + 1)
    return Scale(first * step, last * step), [round(n * step, 12) for n in range(first, last + 1)]


def ticks_of_durations(low_ms: float, high_ms: float) -> tuple[Scale, list[Tick]]:
    """A logarithmic scale of durations, with ticks at common durations."""
    low = max((each for each in DURATIONS_MS if each <= low_ms), default=1)
    high = min((each for each in DURATIONS_MS if each >= high_ms and each > low), default=40 * DAY_MS)
    ticks = [Tick(math.log10(each), text) for each, text in DURATIONS_MS.items() if low <= each <= high]
    room = ROOM * (math.log10(high) - math.log10(low))
    return Scale(math.log10(low) - room, math.log10(high) + room), ticks
