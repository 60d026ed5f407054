"""What has become of records, counted; and how long members held them. Numbers that only grow."""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

from ottla.core.share.partition.states import AcknowledgeType

__all__ = ["HELD_BOUNDS_MS", "Tally"]

HELD_BOUNDS_MS: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000, 300_000)


class Tally:
    """Of one group, or of whatever share partitions share it. All counts are of records, or rather offsets."""

    __slots__ = ("acknowledged", "delivered", "expired", "held_counts", "held_ms", "redelivered", "released")

    def __init__(self) -> None:
        self.delivered = 0
        self.redelivered = 0
        """Of those delivered, the ones that had been delivered before."""
        self.acknowledged = [0] * len(AcknowledgeType)
        """By type; a renewal when it is made, the others when they are written."""
        self.released = 0
        """By the end of a session."""
        self.expired = 0
        """By the end of their locks."""
        self.held_counts = [0] * (len(HELD_BOUNDS_MS) + 1)
        self.held_ms = 0

    def deliver(self, count: int, delivery_count: int) -> None:
        self.delivered += count
        if delivery_count > 1:
            self.redelivered += count

    def hold(self, ms: int, count: int) -> None:
        """So many records were held for so long, and are no more."""
        self.held_counts[bisect_left(HELD_BOUNDS_MS, ms)] += count
        self.held_ms += ms * count
