"""The history of failed logins and refused requests."""

from __future__ import annotations

from typing import Final

from ottla.health.series import LruDict, Series

__all__ = ["FailureHistory"]

OTHERS: Final = 100
SPACING_MS: Final = 5_000


class FailureHistory:
    """Failed logins of one user, by address; or those from one address, by user; or one's refused requests, by API."""

    def __init__(self) -> None:
        self.at_ms = 0
        self.failed = Series(SPACING_MS)
        self._others: LruDict[str, list[int]] = LruDict(OTHERS)  # name -> when it was last seen to fail

    def take(self, at_ms: int, new: int, other: str) -> None:
        before = self.failed.points[-1][1] if self.failed.points else 0
        self.failed.add(at_ms, before + new)
        self.at_ms = at_ms
        if new:
            self._others.touch(other, lambda: [at_ms])[0] = at_ms

    def gained(self, now_ms: int, back_ms: int) -> int:
        before = self.failed.at(now_ms - back_ms)
        return round(self.failed.points[-1][1] - (self.failed.points[0][1] if before is None else before))

    def others(self, now_ms: int, back_ms: int) -> list[str]:
        return sorted(name for name, seen in self._others.items() if seen[0] > now_ms - back_ms)
