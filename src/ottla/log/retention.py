"""Retention: which of the oldest segments are deleted.

From the oldest on, and never past the first that stays: a segment goes if all of it lies below the log start, or, where
the topic's policy says delete, if the log is larger than `retention.bytes` even without it, or its newest record is
older than `retention.ms`. Nothing above the high watermark goes, and a log is never left without a segment: an active
one that is due is closed first, and the log goes on, empty, at its end. What recovery has cut and kept goes when the
log start has passed it.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from ottla.log.partition import Partition
from ottla.log.segment import Segment

__all__ = ["Expired", "Reason", "apply_retention", "expired_segments"]


class Reason(Enum):
    LOG_START = "below the log start"
    SIZE = "retention.bytes"
    TIME = "retention.ms"


class Expired(NamedTuple):
    """How many of the oldest segments go, and which rule wanted the last of them."""

    segment_count: int
    reason: Reason | None


def apply_retention(partition: Partition, now_ms: int) -> Expired:
    """Delete expired segments; returns which and why."""
    partition.write()  # or what is staged, which may be new, would go with the active segment
    expired = expired_segments(partition, now_ms)
    if expired.segment_count:
        partition.delete_oldest_segments(expired.segment_count, now_ms)
    partition.remove_passed_cuts(now_ms)
    return expired


def expired_segments(partition: Partition, now_ms: int) -> Expired:
    count, reason = 0, None
    surplus = _surplus_bytes(partition)
    for index, segment in enumerate(partition.segments):
        if not _is_removable(partition, index):
            break
        found = _reason(partition, index, segment, surplus, now_ms)
        if found is None:
            break
        surplus -= segment.size_bytes
        count, reason = index + 1, found
    return Expired(count, reason)


def _surplus_bytes(partition: Partition) -> int:
    """What the log has beyond its allowed size; below zero while there is room, or if size does not matter."""
    config = partition.config
    if not config.is_deleted or config.retention_bytes < 0:
        return -1
    return partition.size_bytes - config.retention_bytes


def _is_removable(partition: Partition, index: int) -> bool:
    """Whether all of a segment is below the high watermark, and there is something to remove."""
    is_last = index + 1 == len(partition.segments)
    if is_last and partition.segments[index].size_bytes == 0:
        return False
    return _end_offset(partition, index) <= partition.high_watermark


def _end_offset(partition: Partition, index: int) -> int:
    is_last = index + 1 == len(partition.segments)
    return partition.log_end_offset if is_last else partition.segments[index + 1].base_offset


def _reason(partition: Partition, index: int, segment: Segment, surplus: int, now_ms: int) -> Reason | None:
    is_last = index + 1 == len(partition.segments)
    if not is_last and _end_offset(partition, index) <= partition.log_start_offset:
        return Reason.LOG_START
    if not partition.config.is_deleted:
        return None
    if surplus >= segment.size_bytes:
        return Reason.SIZE
    if partition.config.retention_ms >= 0 and now_ms - newest_ms(segment) > partition.config.retention_ms:
        return Reason.TIME
    return None


def newest_ms(segment: Segment) -> int:
    """The time of a segment's newest record; of a segment without timestamps, of its file."""
    timestamp = segment.max_timestamp()
    return timestamp if timestamp >= 0 else segment.modified_ms()
