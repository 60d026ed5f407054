"""The queue of samples that are not written yet: numbered, in order and bounded."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

import msgspec

from ottla.health.samples import Sample
from ottla.observe.changes import ToWrite

__all__ = ["ROOM", "Outbox", "Stamp"]

ROOM: Final = 10_000


class Stamp:
    """Turns results into samples, with the observer's name and a number that counts up in this run."""

    def __init__(self, observer: str) -> None:
        self.observer = observer
        self._next_seq = 0

    def sample(self, to_write: ToWrite, *, at_ms: int, cluster: str, took_ms: float = 0.0) -> Sample:
        result = to_write.result
        body = None if result.fact is None else msgspec.to_builtins(result.fact)
        made = Sample(
            kind=result.kind, ts=at_ms, cluster=cluster, observer=self.observer, seq=self._next_seq,
            entity=result.entity,
            took_ms=round(float(took_ms), 1), error=result.error, heartbeat=to_write.is_heartbeat, body=body,
        )  # fmt: skip
        self._next_seq += 1
        return made


class Outbox:
    """When it is full, the oldest samples are dropped; the next sample that is written says how many."""

    def __init__(self, room: int = ROOM) -> None:
        self._room = room
        self._waiting: deque[Sample] = deque()
        self._dropped = 0

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def dropped(self) -> int:
        """How many were dropped that no written sample has counted yet."""
        return self._dropped

    def put(self, sample: Sample) -> None:
        self._waiting.append(sample)
        self._make_room()

    def take(self, count: int) -> list[Sample]:
        """The oldest samples, to be written now."""
        taken = [self._waiting.popleft() for _ in range(min(count, len(self._waiting)))]
        if taken and self._dropped:
            taken[0] = msgspec.structs.replace(taken[0], dropped=taken[0].dropped + self._dropped)
            self._dropped = 0
        return taken

    def put_back(self, samples: Sequence[Sample]) -> None:
        """Put samples that could not be written back at the front."""
        self._waiting.extendleft(reversed(samples))
        self._make_room()

    def _make_room(self) -> None:
        while len(self._waiting) > self._room:
            self._dropped += 1 + self._waiting.popleft().dropped
