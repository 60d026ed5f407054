"""The schedule: when each kind is probed next. The caller passes the time; nothing here waits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["Schedule"]

NEVER_MS: Final = 1 << 62


class Schedule:
    """Probes of one kind run on its interval, never two at once. A missed probe is not made up for. After a probe there
    is a pause at least as long as the probe took, so that no kind is probed more than half of the time."""

    def __init__(
        self, start_ms: int, intervals_s: Mapping[str, float], after: Mapping[str, frozenset[str]] | None = None
    ) -> None:
        self._every_ms = {kind: max(1, round(seconds * 1000)) for kind, seconds in intervals_s.items()}
        self._due_ms = dict.fromkeys(intervals_s, start_ms)
        self._begun_ms: dict[str, int] = {}
        self._done: set[str] = set()
        self._after = after or {}

    def due(self, now_ms: int) -> list[str]:
        """The kinds to probe now; they count as begun."""
        kinds = [kind for kind, due_ms in self._due_ms.items() if due_ms <= now_ms and self._may_begin(kind)]
        for kind in kinds:
            self._begun_ms[kind] = now_ms
            behind_ms = now_ms - self._due_ms[kind]
            self._due_ms[kind] += (behind_ms // self._every_ms[kind] + 1) * self._every_ms[kind]
        return kinds

    def done(self, kind: str, now_ms: int) -> None:
        """The probe of a kind has ended, successfully or not."""
        took_ms = now_ms - self._begun_ms.pop(kind)
        self._due_ms[kind] = max(self._due_ms[kind], now_ms + took_ms)
        self._done.add(kind)

    def next_ms(self) -> int:
        """When the next kind is due, apart from kinds that wait for a probe to end."""
        return min((due_ms for kind, due_ms in self._due_ms.items() if self._may_begin(kind)), default=NEVER_MS)

    def probed_all(self) -> bool:
        """Whether every kind was probed at least once."""
        return self._done >= self._due_ms.keys()

    def _may_begin(self, kind: str) -> bool:
        awaited = self._after.get(kind, frozenset()) & self._due_ms.keys()
        return kind not in self._begun_ms and awaited <= self._done
