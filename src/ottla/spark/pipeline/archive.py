"""The events that a stream has read, which are kept for good because brokers compact and delete records.

Each step of the stream has a directory of its own below each input, so a step that is repeated after a crash overwrites
what it wrote. Other duplicates (a run reads the origin again) are dropped by topic, partition and offset of a record,
or by observer and number of a sample. Rows that came too late for a window wait in `late_<table>`.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from ottla.spark.errors import OttlaSparkError
from ottla.spark.pipeline.event_decoder import EVENT_COLUMNS, SAMPLES
from ottla.spark.pipeline.in_process import INPUT
from ottla.spark.pipeline.ingest import EventFiles, describe_events

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["STEP", "Archive", "distinct_events"]

STEP: Final = "step"
LATE: Final = "late_"
MERGED: Final = "merged-"


def distinct_events(events: DataFrame) -> DataFrame:
    """Each record and each sample once."""
    from pyspark.sql import functions as F

    records = events.where(F.col(INPUT) != SAMPLES).dropDuplicates(["cluster", "topic", "partition", "offset"])
    samples = events.where(F.col(INPUT) == SAMPLES).dropDuplicates(["cluster", "observer", "seq"])
    return records.unionByName(samples)


class Archive:
    """`events` and `late_<table>` below an output directory."""

    def __init__(self, out: Path) -> None:
        self._out = out
        self.path = out / "events"

    def exists(self) -> bool:
        return any(self.path.glob(f"{INPUT}=*/{STEP}=*"))

    def require_readable(self) -> None:
        """OttlaSparkError if an earlier version of ottla has written it, with other columns."""
        import pyarrow.parquet as pq

        file = next(self.path.glob(f"{INPUT}=*/{STEP}=*/*.parquet"), None)
        if file is not None and not set(EVENT_COLUMNS) - {INPUT} <= set(pq.read_schema(file).names):
            raise OttlaSparkError(
                f"{self.path} was written by an earlier version of ottla: choose another --out, or delete this "
                "directory to begin with what the origin still has"
            )

    def add(self, events: DataFrame, step: str) -> None:
        _write_step(events, step, self.path)

    def add_late(self, events: DataFrame, table: str, step: str) -> None:
        _write_step(events, step, self._out / f"{LATE}{table}")

    def late_tables(self) -> dict[str, int]:
        """How many rows came too late for each table and wait for the next run."""
        import pyarrow.parquet as pq

        return {
            path.name.removeprefix(LATE): sum(pq.read_metadata(file).num_rows for file in path.rglob("*.parquet"))
            for path in sorted(self._out.glob(f"{LATE}*"))
        }

    def describe(self) -> EventFiles:
        return describe_events(self.path)

    def frame(self, spark: SparkSession) -> DataFrame:
        """The events that came in time, without duplicates."""
        return distinct_events(spark.read.parquet(str(self.path)).drop(STEP))

    def joined(self, spark: SparkSession, event_files: EventFiles, path: Path) -> EventFiles:
        """Write the events of the archive, late events and those read now to `path`, without duplicates."""
        stored = [each for each in (self.path, *sorted(self._out.glob(f"{LATE}*"))) if any(each.rglob("*.parquet"))]
        frames = [spark.read.parquet(str(each)).drop(STEP) for each in stored]
        if any(event_files.rows.values()):
            frames.append(spark.read.parquet(str(event_files.path)))
        events = frames[0]
        for frame in frames[1:]:
            events = events.unionByName(frame)
        distinct_events(events).write.mode("overwrite").partitionBy(INPUT).parquet(str(path))
        return describe_events(path)

    def compact(self, event_files: EventFiles) -> None:
        """Replace all steps by the joined events. If this is interrupted, duplicates remain, which readers drop."""
        if not self.exists():
            return
        old = list(self.path.glob(f"{INPUT}=*/{STEP}=*"))
        name = f"{STEP}={MERGED}{uuid4().hex[:8]}"
        for each in event_files.path.glob(f"{INPUT}=*"):
            (self.path / each.name).mkdir(exist_ok=True)
            each.rename(self.path / each.name / name)
        for directory in [*old, *self._out.glob(f"{LATE}*")]:
            shutil.rmtree(directory)


def _write_step(events: DataFrame, step: str, path: Path) -> None:
    from pyspark.sql import functions as F

    rows = events.withColumn(STEP, F.lit(step))
    writer = rows.write.mode("overwrite").option("partitionOverwriteMode", "dynamic")
    writer.partitionBy(INPUT, STEP).parquet(str(path))
