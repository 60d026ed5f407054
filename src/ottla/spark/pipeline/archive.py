"""The events that a stream has read, kept for good: a directory for each of its steps, merged by the next run.

A step that is done again after a crash writes to the same directory. What comes twice all the same (a run reads the
origin again) is told apart by its place: topic, partition and offset of a record, observer and number of a sample.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from ottla.spark.pipeline.decoding import SAMPLES
from ottla.spark.pipeline.here import INPUT
from ottla.spark.pipeline.ingest import Spool, look_at

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["LATE", "Archive", "distinct_events"]

LATE: Final = "late"
MERGED: Final = "merged-"


def distinct_events(events: DataFrame) -> DataFrame:
    """Each record and each sample once."""
    from pyspark.sql import functions as F

    records = events.where(F.col(INPUT) != SAMPLES).dropDuplicates(["cluster", "topic", "partition", "offset"])
    samples = events.where(F.col(INPUT) == SAMPLES).dropDuplicates(["cluster", "observer", "seq"])
    return records.unionByName(samples)


class Archive:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._late = path.parent / LATE

    def exists(self) -> bool:
        return any(self.path.glob(f"*/{INPUT}=*"))

    def late_rows(self) -> int:
        """How many rows came too late for the tables, and wait for a run."""
        import pyarrow.parquet as pq

        tables = sorted(self._late.glob("late_*"))
        return max(
            (sum(pq.read_metadata(file).num_rows for file in each.rglob("*.parquet")) for each in tables), default=0
        )

    def steps(self) -> list[str]:
        return [str(each) for each in sorted(self.path.glob("*")) if any(each.glob(f"{INPUT}=*"))]

    def joined(self, spark: SparkSession, spool: Spool, path: Path) -> Spool:
        """What the archive has and what was read now, each once."""
        there = [*self.steps(), *([str(spool.path)] if any(spool.rows.values()) else [])]
        frames = [spark.read.parquet(each) for each in there]
        events = frames[0]
        for frame in frames[1:]:
            events = events.unionByName(frame)
        distinct_events(events).write.mode("overwrite").partitionBy(INPUT).parquet(str(path))
        return look_at(path)

    def compact(self, spool: Spool) -> None:
        """Let what was joined stand for all steps. If this is cut short, some events are there twice: no harm."""
        old = self.steps()
        if not old:
            return
        new = self.path / f".{MERGED}{uuid4().hex[:8]}"
        shutil.move(spool.path, new)
        new.rename(self.path / new.name.removeprefix("."))
        for each in old:
            shutil.rmtree(each)
        shutil.rmtree(self._late, ignore_errors=True)
