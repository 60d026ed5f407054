"""Spark's readers of internal topics, from files or from a cluster, in batches and as a stream."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ottla.spark.clients import client_for
from ottla.spark.filters import Bounds
from ottla.spark.log.readers import log_tasks
from ottla.spark.notes import progress, warn
from ottla.spark.offsets import SourceOffset, TopicPartition
from ottla.spark.readers import RangeReader, RangeStreamReader
from ottla.spark.records.options import ClusterRecordOptions, PathRecordOptions, RecordTableOptions
from ottla.spark.records.tables import METADATA_TOPICS

if TYPE_CHECKING:
    import pyarrow as pa

    from ottla.spark.log.cluster import LogCluster
    from ottla.spark.log.plan import LogTask
    from ottla.spark.records.decode import DecodedRows, Decoder
    from ottla.spark.records.quorum import Quorum
    from ottla.spark.records.snapshots import MetadataSnapshot
    from ottla.spark.topic.cluster import Assigned, Cluster
    from ottla.spark.topic.plan import Task
    from ottla.spark.topic.stream_plan import StreamPlan

__all__ = ["ClusterRecordReader", "ClusterRecordStreamReader", "PathRecordReader", "PathRecordStreamReader"]

METADATA: Final = TopicPartition(METADATA_TOPICS[0], 0)
OPEN_END: Final = 1 << 62


def _decoder(options: RecordTableOptions, batch_rows: int) -> Decoder:
    from ottla.spark.records.decode import RecordDecoder
    from ottla.spark.records.json_rows import JsonDecoder

    if options.is_every:
        return JsonDecoder(options.values, batch_rows)
    return RecordDecoder(options.table, options.values, batch_rows)


def _newest(decoder: Decoder, decoded: Iterable[DecodedRows]) -> Iterator[pa.RecordBatch]:
    from ottla.spark.records.latest import Newest

    newest = Newest(decoder.schema)
    for each in decoded:
        newest.add(each)
    return newest.batches()


# --- files ------------------------------------------------------------------------------------------------------------


class _PathTasks:
    """The common part of both readers of files."""

    _options: PathRecordOptions

    def _cluster(self) -> LogCluster:
        from ottla.spark.log.cluster import LogCluster

        return LogCluster(replace(self._options, paths=self._options.directories))

    def _tasks_of(
        self, cluster: LogCluster, ranges: list[Task], *, is_from_start: bool, is_growing: bool
    ) -> list[LogTask | MetadataSnapshot]:
        """Pieces of the logs, and snapshots that have to be read before them."""
        snapshot = self._snapshot(cluster) if is_from_start else None
        if snapshot is not None:  # it replaces the log before its end offset
            ranges = [_from(each, snapshot.end_offset) if each.at == METADATA else each for each in ranges]
        wanted = [each for each in ranges if each.start < each.until]
        is_latest = self._options.is_latest
        logs = log_tasks(cluster, wanted, self._options, is_growing=is_growing, whole_partitions=is_latest)
        return [*logs] if snapshot is None else [snapshot, *logs]

    def _snapshot(self, cluster: LogCluster) -> MetadataSnapshot | None:
        from ottla.spark.records.snapshots import snapshot_before

        if METADATA.topic not in self._options.table_topics or not cluster.has(METADATA):
            return None
        return snapshot_before(cluster.view(METADATA).files)

    def _rows(self, task: LogTask | MetadataSnapshot) -> Iterator[pa.RecordBatch]:
        from ottla.spark.log.plan import LogTask

        decoder = _decoder(self._options, self._options.arrow_batch_rows)
        decoded = self._log_rows(task, decoder) if isinstance(task, LogTask) else _snapshot_rows(task, decoder)
        return _newest(decoder, decoded) if self._options.is_latest else (each.rows for each in decoded)

    def _log_rows(self, task: LogTask, decoder: Decoder) -> Iterator[DecodedRows]:
        from ottla.spark.log.read import TaskReport, read_columns
        from ottla.spark.records.decode import Source

        report = TaskReport()
        rules = self._options.read_rules(include_control=task.topic == METADATA.topic and self._options.has_control)
        source = Source(task.topic, task.partition)
        for columns, from_offset, until_offset in read_columns(task, rules, report):
            yield from decoder.batches(source, columns, from_offset, until_offset)
        progress(**report.figures(task))


def _from(task: Task, offset: int) -> Task:
    return task._replace(start=max(task.start, offset))


def _snapshot_rows(snapshot: MetadataSnapshot, decoder: Decoder) -> Iterator[DecodedRows]:
    from ottla.spark.records.decode import Source
    from ottla.spark.records.snapshots import read_snapshot

    for columns in read_snapshot(snapshot):
        yield from decoder.batches(Source(*METADATA), columns, -1, OPEN_END)


class PathRecordReader(_PathTasks, RangeReader[PathRecordOptions]):
    def _tasks(self, bounds: Bounds) -> list[LogTask | MetadataSnapshot]:
        from ottla.spark.records.snapshots import named_snapshots
        from ottla.spark.topic.plan import plan_batch

        named: list[LogTask | MetadataSnapshot] = [*named_snapshots(self._options.snapshots)]
        if not self._options.directories:
            return named
        cluster = self._cluster()
        ranges = plan_batch(cluster, self._options, bounds)
        is_from_start = self._options.starting(is_stream=False).where == "earliest"
        return named + self._tasks_of(cluster, ranges, is_from_start=is_from_start, is_growing=False)


class PathRecordStreamReader(_PathTasks, RangeStreamReader[PathRecordOptions]):
    def _make_plan(self) -> StreamPlan:
        from ottla.spark.topic.stream_plan import StreamPlan

        return StreamPlan(self._cluster(), self._options)

    def _tasks_between(self, start: SourceOffset, end: SourceOffset) -> list[LogTask | MetadataSnapshot]:
        from ottla.spark.topic.stream_plan import StreamPlan

        cluster = self._cluster()
        ranges = StreamPlan(cluster, self._options).tasks_between(start, end)
        is_first = end.start is not None  # only the first batch has the start of the query
        is_from_start = is_first and self._options.starting(is_stream=True).where == "earliest"
        return self._tasks_of(cluster, ranges, is_from_start=is_from_start, is_growing=True)


# --- clusters ---------------------------------------------------------------------------------------------------------


class _ClusterTasks:
    """The common part of both readers of clusters."""

    _options: ClusterRecordOptions

    def _cluster(self) -> Cluster:
        if not self._options.is_metadata:
            return _InternalTopics(self._options)
        from ottla.spark.records.quorum import QuorumCluster

        return QuorumCluster(self._quorum())

    def _quorum(self) -> Quorum:
        from ottla.spark.records.quorum import Quorum

        return Quorum(lambda: client_for(self._options), self._options.poll_timeout_ms)

    def _rows(self, task: Task) -> Iterator[pa.RecordBatch]:
        decoder = _decoder(self._options, self._options.arrow_batch_rows)
        decoded = self._decoded(task, decoder)
        return _newest(decoder, decoded) if self._options.is_latest else (each.rows for each in decoded)

    def _decoded(self, task: Task, decoder: Decoder) -> Iterator[DecodedRows]:
        from ottla.spark.records.decode import Source
        from ottla.spark.topic.task_reader import task_columns

        # The records of a snapshot are before the range.
        first = -1 if self._options.is_metadata and task.start == task.log_start else task.start
        columns = (
            self._quorum().columns(max(first, 0), task.until)
            if self._options.is_metadata
            else task_columns(lambda: client_for(self._options), task, self._options)
        )
        for each in columns:
            yield from decoder.batches(Source(*task.at), each, first, task.until)


class _InternalTopics:
    """A cluster whose internal topics may not exist yet: the first group or transaction creates them."""

    def __init__(self, options: ClusterRecordOptions) -> None:
        from ottla.spark.topic.cluster import LiveCluster

        self._live = LiveCluster(lambda: client_for(options), options)
        self.earliest = self._live.earliest
        self.latest = self._live.latest
        self.at_time = self._live.at_time

    def assigned(self) -> Assigned:
        found = self._live.assigned()
        for name in found.missing:
            warn(f"{name} does not exist (yet): it has no records")
        return found._replace(missing=())


class ClusterRecordReader(_ClusterTasks, RangeReader[ClusterRecordOptions]):
    def _tasks(self, bounds: Bounds) -> list[Task]:
        from ottla.spark.topic.plan import plan_batch

        options = self._options
        if options.is_latest:  # one task must see all records of a key
            options = replace(options, min_partitions=None, max_records_per_partition=None)
        return plan_batch(self._cluster(), options, bounds)


class ClusterRecordStreamReader(_ClusterTasks, RangeStreamReader[ClusterRecordOptions]):
    def _make_plan(self) -> StreamPlan:
        from ottla.spark.topic.stream_plan import StreamPlan

        return StreamPlan(self._cluster(), self._options)
