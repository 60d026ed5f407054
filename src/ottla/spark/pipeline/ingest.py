"""Reads what is new in an origin and in the files of observers, and writes it to disk as events."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from ottla.spark.errors import OttlaSparkError, explain_error
from ottla.spark.offsets import SourceOffset
from ottla.spark.pipeline.end_offsets import LogPosition, read_ends
from ottla.spark.pipeline.event_decoder import COMMITS, ENDS, SAMPLES, EventDecoder
from ottla.spark.pipeline.events import INPUTS
from ottla.spark.pipeline.in_process import INPUT, GrowingSource, Plan, by_input, rows_of, samples_once, write_events
from ottla.spark.pipeline.observations import FileDecoder, FilePart, FilePosition, ObservationFiles, read_positions
from ottla.spark.worker_files import Rows, write_by_workers, write_files
from ottla.wire.keyed import GROUP_TOPIC, SHARE_TOPIC

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from ottla.spark.pipeline.origins import Origin

__all__ = ["EventFiles", "Ingestion", "Positions", "Starts", "describe_events", "require_events"]

REFUSED: Final = "TOPIC_AUTHORIZATION_FAILED"
FILES_BYTES_MAX: Final = 16 << 20
"""As much as is read in this process."""
TASKS_MAX: Final = 1_000
T = TypeVar("T")
ReadTask = Callable[[], Iterator["pa.RecordBatch"]]
"""Reads events, in a worker."""


class Starts(NamedTuple):
    """The times from which commits and samples are read. Records of groups are read from the beginning, because each
    builds on those before it."""

    commits_ms: int = 0
    samples_ms: int = 0


class Positions(NamedTuple):
    """How far an origin and the files of observers were read."""

    offsets: dict[str, Any] | None = None
    """In the form of a stream's checkpoint; None if nothing was read."""
    files: Mapping[str, FilePosition] = {}
    logs: Mapping[str, LogPosition] = {}
    """By the directories of the partitions whose end offsets were read."""


class EventFiles(NamedTuple):
    """Events on disk: where they are, how many, and of which time. The times of end offsets are apart, because they are
    those of producers."""

    path: Path
    rows: dict[str, int]
    from_ms: int | None
    to_ms: int | None
    dropped: int
    """How many samples observers had to drop."""
    ends_from_ms: int | None = None
    left_out: int = 0
    """How many commits are not there, because others in the same window of time have replaced them."""

    @property
    def read(self) -> dict[str, int]:
        """How many records and samples were read, by input."""
        found = {name: count for name, count in self.rows.items() if name != ENDS}
        return found | {COMMITS: found.get(COMMITS, 0) + self.left_out}


class Ingestion:
    """Reads an origin and files of observers after some positions, and writes them as events."""

    def __init__(
        self,
        origin: Origin | None,
        files: ObservationFiles,
        starts: Starts,
        notes: list[str],
        positions: Positions = Positions(),  # noqa: B008  (a value)
        source: GrowingSource | None = None,
        *,
        commit_window_ms: int | None = None,
    ) -> None:
        """With `commit_window_ms` commits are left out that others in the same window of time have replaced."""
        self._origin = origin
        self._source = GrowingSource() if source is None else source
        self._topics = list(origin.topics) if origin is not None else []
        self._parts = files.parts_after(positions.files)
        self._decoder = EventDecoder(
            origin.cluster if origin else "", starts.commits_ms, starts.samples_ms, commit_window_ms
        )
        self._files_decoder = FileDecoder(starts.samples_ms)
        self._notes = notes
        self._before = positions
        self._offsets = positions.offsets
        self._logs = positions.logs
        self._planned: tuple[list[str], Plan] | None = None
        """The last plan, with the topics for which it was made: to make one, logs are looked through."""

    @property
    def positions(self) -> Positions:
        """How far everything was read."""
        return Positions(self._offsets, {**self._before.files, **read_positions(self._parts)}, self._logs)

    @property
    def parts(self) -> Sequence[FilePart]:
        """The parts of files that are read."""
        return self._parts

    def in_process(self, path: Path) -> EventFiles | None:
        """Read in this process; None if there is too much data for that."""
        return self._until_allowed(lambda: self._read_in_process(path))

    def _read_in_process(self, path: Path) -> EventFiles | None:
        plan = self._plan()
        if not plan.is_small or sum(each.until - each.start for each in self._parts) > FILES_BYTES_MAX:
            return None
        events = self._decoder(rows_of(plan))
        if self._parts:
            events = samples_once(chain(events, self._files_decoder(self._parts)))
        write_events(events, path)
        return self._with_ends(path)

    def _plan(self) -> Plan:
        """The tasks for all topics that may be read. Offsets of other topics are kept."""
        if self._origin is None or not self._topics:
            return Plan(None, ())
        if self._planned is not None and self._planned[0] == self._topics:
            return self._planned[1]
        known = self._before.offsets
        plan, end = self._source.plan_after(self._origin.format, self._origin.options(self._topics), known)
        self._offsets = _with_others(end, known, self._topics)
        self._planned = [*self._topics], plan
        return plan

    def by_spark(self, spark: SparkSession, path: Path) -> EventFiles:
        """Read in Spark's workers."""
        return self._until_allowed(lambda: self._read_by_spark(spark, path))

    def _read_by_spark(self, spark: SparkSession, path: Path) -> EventFiles:
        plan = self._plan()
        tasks: list[ReadTask] = [partial(_read_partition, plan.reader, each, self._decoder) for each in plan.partitions]
        tasks += [partial(self._files_decoder, [each]) for each in self._parts]
        frame = spark.createDataFrame([(pickle.dumps(each),) for each in tasks], "task binary")
        frame = frame.repartition(max(1, min(len(tasks), TASKS_MAX)))
        write_by_workers(frame, _events_by_input, path)
        if self._parts and not {GROUP_TOPIC, SHARE_TOPIC}.issuperset(self._topics):
            _keep_samples_once(spark, path / f"{INPUT}={SAMPLES}")
        return self._with_ends(path)

    def _with_ends(self, path: Path) -> EventFiles:
        """Write the end offsets of the partitions, too, if groups have committed: lag is computed with them."""
        origin, known = self._origin, self._before.logs
        if origin is not None and (known or any(path.glob(f"{INPUT}={COMMITS}/*.parquet"))):
            ends, moved = read_ends(origin.cluster, origin.partitions, known)
            write_files(by_input(ends), path, "part-0")
            self._logs = {**known, **moved}
        return describe_events(path)

    def _until_allowed(self, read: Callable[[], T]) -> T:
        """Read again without a topic that the client is not authorized to read, and note it."""
        while True:
            try:
                return read()
            except Exception as error:
                refused = _refused(error, self._topics)
                if refused is None:
                    raise
                self._topics.remove(refused)
                note = f"{refused} was skipped: not authorized (needs READ on the topic)"
                if note not in self._notes:
                    self._notes.append(note)


# --- in workers -------------------------------------------------------------------------------------------------------


def _read_partition(reader: Any, partition: Any, decoder: EventDecoder) -> Iterator[pa.RecordBatch]:
    return decoder(reader.read(partition))


def _events(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The events of some tasks."""
    for batch in batches:
        for task in batch.column("task").to_pylist():
            yield from pickle.loads(task)()


def _events_by_input(batches: Iterator[pa.RecordBatch]) -> Rows:
    return by_input(_events(batches))


def _keep_samples_once(spark: SparkSession, samples: Path) -> None:
    """An observer may have written the same samples to a topic and to files."""
    if not samples.exists():
        return
    all_samples = samples.with_name("all samples")
    samples.rename(all_samples)
    distinct = spark.read.parquet(str(all_samples)).dropDuplicates(["cluster", "observer", "seq"])
    distinct.write.parquet(str(samples))
    shutil.rmtree(all_samples)


# --- offsets and errors -----------------------------------------------------------------------------------------------


def _with_others(end: dict[str, Any], before: dict[str, Any] | None, topics: Sequence[str]) -> dict[str, Any]:
    """The end offsets of the topics that were read, and the known offsets of others."""
    now, known = SourceOffset.from_json(end), SourceOffset.from_json(before or {})
    others = {at: offset for at, offset in known.offsets.items() if at.topic not in topics}
    ids = {name: topic_id for name, topic_id in known.ids.items() if name not in topics}
    return SourceOffset({**others, **now.offsets}, {**ids, **now.ids}).to_json()


def _refused(error: Exception, topics: list[str]) -> str | None:
    text = explain_error(error)
    return next((topic for topic in topics if REFUSED in text and topic in text), None)


def describe_events(path: Path) -> EventFiles:
    """The events below a path, described from the footers of their files."""
    rows = dict.fromkeys(INPUTS, 0)
    bounds: list[int] = []
    ends: list[int] = []
    for name in INPUTS:
        for file in sorted(path.rglob(f"{INPUT}={name}/**/*.parquet")):
            count, times = _footer(file)
            rows[name] += count
            (ends if name == ENDS else bounds).extend(times)
    return EventFiles(
        path,
        rows,
        from_ms=min(bounds, default=None),
        to_ms=max(bounds, default=None),
        dropped=_dropped(path, SAMPLES),
        ends_from_ms=min(ends, default=None),
        left_out=_dropped(path, COMMITS),
    )


def _footer(file: Path) -> tuple[int, list[int]]:
    import pyarrow.parquet as pq

    metadata = pq.read_metadata(file)
    column = metadata.schema.to_arrow_schema().get_field_index("ts")
    found = [metadata.row_group(index).column(column).statistics for index in range(metadata.num_row_groups)]
    bounds = [each for stats in found if stats is not None and stats.has_min_max for each in (stats.min, stats.max)]
    return metadata.num_rows, bounds


def _dropped(path: Path, name: str) -> int:
    import pyarrow.compute as pc
    import pyarrow.dataset as ds

    files = [str(file) for file in path.rglob(f"{INPUT}={name}/**/*.parquet")]
    if not files:
        return 0
    counted: Any = (pc.sum(batch.column(0)).as_py() or 0 for batch in ds.dataset(files).to_batches(columns=["dropped"]))
    return sum(counted)


def require_events(event_files: EventFiles, where: str) -> None:
    if not any(event_files.rows.values()):
        raise OttlaSparkError(f"{where} has no data: no records of groups and no observations")
