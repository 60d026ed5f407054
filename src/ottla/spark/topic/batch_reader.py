"""Topics as a batch: Spark's side of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from ottla.spark.clients import client_for, one_sentence
from ottla.spark.filters import EVERYTHING, bounds_of

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter

    from ottla.spark.topic.options import TopicOptions

__all__ = ["PlainReader", "PushdownReader", "read_partition"]


def read_partition(partition: InputPartition, options: TopicOptions) -> Iterator[Any]:
    """The rows of a task, in an executor's worker."""
    from ottla.spark.topic.reading import read_task

    if partition.value is not None:  # what Spark makes of an empty plan
        with one_sentence():
            yield from read_task(lambda: client_for(options), partition.value, options)


class PlainReader(DataSourceReader):
    """Reads everything between start and end."""

    def __init__(self, options: TopicOptions) -> None:
        self._options = options
        self._bounds = EVERYTHING

    def partitions(self) -> Sequence[InputPartition]:
        from ottla.spark.topic.cluster import LiveCluster
        from ottla.spark.topic.plan import plan_batch

        with one_sentence():
            cluster = LiveCluster(lambda: client_for(self._options), self._options)
            return [InputPartition(each) for each in plan_batch(cluster, self._options, self._bounds)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return read_partition(partition, self._options)


class PushdownReader(PlainReader):
    """Reads only where rows can lie that the query's filters let through. A class of its own, as Spark refuses readers
    with this method when `spark.sql.python.filterPushdown.enabled` is off."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        self._bounds = bounds_of(filters)
        return filters  # Spark applies them again: a plan may be too wide
