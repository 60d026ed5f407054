"""How often a share group is given records again, minute by minute, from what the rules remember of its deliveries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from ottla.health.share_history import BUCKET_MS, Bucket, ShareGroupHistory
from ottla.observe.series_history import Point

__all__ = ["SharePace", "pace_of"]

MINUTE_MS: Final = 60_000
HOUR_MS: Final = 3_600_000


class SharePace(NamedTuple):
    """What happened in the minute before each point."""

    redelivered: list[Point]
    expired: list[Point] | None
    """Locks; None where no broker tells of them."""


def pace_of(history: ShareGroupHistory | None, now_ms: int) -> SharePace:
    if history is None:
        return SharePace([], None)
    redelivered = _minutes(history, now_ms, lambda bucket: bucket.redeliveries)
    expired = _minutes(history, now_ms, lambda bucket: bucket.expired) if history.has_metrics else None
    return SharePace(redelivered, expired)


def _minutes(history: ShareGroupHistory, now_ms: int, count: Callable[[Bucket], int]) -> list[Point]:
    """A point every ten seconds of the last hour. Ten seconds without a delivery have no bucket."""
    buckets = history.deliveries.buckets
    if not buckets:
        return []
    begin_ms = max(min(buckets), (now_ms - HOUR_MS) // BUCKET_MS * BUCKET_MS)
    ends = range(begin_ms + BUCKET_MS, now_ms + 1, BUCKET_MS)
    return [
        Point(end, sum(count(buckets[at]) for at in range(end - MINUTE_MS, end, BUCKET_MS) if at in buckets))
        for end in ends
    ]
