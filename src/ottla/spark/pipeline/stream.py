"""The pipeline as a stream: each step adds new events to the archive and computes the days that they touch.

It runs the same jobs as a run, over the archive, so the tables are the same. Spark's checkpoint repeats an interrupted
step with the same rows; the step overwrites what it had written, so nothing is lost or duplicated.

Windows accept rows that are late by up to `lateness`, compared with the newest row of earlier steps. Older rows go to
`late_<table>`, and the next run adds them to the table. Records of groups are never late: their offsets give the order.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ottla.spark.jobs.params import DAY_MS
from ottla.spark.jobs.share_state import STATE_TYPES
from ottla.spark.pipeline.archive import Archive
from ottla.spark.pipeline.batch import run_summary, sources
from ottla.spark.pipeline.event_decoder import EVENT_DDL, EventDecoder
from ottla.spark.pipeline.ingest import EventFiles, describe_events
from ottla.spark.pipeline.job_runner import compute, fit, prepare, unseen_in
from ottla.spark.pipeline.options import RunOptions, Say
from ottla.spark.pipeline.run_file import write_run

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from ottla.spark.pipeline.origins import Origin

__all__ = ["CHECKPOINT", "Follower", "start_stream"]

CHECKPOINT: Final = "checkpoint"
MARKS: Final = "marks.json"
LATE_KINDS: Final = {
    "share_delivery": (*STATE_TYPES, "share_state", "share_offsets", "share_metrics", "share_window"),
    "quorum_lag": ("quorum",),
    "consumer_lag": ("OffsetCommit", "lag"),
}
"""The tables that have windows, and the types of records and kinds of samples that fill them."""


class Watermarks(NamedTuple):
    """The newest time that the stream has seen, before its last step and including it."""

    step: str = ""
    before_ms: int = 0
    newest_ms: int = 0


@dataclass(frozen=True)
class Follower:
    """Processes each step of the stream."""

    origin: Origin
    options: RunOptions
    work: Path
    say: Say
    on_step: Callable[[], object] = lambda: None
    """Called when the tables are written."""

    def step(self, events: DataFrame, batch_id: int) -> None:
        spark = events.sparkSession
        name = f"{_query_id(spark)}-{batch_id:08d}"
        new = self.work / "new"
        shutil.rmtree(new, ignore_errors=True)
        events.write.partitionBy("input").parquet(str(new))
        event_files = describe_events(new)
        if not any(event_files.rows.values()):
            return
        archive = Archive(self.options.out)
        marks = self._marks(name, event_files)
        rows = spark.read.parquet(str(new))
        late = self._set_late_apart(rows, archive, name, marks.before_ms - self.options.lateness_ms)
        archive.add(rows.where(~_is_late(marks.before_ms - self.options.lateness_ms)), name)
        tables = self._compute(spark, archive, event_files)
        _write_marks(self.options.out, marks)
        write_run(self.options.out, self._summary(archive.describe(), tables))
        self.on_step()
        late_text = f", {late:,} late" if late else ""
        self.say(f"✓ step {batch_id}: {sum(event_files.rows.values()):,} records{late_text}, {len(tables)} tables")

    def _marks(self, name: str, event_files: EventFiles) -> Watermarks:
        """A step that is repeated uses the watermark from before its first attempt."""

        known = _read_marks(self.options.out)
        before = known.before_ms if known.step == name else known.newest_ms
        return Watermarks(name, before, max(before, event_files.to_ms or 0))

    def _set_late_apart(self, rows: DataFrame, archive: Archive, step: str, watermark_ms: int) -> int:
        from pyspark.sql import functions as F

        late = rows.where(_is_late(watermark_ms))
        count = late.count() if watermark_ms > 0 else 0
        if count:
            for table, kinds in LATE_KINDS.items():
                archive.add_late(late.where(F.col("type").isin(*kinds)), table, step)
        return count

    def _compute(self, spark: SparkSession, archive: Archive, new: EventFiles) -> list[dict[str, Any]]:
        whole = self.work / "all"
        shutil.rmtree(whole, ignore_errors=True)
        archive.frame(spark).write.partitionBy("input").parquet(str(whole))
        event_files = describe_events(whole)
        fit(spark, sum(event_files.rows.values()))
        # A rebalance that began the day before may be over now.
        first_ms = (new.from_ms or 0) // DAY_MS * DAY_MS - DAY_MS
        is_first = event_files.rows == new.rows
        options = replace(self.options, since_ms=None if is_first else first_ms)
        job_inputs = prepare(self.origin, event_files, self.work, options)
        return compute(spark, event_files, job_inputs, options, lambda _: None, is_complete=True)

    def _summary(self, event_files: EventFiles, tables: list[dict[str, Any]]) -> dict[str, Any]:
        late = sum(Archive(self.options.out).late_tables().values())
        return {
            **run_summary(event_files, self.origin, self.options, late),
            "tables": tables,
            "source": sources(tables, self.options.out),
            "unseen": unseen_in(self.work),
            "notes": self.origin.notes,
        }


def start_stream(spark: SparkSession, follower: Follower, interval_s: float | None = None) -> StreamingQuery:
    """Start the stream: with an interval it runs until it is stopped, without it ends when all data are read."""
    origin, out = follower.origin, follower.options.out
    options = {**origin.options(origin.topics), "startingOffsets": "earliest"}
    rows = spark.readStream.format(origin.format).options(**options).load()
    starts = follower.options.starts
    events = rows.mapInArrow(EventDecoder(origin.cluster, starts.commits_ms, starts.samples_ms), EVENT_DDL)
    writer = events.writeStream.foreachBatch(follower.step).option("checkpointLocation", str(out / CHECKPOINT))
    if interval_s is None:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{interval_s} seconds").start()


def _query_id(spark: SparkSession) -> str:
    found = spark.sparkContext.getLocalProperty("sql.streaming.queryId")
    assert found is not None, "a step runs in a query"
    return str(found)


def _is_late(watermark_ms: int) -> Column:
    from pyspark.sql import functions as F

    kinds = [kind for each in LATE_KINDS.values() for kind in each]
    return F.col("type").isin(*kinds) & (F.col("ts") < watermark_ms)


def _read_marks(out: Path) -> Watermarks:
    try:
        return Watermarks(**json.loads((out / CHECKPOINT / MARKS).read_text()))
    except FileNotFoundError:
        return Watermarks()


def _write_marks(out: Path, marks: Watermarks) -> None:
    new = out / CHECKPOINT / f".{MARKS}.new"
    new.write_text(json.dumps(marks._asdict()))
    os.replace(new, out / CHECKPOINT / MARKS)
