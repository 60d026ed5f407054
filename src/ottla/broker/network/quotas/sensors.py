"""The sensors of one kind of limit: the rates of all limited clients, and the pauses that follow.

Rates are kept by user and client id, the longest unused first. Sensors that were unused for an hour are dropped, and
beyond `SENSORS_MAX` the longest unused: a client that changes its client id all the time gets a new rate each time
anyway.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Final, Generic, NamedTuple, TypeVar

from ottla.broker.network.quotas.limits import ClientLimits, Limit, Tags
from ottla.broker.network.quotas.rates import Rate, TokenBucket, Windows

__all__ = ["SENSORS_MAX", "Mutations", "RateQuotas", "Sensor", "SensorSample", "TokenQuotas"]

SENSORS_MAX: Final = 10_000
EXPIRY_MS: Final = 3_600_000
_AVERAGED: Final = Windows(2, 30_000)

Meter = TypeVar("Meter")


class Sensor(Generic[Meter]):
    """The rate of one client, and how long it was made to pause."""

    __slots__ = ("_pauses", "_pauses_ms", "meter", "used_ms")

    def __init__(self, meter: Meter, now_ms: int) -> None:
        self.meter = meter
        self.used_ms = now_ms
        self._pauses = Rate(_AVERAGED, now_ms)
        self._pauses_ms = Rate(_AVERAGED, now_ms)

    def paused(self, pause_ms: int, now_ms: int) -> None:
        self._pauses.record(1, now_ms)
        self._pauses_ms.record(pause_ms, now_ms)

    def average_pause_ms(self, now_ms: int) -> float:
        """The average pause of the last half minute or minute."""
        pauses = self._pauses.per_second(now_ms)
        return self._pauses_ms.per_second(now_ms) / pauses if pauses else 0.0


class SensorSample(NamedTuple):
    """The values of a sensor for the metrics page."""

    tags: Tags
    value: float
    pause_ms: float


class _Sensors(Generic[Meter]):
    """Sensors by user and client id, made on first use."""

    def __init__(self, make: Callable[[float, int], Meter]) -> None:
        self._make = make
        self._by_tags: dict[Tags, Sensor[Meter]] = {}

    def __len__(self) -> int:
        return len(self._by_tags)

    def __iter__(self) -> Iterator[tuple[Tags, Sensor[Meter]]]:
        return iter(self._by_tags.items())

    def get(self, limit: Limit, now_ms: int) -> Sensor[Meter]:
        sensor = self._by_tags.pop(limit.tags, None)
        if sensor is None:
            self.expire(now_ms)
            sensor = Sensor(self._make(limit.bound, now_ms), now_ms)
        self._by_tags[limit.tags] = sensor  # and so the last of all
        sensor.used_ms = now_ms
        return sensor

    def expire(self, now_ms: int) -> None:
        """Drop sensors that are too old, and the oldest if there are too many."""
        while self._by_tags:
            tags, oldest = next(iter(self._by_tags.items()))
            if now_ms - oldest.used_ms < EXPIRY_MS and len(self._by_tags) < SENSORS_MAX:
                return
            del self._by_tags[tags]


class RateQuotas:
    """Limits of a rate: bytes, or the share of time."""

    def __init__(self, windows: Windows, *, pause_max_ms: int | None = None) -> None:
        self.limits = ClientLimits()
        self._windows = windows
        self._pause_max_ms = pause_max_ms
        self.sensors: _Sensors[Rate] = _Sensors(lambda _, now_ms: Rate(windows, now_ms))

    def record(self, user: str, client_id: str, value: float, now_ms: int) -> int:
        """Count a value; returns the pause that must follow."""
        limit = self.limits.of(user, client_id)
        if limit is None:
            return 0
        sensor = self.sensors.get(limit, now_ms)
        sensor.meter.record(value, now_ms)
        excess_ms = sensor.meter.excess_ms(limit.bound, now_ms)
        return excess_ms if self._pause_max_ms is None else min(excess_ms, self._pause_max_ms)

    def add(self, user: str, client_id: str, value: float, now_ms: int) -> None:
        """Count a value, or take it back."""
        limit = self.limits.of(user, client_id)
        if limit is not None:
            self.sensors.get(limit, now_ms).meter.record(value, now_ms)

    def paused(self, user: str, client_id: str, pause_ms: int, now_ms: int) -> None:
        limit = self.limits.of(user, client_id)
        if limit is not None:
            self.sensors.get(limit, now_ms).paused(pause_ms, now_ms)

    def is_overdue(self, user: str, client_id: str, value: float, now_ms: int) -> bool:
        """Whether a value exceeds all windows together, and nothing else was counted lately."""
        limit = self.limits.of(user, client_id)
        if limit is None or value <= limit.bound * self._windows.all_seconds:
            return False
        return self.sensors.get(limit, now_ms).meter.per_second(now_ms) <= 0

    def excess_ms(self, user: str, client_id: str, now_ms: int) -> int:
        """How long a pause would follow if nothing more were counted."""
        limit = self.limits.of(user, client_id)
        return 0 if limit is None else self.sensors.get(limit, now_ms).meter.excess_ms(limit.bound, now_ms)

    def most_without_pause(self, user: str, client_id: str) -> float:
        """What an idle client can use at once before a pause follows."""
        limit = self.limits.of(user, client_id)
        return math.inf if limit is None else limit.bound * self._windows.full_seconds

    def samples(self, now_ms: int) -> Iterator[SensorSample]:
        for tags, sensor in self.sensors:
            yield SensorSample(tags, sensor.meter.per_second(now_ms), sensor.average_pause_ms(now_ms))


class Mutations:
    """One request that creates or deletes partitions. A strict one gets none while there are too few tokens; another
    gets all, and pauses afterwards."""

    def __init__(self, sensor: Sensor[TokenBucket], bound: float, *, is_strict: bool) -> None:
        self._sensor = sensor
        self._bound = bound
        self._is_strict = is_strict
        self._pause_until_ms = 0

    def take(self, count: int, now_ms: int) -> bool:
        """Take tokens, if they are given."""
        bucket = self._sensor.meter
        excess_ms = bucket.excess_ms(self._bound, now_ms) if self._is_strict else 0
        if not excess_ms:
            bucket.take(count, self._bound, now_ms)
            excess_ms = 0 if self._is_strict else bucket.excess_ms(self._bound, now_ms)
            is_given = True
        else:
            is_given = False
        if excess_ms:
            self._pause_until_ms = now_ms + excess_ms
        return is_given

    def pause_ms(self, now_ms: int) -> int:
        """How long a pause must follow."""
        return max(self._pause_until_ms - now_ms, 0)


class TokenQuotas:
    """Limits with token buckets: partitions that are created and deleted."""

    def __init__(self, windows: Windows) -> None:
        self.limits = ClientLimits()
        self.sensors: _Sensors[TokenBucket] = _Sensors(lambda bound, now_ms: TokenBucket(windows, bound, now_ms))

    def begin(self, user: str, client_id: str, now_ms: int, *, is_strict: bool) -> Mutations | None:
        """For one request; None if it has no limit."""
        limit = self.limits.of(user, client_id)
        if limit is None:
            return None
        return Mutations(self.sensors.get(limit, now_ms), limit.bound, is_strict=is_strict)

    def paused(self, user: str, client_id: str, pause_ms: int, now_ms: int) -> None:
        limit = self.limits.of(user, client_id)
        if limit is not None:
            self.sensors.get(limit, now_ms).paused(pause_ms, now_ms)

    def samples(self, now_ms: int) -> Iterator[SensorSample]:
        for tags, sensor in self.sensors:
            limit = self.limits.of(*tags)
            if limit is not None:  # else it was taken away
                yield SensorSample(tags, sensor.meter.tokens(limit.bound, now_ms), sensor.average_pause_ms(now_ms))
