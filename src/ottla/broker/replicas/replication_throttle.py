"""Holds replication back: what leaders send, or what followers fetch, of the replicas that topics name.

`leader.replication.throttled.rate` and `follower.replication.throttled.rate` are settings of a broker, in bytes a
second; `leader.replication.throttled.replicas` and `follower.replication.throttled.replicas` are those of a topic: `*`,
or entries of partition and broker. A replica in sync is never held back.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, Literal

from ottla.broker.network.quotas.rates import Rate, Windows

if TYPE_CHECKING:
    from ottla.broker.config.settings import Settings
    from ottla.broker.loop.clock import Clock
    from ottla.log.names import TopicPartition

__all__ = ["ReplicationThrottle"]

_ALL: Final = "*"
_WINDOW: Final = "replication.quota.window"


class ReplicationThrottle:
    """One direction, on one broker."""

    def __init__(self, side: Literal["leader", "follower"], node_id: int, settings: Settings, clock: Clock) -> None:
        self._rate_name = f"{side}.replication.throttled.rate"
        self._replicas_name = f"{side}.replication.throttled.replicas"
        self._node_id = node_id
        self._settings = settings
        self._clock = clock
        windows = Windows(settings[f"{_WINDOW}.num"], settings[f"{_WINDOW}.size.seconds"] * 1000)
        self._rate = Rate(windows, clock.monotonic_ms())

    @property
    def _bound(self) -> float:
        return self._settings.throttle(self._rate_name)

    def _is_throttled(self, at: TopicPartition) -> bool:
        named = self._settings.topic_value(at.topic, self._replicas_name)
        return _ALL in named or f"{at.partition}:{self._node_id}" in named

    def moved(self, at: TopicPartition, count_bytes: int) -> None:
        """Bytes of a partition were sent or fetched."""
        if self._bound < math.inf and self._is_throttled(at):
            self._rate.record(count_bytes, self._clock.monotonic_ms())

    def pause_ms(self, at: TopicPartition) -> int:
        """For how long a partition is held back; 0 if it is not."""
        bound = self._bound
        if bound == math.inf or not self._is_throttled(at):
            return 0
        return self._rate.excess_ms(max(bound, 1), self._clock.monotonic_ms())
