"""The names of recently deleted topics, which Metadata requests do not create again.

Clients that used a deleted topic ask for its metadata at once, and so do tools that check the deletion. If such a
request created the topic again, the deletion would never be seen.
"""

from __future__ import annotations

from typing import Final

from ottla.broker.loop.clock import Clock
from ottla.core.metadata.image import Changes

__all__ = ["REMEMBERED_MS", "DeletedTopics"]

REMEMBERED_MS: Final = 500
"""Enough for the deletion to reach the disk and for its answer to reach the client. A producer that goes on writing to
the topic waits so long; most ask again every 100 ms, aiokafka without a pause."""


class DeletedTopics:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._deleted_at_ms: dict[str, int] = {}

    def __contains__(self, name: object) -> bool:
        return name in self._deleted_at_ms and self._is_recent(self._deleted_at_ms[name])

    def __len__(self) -> int:
        return len(self._deleted_at_ms)

    def _is_recent(self, deleted_at_ms: int) -> bool:
        return self._clock.monotonic_ms() - deleted_at_ms < REMEMBERED_MS

    def follow(self, changes: Changes) -> None:
        if changes.topics_deleted:
            kept = {name: at_ms for name, at_ms in self._deleted_at_ms.items() if self._is_recent(at_ms)}
            now_ms = self._clock.monotonic_ms()
            self._deleted_at_ms = kept | {topic.name: now_ms for topic in changes.topics_deleted.values()}
