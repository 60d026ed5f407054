"""Members that vanish: did they say goodbye, or did they die?

No API tells. One that leaves in order commits before it goes; one that dies has not moved its partitions for most of a
session when the coordinator gives it up. Offsets are sampled now and then, so at that moment it may be open which of
the two it was: then the next sample of each of its partitions decides, for nobody else can have read them before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from ottla.health.lag_history import LagHistory

__all__ = ["DOUBTS", "LagOf", "Lost", "Vanished"]

SHARE_OF_SESSION: Final = 0.8
DOUBTS: Final = 100
"""Members of a group that may wait for a verdict."""

Place = tuple[str, int]
LagOf = Callable[[Place], LagHistory | None]


@dataclass(slots=True)
class Lost:
    """A member that vanished while its partitions stood still."""

    member: str
    client: str
    held: tuple[Place, ...]
    partitions: tuple[Place, ...]  # those of them that grew
    still_since_ms: int
    at_ms: int
    ended_ms: int | None = None


@dataclass(slots=True)
class Vanished:
    """A member that is no longer there."""

    member: str
    client: str
    held: tuple[Place, ...]
    at_ms: int
    session_ms: int
    reachable_ms: int  # before it no node answered, and nobody could commit

    def lost(self, lag_of: LagOf) -> Lost | None:
        """The member as lost, if what was seen leaves no doubt of it."""
        lags = {tp: lag for tp in self.held if (lag := lag_of(tp))}
        growing = {tp: lag for tp, lag in lags.items() if lag.has_news}
        if not growing or not self._stood_still(list(lags.values()), list(growing.values())):
            return None
        since = min(self._since(lag.moved_ms) for lag in growing.values())
        return Lost(self.member, self.client, self.held, tuple(sorted(growing)), since, self.at_ms)

    def _stood_still(self, lags: list[LagHistory], growing: list[LagHistory]) -> bool:
        """By the samples before it vanished alone; or, as none had moved when all were sampled afterwards, since some
        moment between two samples."""
        if any(lag.moved_ms >= self.at_ms for lag in lags):
            return False
        if all(lag.at_ms >= self.at_ms for lag in lags):
            return all(self._is_long(self.at_ms, lag.before_ms) for lag in growing)
        return all(lag.at_ms < self.at_ms and self._is_long(lag.at_ms, lag.moved_ms) for lag in growing)

    def is_in_doubt(self, lag_of: LagOf) -> bool:
        """It may have been lost, and a partition of it has not been sampled since."""
        lags = [lag for tp in self.held if (lag := lag_of(tp))]
        possible = all(lag.moved_ms < self.at_ms and self._is_long(self.at_ms, lag.before_ms) for lag in lags)
        return possible and any(lag.at_ms < self.at_ms for lag in lags)

    def _is_long(self, until_ms: int, since_ms: int) -> bool:
        return until_ms - self._since(since_ms) >= SHARE_OF_SESSION * self.session_ms

    def _since(self, at_ms: int) -> int:
        return max(at_ms, self.reachable_ms)
