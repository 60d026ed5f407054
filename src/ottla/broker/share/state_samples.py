"""Numbers about the state of share partitions, for the page of metrics: what is kept here, and what it took to keep it.

What the coordinators write and load is told with that of all coordinators.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, cast

from ottla.core.share.state import ShareStateCoordinator

if TYPE_CHECKING:
    from ottla.broker.coordinators.runtime import Runtime

__all__ = ["StateCounts", "state_samples"]

PREFIX: Final = "ottla_share_state"
_KAFKA_PREFIX: Final = "kafka_server_share_coordinator_metrics"
_WRITE: Final = "WriteShareGroupState"

Sample = tuple[str, dict[str, object], float]


class StateCounts:
    """What was asked of share coordinators, and how that went."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        """By the name of the request; each share partition counts."""
        self.took_ms: Counter[str] = Counter()
        self.retries = 0
        self.failures: Counter[str] = Counter()
        """By the name of the error that was the last word."""


def state_samples(runtime: Runtime, counts: StateCounts) -> Iterator[Sample]:
    cores = [cast(ShareStateCoordinator, shard.core) for shard in runtime.shards.values()]
    yield f"{PREFIX}_partitions", {}, sum(len(core.kept) for core in cores)
    yield f"{PREFIX}_ranges", {}, sum(len(kept.batches) for core in cores for kept in core.kept.values())
    for name, count in sorted(counts.asked.items()):
        yield f"{PREFIX}_requests_total", {"request": name}, count
        yield f"{PREFIX}_request_seconds_total", {"request": name}, counts.took_ms[name] / 1000
    writes = counts.asked[_WRITE]
    yield f"{_KAFKA_PREFIX}_write_total", {}, writes
    yield f"{_KAFKA_PREFIX}_write_latency_avg", {}, counts.took_ms[_WRITE] / max(writes, 1)
    yield f"{PREFIX}_retries_total", {}, counts.retries
    for name, count in sorted(counts.failures.items()):
        yield f"{PREFIX}_failures_total", {"error": name}, count
