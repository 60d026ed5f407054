"""Spark's readers of segment files, in batches and as a stream."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ottla.spark.filters import Bounds
from ottla.spark.log.options import LogOptions, PathOptions
from ottla.spark.notes import progress
from ottla.spark.offsets import SourceOffset
from ottla.spark.readers import OptionsT, RangeReader, RangeStreamReader, TakesFilters

if TYPE_CHECKING:
    import pyarrow as pa

    from ottla.spark.log.cluster import LogCluster
    from ottla.spark.log.plan import LogTask
    from ottla.spark.log.view import CheckedEnd
    from ottla.spark.topic.plan import Task
    from ottla.spark.topic.stream_plan import StreamPlan

__all__ = ["FileStreamReader", "LogPushdownReader", "LogReader", "LogStreamReader", "log_tasks"]


def log_tasks(
    cluster: LogCluster,
    ranges: Iterable[Task],
    options: PathOptions,
    *,
    is_growing: bool = False,
    whole_partitions: bool = False,
) -> list[LogTask]:
    """The tasks for ranges of partitions."""
    from ottla.spark.log.plan import PlanRules, plan_partition
    from ottla.spark.log.storage import is_remote

    found: list[LogTask] = []
    for each in ranges:
        view = cluster.view(each.at)
        rules = PlanRules(
            task_bytes=options.task_bytes,
            on_corrupt=options.on_corrupt,
            is_committed=options.is_committed,
            whole_partitions=whole_partitions,
            may_walk=not is_remote(view.files.uri),
            is_growing=is_growing,
        )
        found += plan_partition(view, each.start, each.until, rules)
    return found


def _rows(task: LogTask, options: LogOptions) -> Iterator[pa.RecordBatch]:
    from ottla.spark.log.read import TaskReport, read_columns
    from ottla.spark.rows import RowMaker

    maker = RowMaker(
        task.topic,
        task.partition,
        options.columns,
        task.topic_id,
        batch_rows=options.arrow_batch_rows,
        batch_bytes=options.arrow_batch_bytes,
    )
    report = TaskReport()
    for columns, from_offset, until_offset in read_columns(task, options.read_rules(), report):
        yield from maker.batches(columns, from_offset, until_offset)
    if options.report_tasks:
        progress(**report.figures(task))


class LogReader(RangeReader[LogOptions]):
    def _tasks(self, bounds: Bounds) -> list[LogTask]:
        from ottla.spark.log.cluster import LogCluster
        from ottla.spark.topic.plan import plan_batch

        cluster = LogCluster(self._options)
        return log_tasks(cluster, plan_batch(cluster, self._options, bounds), self._options)

    def _rows(self, task: LogTask) -> Iterator[pa.RecordBatch]:
        return _rows(task, self._options)


class LogPushdownReader(TakesFilters, LogReader):
    pass


class FileStreamReader(RangeStreamReader[OptionsT]):
    """A stream from files. It looks for new records each time that Spark asks, and remembers how far it has checked
    each log."""

    def __init__(self, options: OptionsT) -> None:
        super().__init__(options)
        self._checked: dict[str, CheckedEnd] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_checked": {}}

    def _make_plan(self) -> StreamPlan:
        from ottla.spark.topic.stream_plan import StreamPlan

        return StreamPlan(self._cluster(), self._options)

    def _cluster(self) -> LogCluster:
        raise NotImplementedError


class LogStreamReader(FileStreamReader[LogOptions]):
    def _cluster(self) -> LogCluster:
        from ottla.spark.log.cluster import LogCluster

        return LogCluster(self._options, self._checked)

    def _tasks_between(self, start: SourceOffset, end: SourceOffset) -> list[LogTask]:
        from ottla.spark.topic.stream_plan import StreamPlan

        # A cluster of its own, so that ranges and files come from one listing of the directories.
        cluster = self._cluster()
        ranges = StreamPlan(cluster, self._options).tasks_between(start, end)
        return log_tasks(cluster, ranges, self._options, is_growing=True)

    def _rows(self, task: LogTask) -> Iterator[pa.RecordBatch]:
        return _rows(task, self._options)
