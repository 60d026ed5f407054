"""The end offsets of partitions over time, from their own logs. Lag is computed with them where there are no samples.

For closed segments the time index gives them at little cost; only the end of each log is read batch by batch. Times are
the producers' timestamps, unless the topic uses LogAppendTime.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ottla.spark.log.directory import list_partition
from ottla.spark.log.segments import Segment

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ENDS_DDL", "ends_table"]

ENDS_DDL: Final = "cluster string, topic string, partition int, ts bigint, end bigint"
STEP_MS: Final = 1_000
"""The least distance of two points."""
WALK_BYTES: Final = 1 << 20
"""Segments up to this size are read header by header."""


def ends_table(cluster: str, partitions: Sequence[tuple[str, str, int]]) -> pa.Table:
    """The points of all partitions, given as directory, topic and number."""
    import pyarrow as pa

    types = [("cluster", pa.string()), ("topic", pa.string()), ("partition", pa.int32()), ("ts", pa.int64())]
    schema = pa.schema([*types, ("end", pa.int64())])
    batches = []
    for uri, topic, partition in partitions:
        times, ends = _points(uri)
        count = len(times)
        columns = [
            pa.repeat(cluster, count),
            pa.repeat(topic, count),
            pa.repeat(pa.scalar(partition, pa.int32()), count),
        ]
        batches.append(pa.RecordBatch.from_arrays([*columns, pa.array(times), pa.array(ends)], schema=schema))
    return pa.Table.from_batches(batches, schema=schema)


def _points(uri: str) -> tuple[Any, Any]:
    try:
        files = list_partition(uri)
    except FileNotFoundError:  # deleted a moment ago
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    found = [
        point for each in files.segments for point in _of_segment(Segment(files, each), each is files.segments[-1])
    ]
    points = np.array(found, np.int64).reshape(-1, 2)
    # End offsets only grow, and so must the times at which they were reached.
    times, ends = np.maximum.accumulate(points[:, 0]), points[:, 1]
    keep = np.append(np.diff(times // STEP_MS) > 0, True)[: len(times)]
    return times[keep], ends[keep]


def _of_segment(segment: Segment, is_last: bool) -> Iterator[tuple[int, int]]:
    with segment:
        start = 0
        if segment.size_bytes > WALK_BYTES:
            times, offsets = segment.time_entries
            yield from zip(times.tolist(), (offsets + 1).tolist(), strict=True)
            if not is_last:
                return
            start = segment.position_before(int(offsets[-1])) if len(offsets) else 0
        for _, header in segment.headers(start):
            if header.max_timestamp >= 0:
                yield header.max_timestamp, header.next_offset
