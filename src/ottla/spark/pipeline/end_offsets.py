"""The end offsets of partitions over time, from their own logs. Lag is computed with them where there are no samples.

They are read as a log grows. For closed segments the time index gives them at little cost; what is small, and the end
of each log, is read header by header. Times are the producers' timestamps, unless the topic uses LogAppendTime.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from ottla.spark.log.directory import PartitionFiles, list_partition
from ottla.spark.log.segments import Segment
from ottla.spark.pipeline.event_decoder import end_events

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["STEP_MS", "LogPosition", "read_ends"]

STEP_MS: Final = 1_000
"""The least distance of two points that are read at once."""
WALK_BYTES: Final = 1 << 20
"""So much of a segment is read header by header."""

Point = tuple[int, int]
"""A time, and the end offset at that time."""


class LogPosition(NamedTuple):
    """How far the log of a partition was read."""

    topic_id: str | None = None
    base_offset: int = -1
    """Of the segment that was read last."""
    position: int = 0
    """In this segment."""
    end_offset: int = 0
    newest_ms: int = -1


def read_ends(
    cluster: str, partitions: Sequence[tuple[str, str, int]], known: Mapping[str, LogPosition]
) -> tuple[list[pa.RecordBatch], dict[str, LogPosition]]:
    """The points after known positions, as events, and the new positions of the logs that have grown. Partitions are
    given as directory, topic and number; positions by directory."""
    batches: list[pa.RecordBatch] = []
    moved: dict[str, LogPosition] = {}
    for uri, topic, partition in partitions:
        try:
            files = list_partition(uri)
        except FileNotFoundError:  # deleted a moment ago
            continue
        before = _before(files, known.get(uri))
        points, after = _points_after(files, before)
        if after != before:
            moved[uri] = after
        if points:
            times, ends = _thinned(points, before.newest_ms)
            moved[uri] = after._replace(newest_ms=int(times[-1]))
            batches.append(end_events(cluster, topic, files.topic_id, partition, times, ends))
    return batches, moved


def _before(files: PartitionFiles, known: LogPosition | None) -> LogPosition:
    """The position from which a log is read; its beginning, if it was made anew or truncated."""
    anew = LogPosition(files.topic_id)
    if known is None or known.topic_id != files.topic_id or not files.segments:
        return anew
    last = files.segments[-1]
    return anew if (last.base_offset, last.size_bytes) < (known.base_offset, known.position) else known


def _points_after(files: PartitionFiles, reached: LogPosition) -> tuple[list[Point], LogPosition]:
    points: list[Point] = []
    for each in files.segments:
        if each.base_offset > reached.base_offset:
            reached = reached._replace(base_offset=each.base_offset, position=0)
        if each.base_offset == reached.base_offset and each.size_bytes > reached.position:
            with Segment(files, each) as segment:
                reached = _read_segment(segment, each is files.segments[-1], reached, points)
    return points, reached


def _read_segment(segment: Segment, is_last: bool, reached: LogPosition, points: list[Point]) -> LogPosition:
    """Add the points of a segment after a position, and return the new position."""
    start = reached.position
    if segment.size_bytes - start > WALK_BYTES:
        times, offsets = segment.time_entries
        is_new = offsets >= reached.end_offset
        points += zip(times[is_new].tolist(), (offsets[is_new] + 1).tolist(), strict=True)
        if is_new.any():
            reached = reached._replace(end_offset=int(offsets[-1]) + 1)
            if not is_last:
                return reached._replace(position=segment.size_bytes)
            start = max(start, segment.position_before(int(offsets[-1])))
    for position, header in segment.headers(start):
        reached = reached._replace(position=position + header.size_bytes, end_offset=header.next_offset)
        if header.max_timestamp >= 0:
            points.append((header.max_timestamp, header.next_offset))
    return reached


def _thinned(found: list[Point], newest_ms: int) -> tuple[Any, Any]:
    """Times and ends of the points that are kept."""
    points = np.array(found, np.int64)
    # End offsets only grow, and so must the times at which they were reached.
    times, ends = np.maximum(np.maximum.accumulate(points[:, 0]), newest_ms), points[:, 1]
    keep = np.append(np.diff(times // STEP_MS) > 0, True)
    return times[keep], ends[keep]
