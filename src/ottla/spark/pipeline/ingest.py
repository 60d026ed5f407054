"""Reads an origin and the files of observers once, and writes events to disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from ottla.spark.errors import OttlaSparkError, explain_error
from ottla.spark.pipeline.event_decoder import EVENT_DDL, SAMPLES, EventDecoder
from ottla.spark.pipeline.events import INPUTS
from ottla.spark.pipeline.in_process import INPUT, are_small, by_input, plan_of, read_in_process, write_events
from ottla.spark.pipeline.observations import FileDecoder, files_frame, observation_files
from ottla.spark.worker_files import Rows, write_by_workers

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from ottla.spark.pipeline.origins import Origin

__all__ = ["EventFiles", "Ingestion", "Starts", "describe_events", "require_events"]

REFUSED: Final = "TOPIC_AUTHORIZATION_FAILED"
T = TypeVar("T")
Decode = Callable[[Iterator["pa.RecordBatch"]], Iterator["pa.RecordBatch"]]
"""Turns rows into events, in a worker."""


class Starts(NamedTuple):
    """The times from which commits and samples are read. Records of groups are read from the beginning, because each
    builds on those before it."""

    commits_ms: int = 0
    samples_ms: int = 0


class EventFiles(NamedTuple):
    """Events on disk: where they are, how many, and of which time."""

    path: Path
    rows: dict[str, int]
    from_ms: int | None
    to_ms: int | None
    dropped: int
    """How many samples observers had to drop."""


class Ingestion:
    """Reads an origin and files of observers, and writes them as events."""

    def __init__(self, origin: Origin | None, observations: Sequence[str], starts: Starts, notes: list[str]) -> None:
        self._origin = origin
        self._topics = list(origin.topics) if origin is not None else []
        self._files = [each for directory in observations for each in observation_files(directory)]
        self._decoder = EventDecoder(origin.cluster if origin else "", starts.commits_ms, starts.samples_ms)
        self._files_decoder = FileDecoder(starts.samples_ms)
        self._notes = notes

    def in_process(self, path: Path) -> EventFiles | None:
        """Read in this process; None if there is too much data for that."""
        return self._until_allowed(lambda: self._read_in_process(path))

    def _read_in_process(self, path: Path) -> EventFiles | None:
        plan = None
        if self._origin is not None and self._topics:
            plan = plan_of(self._origin.format, self._origin.options(self._topics))
        if not (plan is None or plan.is_small) or not are_small(self._files):
            return None
        write_events(read_in_process(plan, self._decoder, self._files, self._files_decoder), path)
        return describe_events(path)

    def by_spark(self, spark: SparkSession, path: Path) -> EventFiles:
        """Read in Spark's workers."""
        return self._until_allowed(lambda: self._read_by_spark(spark, path))

    def _read_by_spark(self, spark: SparkSession, path: Path) -> EventFiles:
        frames: list[tuple[DataFrame, Decode]] = []
        if self._origin is not None and self._topics:
            rows = spark.read.format(self._origin.format).options(**self._origin.options(self._topics)).load()
            frames.append((rows, self._decoder))
        if self._files:
            frames.append((files_frame(spark, self._files), self._files_decoder))
        match frames:
            case [(rows, decode)]:
                write_by_workers(rows, partial(_events, decode=decode), path)
            case [_, *_]:
                _write_together(frames, path)
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
                self._notes.append(f"{refused} was skipped: not authorized (needs READ on the topic)")


def _events(batches: Iterator[pa.RecordBatch], decode: Decode) -> Rows:
    """The events of some rows, in a worker."""
    return by_input(decode(batches))


def _write_together(frames: Sequence[tuple[DataFrame, Decode]], path: Path) -> None:
    """Write the events of several frames. An observer may have written the same samples to both."""
    from pyspark.sql import functions as F

    events = reduce(
        lambda one, other: one.unionByName(other), (rows.mapInArrow(decode, EVENT_DDL) for rows, decode in frames)
    )
    samples = events.where(F.col(INPUT) == SAMPLES).dropDuplicates(["cluster", "observer", "seq"])
    events = events.where(F.col(INPUT) != SAMPLES).unionByName(samples)
    events.write.mode("overwrite").partitionBy(INPUT).parquet(str(path))


def _refused(error: Exception, topics: list[str]) -> str | None:
    text = explain_error(error)
    return next((topic for topic in topics if REFUSED in text and topic in text), None)


def describe_events(path: Path) -> EventFiles:
    """The events below a path, described from the footers of their files."""
    rows = dict.fromkeys(INPUTS, 0)
    bounds: list[int] = []
    for name in INPUTS:
        for file in sorted(path.rglob(f"{INPUT}={name}/**/*.parquet")):
            count, times = _footer(file)
            rows[name] += count
            bounds += times
    return EventFiles(path, rows, min(bounds, default=None), max(bounds, default=None), _dropped(path, rows[SAMPLES]))


def _footer(file: Path) -> tuple[int, list[int]]:
    import pyarrow.parquet as pq

    metadata = pq.read_metadata(file)
    column = metadata.schema.to_arrow_schema().get_field_index("ts")
    found = [metadata.row_group(index).column(column).statistics for index in range(metadata.num_row_groups)]
    bounds = [each for stats in found if stats is not None and stats.has_min_max for each in (stats.min, stats.max)]
    return metadata.num_rows, bounds


def _dropped(path: Path, samples: int) -> int:
    import pyarrow.compute as pc
    import pyarrow.dataset as ds

    if not samples:
        return 0
    files = [str(file) for file in path.rglob(f"{INPUT}={SAMPLES}/**/*.parquet")]
    counted: Any = (pc.sum(batch.column(0)).as_py() or 0 for batch in ds.dataset(files).to_batches(columns=["dropped"]))
    return sum(counted)


def require_events(event_files: EventFiles, where: str) -> None:
    if not any(event_files.rows.values()):
        raise OttlaSparkError(f"{where} has no data: no records of groups and no observations")
