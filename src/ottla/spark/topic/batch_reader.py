"""Spark's batch reader of topics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ottla.spark.clients import client_for
from ottla.spark.filters import Bounds
from ottla.spark.readers import RangeReader, TakesFilters
from ottla.spark.topic.options import TopicOptions

if TYPE_CHECKING:
    import pyarrow as pa

    from ottla.spark.topic.plan import Task

__all__ = ["PlainReader", "PushdownReader", "rows_of"]


def rows_of(task: Task, options: TopicOptions) -> Iterator[pa.RecordBatch]:
    """The rows of a task, in an executor's worker."""
    from ottla.spark.topic.task_reader import read_task

    return read_task(lambda: client_for(options), task, options)


class PlainReader(RangeReader[TopicOptions]):
    def _tasks(self, bounds: Bounds) -> list[Task]:
        from ottla.spark.topic.cluster import LiveCluster
        from ottla.spark.topic.plan import plan_batch

        cluster = LiveCluster(lambda: client_for(self._options), self._options)
        return plan_batch(cluster, self._options, bounds)

    def _rows(self, task: Task) -> Iterator[pa.RecordBatch]:
        return rows_of(task, self._options)


class PushdownReader(TakesFilters, PlainReader):
    pass
