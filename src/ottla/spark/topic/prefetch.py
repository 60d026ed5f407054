"""Streams whose small batches are read on the driver, while Spark plans them.

A task in Python costs some tens of milliseconds, however little it reads. Spark has a way around that for its simple
readers (`SimpleDataSourceStreamReader`): the process on the driver sends the rows together with the plan, and the task
reads them without Python. A reader of ranges takes this way for single batches: while it has rows for Spark, it shows
the class by which Spark recognizes a simple reader. A task that does not find the rows reads the range itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pyspark.sql import datasource_internal

from ottla.client.errors import ClientError
from ottla.spark.errors import OttlaSparkError
from ottla.spark.offsets import SourceOffset
from ottla.spark.readers import RangeStreamReader
from ottla.spark.topic.options import TopicOptions
from ottla.spark.topic.plan import JoinedTask, join_tasks
from ottla.wire import WireError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["JoiningStreamReader", "small_batch"]

OptionsT = TypeVar("OptionsT", bound=TopicOptions)

MAX_BYTES: Final = 1 << 20
SIMPLE_READER: Final[type | None] = getattr(datasource_internal, "_SimpleStreamReaderWrapper", None)


class JoiningStreamReader(RangeStreamReader[OptionsT]):
    """A task reads small ranges of several partitions; the rows of a small batch go to Spark with its plan."""

    _prefetched: Sequence[pa.RecordBatch] | None = None

    def _tasks_between(self, start: SourceOffset, end: SourceOffset) -> list[JoinedTask]:
        least = self._options.joined_records
        tasks = join_tasks(self._plan.tasks_between(start, end), least)
        self._prefetched = small_batch(tasks, least, self._rows)
        return tasks

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(self) if self._prefetched is None or SIMPLE_READER is None else SIMPLE_READER

    def getCache(self, start: dict[str, Any], end: dict[str, Any]) -> Iterator[pa.RecordBatch]:
        """Called by Spark right after `partitions`, for the same batch."""
        found, self._prefetched = self._prefetched, None
        return iter(found or ())


def small_batch(
    tasks: Sequence[JoinedTask], max_records: int, rows_of: Callable[[JoinedTask], Iterator[pa.RecordBatch]]
) -> Sequence[pa.RecordBatch] | None:
    """The rows of a batch of one task with few records and bytes; None if a task should read them."""
    if len(tasks) != 1 or sum(part.size for part in tasks[0].parts) > max_records:
        return None
    found: list[pa.RecordBatch] = []
    size = 0
    try:
        for batch in rows_of(tasks[0]):
            found.append(batch)
            size += batch.nbytes
            if size > MAX_BYTES:
                return None
    except (ClientError, WireError, OttlaSparkError, OSError):
        return None  # a task meets the same error, and Spark repeats tasks
    return found
