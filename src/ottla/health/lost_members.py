"""Decides whether a member that vanished left its group or died.

No API tells. A member that leaves commits first. A member that dies has committed nothing for most of a session timeout
when the coordinator removes it. Offsets are sampled on an interval: when they last moved is known to lie between two
samples, so they must have stood still for 0.3 of the timeout for certain and may have for most of it. The answer may
still be open at that moment. Then the next sample of each of its partitions decides, because no other member can have
read them before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from ottla.health.lag_history import LagHistory

__all__ = ["DOUBTS", "LagOf", "Lost", "Vanished"]

SHARE_OF_SESSION: Final = 0.8
CERTAIN_SHARE: Final = 0.3
DOUBTS: Final = 100
"""How many members of a group may be in doubt."""

TopicPartition = tuple[str, int]
LagOf = Callable[[TopicPartition], LagHistory | None]


@dataclass(slots=True)
class Lost:
    """A member that vanished without a commit, while records waited in its partitions."""

    member: str
    client: str
    held: tuple[TopicPartition, ...]
    partitions: tuple[TopicPartition, ...]  # those of `held` that have lag
    still_since_ms: int
    precision_ms: int
    """How far apart the samples are between which the offsets moved last."""
    at_ms: int
    ended_ms: int | None = None


@dataclass(slots=True)
class Vanished:
    """A member that is no longer there."""

    member: str
    client: str
    held: tuple[TopicPartition, ...]
    at_ms: int
    session_ms: int
    reachable_ms: int  # before this time no node answered, so no member could commit

    def lost(self, lag_of: LagOf) -> Lost | None:
        """The lost member, if the samples prove that it was lost."""
        lags = {tp: lag for tp in self.held if (lag := lag_of(tp))}
        growing = {tp: lag for tp, lag in lags.items() if lag.has_news}
        if not growing or not self._stood_still(list(lags.values()), list(growing.values())):
            return None
        first = min(growing.values(), key=lambda lag: lag.moved_ms)
        since_ms, precision_ms = self._since(first.moved_ms), first.moved_ms - first.before_ms
        return Lost(self.member, self.client, self.held, tuple(sorted(growing)), since_ms, precision_ms, self.at_ms)

    def _stood_still(self, lags: list[LagHistory], growing: list[LagHistory]) -> bool:
        """Whether the offsets stood still long enough: by the samples before the member vanished; or, if none had moved
        in the samples after that, since some time between two samples."""
        if any(lag.moved_ms >= self.at_ms for lag in lags):
            return False
        if all(lag.at_ms >= self.at_ms for lag in lags):
            return all(self._is_long(self.at_ms, lag.before_ms) for lag in growing)
        return all(
            lag.at_ms < self.at_ms
            and self._is_long(self.at_ms, lag.before_ms)
            and self._is_long(lag.at_ms, lag.moved_ms, CERTAIN_SHARE)
            for lag in growing
        )

    def is_in_doubt(self, lag_of: LagOf) -> bool:
        """Whether it may have been lost, and one of its partitions has not been sampled since."""
        lags = [lag for tp in self.held if (lag := lag_of(tp))]
        possible = all(lag.moved_ms < self.at_ms and self._is_long(self.at_ms, lag.before_ms) for lag in lags)
        return possible and any(lag.at_ms < self.at_ms for lag in lags)

    def _is_long(self, until_ms: int, since_ms: int, share: float = SHARE_OF_SESSION) -> bool:
        return until_ms - self._since(since_ms) >= share * self.session_ms

    def _since(self, at_ms: int) -> int:
        return max(at_ms, self.reachable_ms)
