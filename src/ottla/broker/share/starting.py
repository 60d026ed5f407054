"""Where a group begins with a partition that it has never read: its setting `share.auto.offset.reset`."""

from __future__ import annotations

import re
from typing import Final

from ottla.broker.share.edge import Source

__all__ = ["duration_ms", "start_offset"]

_DURATION: Final = re.compile(
    r"\+?P(?:([+-]?\d+)D)?(?:T(?:([+-]?\d+)H)?(?:([+-]?\d+)M)?(?:([+-]?\d+)(?:[.,](\d{1,9}))?S)?)?"
)
_PARTS_MS: Final = (86_400_000, 3_600_000, 60_000, 1_000)


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


def duration_ms(text: str) -> int:
    """A duration as ISO 8601 has it; ValueError for anything else."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a duration")
    *whole, fraction = match.groups()
    ms = sum(int(part) * unit_ms for part, unit_ms in zip(whole, _PARTS_MS, strict=True) if part)
    rest_ms = int((fraction or "").ljust(3, "0")[:3])
    return ms - rest_ms if (whole[3] or "").startswith("-") else ms + rest_ms
