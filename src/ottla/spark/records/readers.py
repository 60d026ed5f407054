"""Spark's readers of internal topics, from files or from a cluster, in batches and as a stream."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.spark.clients import client_for
from ottla.spark.filters import EVERYTHING, Bounds
from ottla.spark.log.readers import FileStreamReader, log_tasks
from ottla.spark.notes import progress, warn
from ottla.spark.offsets import SourceOffset, TopicPartition
from ottla.spark.readers import RangeReader, TakesFilters
from ottla.spark.records.options import ClusterRecordOptions, PathRecordOptions, RecordRangeOptions
from ottla.spark.records.tables import METADATA_TOPICS
from ottla.spark.topic.prefetch import JoiningStreamReader

if TYPE_CHECKING:
    import pyarrow as pa

    from ottla.spark.log.cluster import LogCluster
    from ottla.spark.log.plan import LogTask
    from ottla.spark.log.view import CheckedEnd
    from ottla.spark.records.decode import DecodedRows, Decoder, Source
    from ottla.spark.records.quorum import Quorum
    from ottla.spark.records.snapshots import MetadataSnapshot
    from ottla.spark.topic.cluster import Assigned, Cluster
    from ottla.spark.topic.plan import JoinedTask, Task
    from ottla.spark.topic.stream_plan import StreamPlan
    from ottla.wire.columns import Columns

    Found = tuple[Source, Columns, int, int]
    """Records of a partition, and the range of offsets that counts."""

__all__ = [
    "ClusterRecordPushdownReader",
    "ClusterRecordReader",
    "ClusterRecordStreamReader",
    "PathRecordPushdownReader",
    "PathRecordReader",
    "PathRecordStreamReader",
]

METADATA: Final = TopicPartition(METADATA_TOPICS[0], 0)
OPEN_END: Final = 1 << 62


class _Tables:
    """The common part of all readers: records become rows of a table."""

    _options: RecordRangeOptions
    _values: Mapping[str, frozenset[str | int]] = {}

    def _found(self, task: object) -> Iterator[Found]:
        """The records of a task."""
        raise NotImplementedError

    def _rows(self, task: object) -> Iterator[pa.RecordBatch]:
        from ottla.spark.records.decode import RecordDecoder
        from ottla.spark.records.json_rows import JsonDecoder

        options, found = self._options, self._found(task)
        if options.is_every:
            json_rows = JsonDecoder(options.values, options.arrow_batch_rows, options.choice(self._values))
            return (each.rows for each in _decoded(json_rows, found))
        # What the whole log adds up to can be compared with filters only at its end.
        choice = options.choice({} if options.is_state else self._values)
        decoder = RecordDecoder(options.table, options.values, options.arrow_batch_rows, choice)
        if options.is_state:
            from ottla.spark.records.metadata_state import MetadataState

            return MetadataState(options.table, decoder).rows(found)
        if options.is_latest:
            from ottla.spark.records.latest import newest

            return newest(decoder.schema, _decoded(decoder, found))
        return (each.rows for each in _decoded(decoder, found))

    def _bounds_of_plan(self, bounds: Bounds) -> Bounds:
        """What filters may leave out of the plan."""
        if not self._options.is_latest:
            return bounds
        # A newer row of a key hides an older one, even if only the older one passes.
        return bounds._replace(offset_until=None) if self._options.table.kind == "keyed" else EVERYTHING


def _decoded(decoder: Decoder, found: Iterable[Found]) -> Iterator[DecodedRows]:
    for each in found:
        yield from decoder.batches(*each)


# --- files ------------------------------------------------------------------------------------------------------------


class WholeLog(NamedTuple):
    """The metadata log from its beginning, in one task."""

    parts: tuple[LogTask | MetadataSnapshot, ...]


class _PathTasks(_Tables):
    """The common part of both readers of files."""

    _options: PathRecordOptions

    _checked: dict[str, CheckedEnd] | None = None
    """How far logs were checked, by their directories; streams know that."""

    def _cluster(self) -> LogCluster:
        from ottla.spark.log.cluster import LogCluster

        return LogCluster(replace(self._options, paths=self._options.directories), self._checked)

    def _tasks_of(
        self, cluster: LogCluster, ranges: list[Task], bounds: Bounds, *, is_from_start: bool, is_growing: bool
    ) -> list[LogTask | MetadataSnapshot]:
        """Pieces of the logs, and snapshots that have to be read before them."""
        snapshot = self._snapshot(cluster) if is_from_start else None
        if snapshot is not None:  # it replaces the log before its end offset
            ranges = [_from(each, snapshot.end_offset) if each.at == METADATA else each for each in ranges]
        wanted = [each for each in ranges if each.start < each.until]
        is_latest = self._options.is_latest
        logs = log_tasks(cluster, wanted, self._options, is_growing=is_growing, whole_partitions=is_latest)
        return [*logs] if snapshot is None or not snapshot.is_in(bounds) else [snapshot, *logs]

    def _snapshot(self, cluster: LogCluster) -> MetadataSnapshot | None:
        from ottla.spark.records.snapshots import snapshot_before

        if METADATA.topic not in self._options.table_topics or not cluster.has(METADATA):
            return None
        return snapshot_before(cluster.view(METADATA).files)

    def _found(self, task: object) -> Iterator[Found]:
        from ottla.spark.log.plan import LogTask
        from ottla.spark.records.snapshots import MetadataSnapshot

        for each in task.parts if isinstance(task, WholeLog) else (task,):
            if isinstance(each, LogTask):
                yield from self._found_in_log(each)
            else:
                assert isinstance(each, MetadataSnapshot)
                yield from _found_in_snapshot(each)

    def _found_in_log(self, task: LogTask) -> Iterator[Found]:
        from ottla.spark.log.read import TaskReport, read_columns
        from ottla.spark.records.decode import Source

        report = TaskReport()
        rules = self._options.read_rules(include_control=task.topic == METADATA.topic and self._options.has_control)
        source = Source(task.topic, task.partition)
        for columns, from_offset, until_offset in read_columns(task, rules, report):
            yield source, columns, from_offset, until_offset
        if self._options.report_tasks:
            progress(**report.figures(task))


def _from(task: Task, offset: int) -> Task:
    return task._replace(start=max(task.start, offset))


def _found_in_snapshot(snapshot: MetadataSnapshot) -> Iterator[Found]:
    from ottla.spark.records.decode import Source
    from ottla.spark.records.snapshots import read_snapshot

    for columns in read_snapshot(snapshot):
        yield Source(*METADATA), columns, -1, OPEN_END


class PathRecordReader(_PathTasks, RangeReader[PathRecordOptions]):
    def _tasks(self, bounds: Bounds) -> list[LogTask | MetadataSnapshot | WholeLog]:
        from ottla.spark.records.snapshots import named_snapshots

        named: list[LogTask | MetadataSnapshot | WholeLog] = [*named_snapshots(self._options.snapshots)]
        if not self._options.directories:
            return named
        found = self._directory_tasks(self._bounds_of_plan(bounds))
        if self._options.is_latest and self._options.table_topics == (METADATA.topic,):
            return [*named, WholeLog(tuple(found))]
        return [*named, *found]

    def _directory_tasks(self, bounds: Bounds) -> list[LogTask | MetadataSnapshot]:
        from ottla.spark.topic.plan import plan_batch

        cluster = self._cluster()
        ranges = plan_batch(cluster, self._options.for_plan(), bounds)
        is_from_start = self._options.starting(is_stream=False).where == "earliest"
        return self._tasks_of(cluster, ranges, bounds, is_from_start=is_from_start, is_growing=False)


class PathRecordPushdownReader(TakesFilters, PathRecordReader):
    _column_prefix = "_"


class PathRecordStreamReader(_PathTasks, FileStreamReader[PathRecordOptions]):
    _checked: dict[str, CheckedEnd]

    def _tasks_between(self, start: SourceOffset, end: SourceOffset) -> list[LogTask | MetadataSnapshot]:
        from ottla.spark.topic.stream_plan import StreamPlan

        cluster = self._cluster()
        ranges = StreamPlan(cluster, self._options).tasks_between(start, end)
        is_first = end.start is not None  # only the first batch has the start of the query
        is_from_start = is_first and self._options.starting(is_stream=True).where == "earliest"
        return self._tasks_of(cluster, ranges, EVERYTHING, is_from_start=is_from_start, is_growing=True)


# --- clusters ---------------------------------------------------------------------------------------------------------


class _ClusterTasks(_Tables):
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

    def _found(self, task: JoinedTask) -> Iterator[Found]:  # type: ignore[override]
        for each in task.parts:
            yield from self._found_in(each)

    def _found_in(self, task: Task) -> Iterator[Found]:
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
            yield Source(*task.at), each, first, task.until


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
            warn(f"{name} does not exist yet: no records")
        return found._replace(missing=())


class ClusterRecordReader(_ClusterTasks, RangeReader[ClusterRecordOptions]):
    def _tasks(self, bounds: Bounds) -> list[JoinedTask]:
        from ottla.spark.topic.plan import join_tasks, plan_batch

        options, wanted = self._options.for_plan(), self._bounds_of_plan(bounds)
        if options.is_metadata:  # controllers do not look for times
            wanted = wanted._replace(time_from_ms=None)
        return join_tasks(plan_batch(self._cluster(), options, wanted))


class ClusterRecordPushdownReader(TakesFilters, ClusterRecordReader):
    _column_prefix = "_"


class ClusterRecordStreamReader(_ClusterTasks, JoiningStreamReader[ClusterRecordOptions]):
    def _make_plan(self) -> StreamPlan:
        from ottla.spark.topic.stream_plan import StreamPlan

        return StreamPlan(self._cluster(), self._options)
