"""Numbers about share groups, for the page of metrics. Groups beyond the first few hundred are one: `OTHERS`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import accumulate
from typing import Final

from ottla.broker.share.leader import ShareLeader
from ottla.core.share.partition import Tally
from ottla.core.share.partition.states import AcknowledgeType
from ottla.core.share.partition.tally import HELD_BOUNDS_MS

__all__ = ["samples"]

PREFIX: Final = "ottla_share"

Sample = tuple[str, dict[str, object], float]


def samples(leader: ShareLeader) -> Iterator[Sample]:
    yield f"{PREFIX}_sessions", {}, len(leader.sessions)
    yield from _in_memory(leader)
    for group_id, tally in leader.counts.by_group.items():
        yield from _counted(group_id, tally)


def _in_memory(leader: ShareLeader) -> Iterator[Sample]:
    partitions: Counter[str] = Counter()
    in_flight: Counter[str] = Counter()
    for led in leader:
        group_id = leader.counts.name_of(led.key.group_id)
        partitions[group_id] += 1
        in_flight[group_id] += led.core.window.in_flight_count
    for group_id, count in partitions.items():
        yield f"{PREFIX}_partitions", {"group": group_id}, count
        yield f"{PREFIX}_records_in_flight", {"group": group_id}, in_flight[group_id]


def _counted(group_id: str, tally: Tally) -> Iterator[Sample]:
    labels: dict[str, object] = {"group": group_id}
    yield f"{PREFIX}_records_delivered_total", labels, tally.delivered
    yield f"{PREFIX}_records_redelivered_total", labels, tally.redelivered
    for kind in AcknowledgeType:
        typed = {**labels, "type": kind.name.lower()}
        yield f"{PREFIX}_records_acknowledged_total", typed, tally.acknowledged[kind]
    yield f"{PREFIX}_session_releases_total", labels, tally.released
    yield f"{PREFIX}_lock_expiries_total", labels, tally.expired
    yield from _held(labels, tally)


def _held(labels: dict[str, object], tally: Tally) -> Iterator[Sample]:
    """How long members held records, as a histogram."""
    bounds = [*(bound_ms / 1000 for bound_ms in HELD_BOUNDS_MS), "+Inf"]
    counts = list(accumulate(tally.held_counts))
    for bound, count in zip(bounds, counts, strict=True):
        yield f"{PREFIX}_lock_seconds_bucket", {**labels, "le": bound}, count
    yield f"{PREFIX}_lock_seconds_sum", labels, tally.held_ms / 1000
    yield f"{PREFIX}_lock_seconds_count", labels, counts[-1]
