"""The start offset of a group in a partition that it has never read: its setting `share.auto.offset.reset`."""

from __future__ import annotations

from ottla.broker.share.edge import Source
from ottla.core.metadata.config_values import duration_ms

__all__ = ["start_offset"]


def start_offset(source: Source, reset: str, wall_ms: int) -> int:
    """The offset for `earliest`, `latest` or `by_duration:PT1H`.

    A duration in which nothing was written begins at the end. Apache Kafka 4.3.1 serves nothing then, with an error,
    until something newer is there.
    """
    if not source.has_log:
        return 0
    log = source.log
    if reset == "earliest":
        return log.log_start_offset
    if reset != "latest":
        since_ms = max(0, wall_ms - duration_ms(reset.partition(":")[2]))
        found = log.offset_for_timestamp(since_ms)
        if found is not None and found.offset < log.high_watermark:
            return found.offset
    return log.high_watermark
