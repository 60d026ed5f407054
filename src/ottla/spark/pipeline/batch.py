"""One run over a closed range: read everything once, compute every table, write whole days."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from ottla.health.samples import OBSERVATIONS
from ottla.spark.jobs.params import DAY_MS, HOUR_MS, Isolation, Params
from ottla.spark.jobs.tables import TABLES
from ottla.spark.pipeline.events import frames_of, metadata_frame
from ottla.spark.pipeline.ingest import Spool, Starts, ingest, need_something
from ottla.spark.pipeline.jobs import JOBS, job_of
from ottla.spark.pipeline.run_file import versions, write_run
from ottla.spark.pipeline.tables import Days, Format, count_rows, table_path, write_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ottla.spark.pipeline.origins import Origin

__all__ = ["RunOptions", "Say", "run"]

Say = Callable[[str], None]
ROWS_PER_PARTITION: Final = 500_000
PARTITIONS_LOWEST: Final = 2
PARTITIONS_HIGHEST: Final = 400


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What a run is told."""

    out: Path
    format: Format = "parquet"
    since_ms: int | None = None
    lateness_ms: int = 600_000
    isolation: Isolation = "read_uncommitted"
    thresholds: Mapping[str, float] = field(default_factory=dict)
    observations: tuple[str, ...] = ()
    """Directories with files of an observer."""
    topic: str = OBSERVATIONS
    command: str = ""

    @property
    def first_day_ms(self) -> int | None:
        """Days are computed whole."""
        return None if self.since_ms is None else self.since_ms // DAY_MS * DAY_MS

    @property
    def starts(self) -> Starts:
        first = self.first_day_ms
        # Lag as time looks back an hour; rules that open slowly, longer.
        return Starts() if first is None else Starts(first - 2 * HOUR_MS, first - DAY_MS)

    def params(self, topic_ids: Mapping[str, str]) -> Params:
        return Params(
            from_ms=self.first_day_ms,
            isolation=self.isolation,
            lateness_ms=self.lateness_ms,
            thresholds=self.thresholds,
            topic_names={topic_id: name for name, topic_id in topic_ids.items()},
        )


@dataclass
class _Progress:
    """What the run file will say of tables."""

    tables: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def run(spark: SparkSession, origin: Origin | None, options: RunOptions, say: Say) -> dict[str, Any]:
    """Do it, and give what the run file says."""
    started = time.monotonic()
    options.out.mkdir(parents=True, exist_ok=True)
    work = options.out / f".work-{uuid4().hex[:8]}"
    progress = _Progress(notes=list(origin.notes) if origin is not None else [])
    try:
        spool = ingest(spark, origin, options.observations, work / "events", options.starts, progress.notes)
        where = origin.where if origin is not None else ", ".join(options.observations)
        need_something(spool, where)
        say(f"✓ read {sum(spool.rows.values()):,} records ({time.monotonic() - started:.1f} s)")
        _fit(spark, spool)
        params = options.params(origin.topic_ids() if origin is not None else {})
        inputs = _inputs(spark, origin, spool, work, params, progress)
        unseen = _tables(inputs, params, options, progress, say)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    found = _run_file(spool, origin, options, progress, unseen)
    write_run(options.out, found)
    return found


def _fit(spark: SparkSession, spool: Spool) -> None:
    """Few partitions for few rows: each costs a task."""
    wanted = sum(spool.rows.values()) // ROWS_PER_PARTITION
    partitions = min(max(wanted, PARTITIONS_LOWEST), PARTITIONS_HIGHEST)
    spark.conf.set("spark.sql.shuffle.partitions", str(partitions))


def _inputs(
    spark: SparkSession, origin: Origin | None, spool: Spool, work: Path, params: Params, progress: _Progress
) -> dict[str, DataFrame]:
    inputs = frames_of(spark.read.parquet(str(spool.path)), spool.rows)
    if origin is not None:
        metadata = metadata_frame(spark, origin.cluster, origin.metadata(spark), origin.topic_ids())
        if metadata is not None:
            metadata.write.parquet(str(work / "metadata"))
            inputs["metadata"] = spark.read.parquet(str(work / "metadata"))
    folded = _folded(spark, inputs, params, work)
    if folded is not None:
        inputs["folded"] = folded
    return inputs


def _folded(spark: SparkSession, inputs: Mapping[str, DataFrame], params: Params, work: Path) -> DataFrame | None:
    """The fold over the records of groups, done once for the tables that are made from it."""
    if "records" not in inputs and "samples" not in inputs:
        return None
    from ottla.spark.jobs.folding import folded

    folded(inputs, params).write.partitionBy("table").parquet(str(work / "folded"))
    return spark.read.parquet(str(work / "folded"))


def _tables(
    inputs: Mapping[str, DataFrame], params: Params, options: RunOptions, progress: _Progress, say: Say
) -> list[dict[str, Any]]:
    days = Days(first=None if params.from_ms is None else _day(params.from_ms))
    for name in JOBS:
        started = time.monotonic()
        if not _can_run(name, inputs):
            progress.notes.append(f"{name} was not computed: nothing that it needs was there to read")
            continue
        write_table(job_of(name)(inputs, params), TABLES[name], options.out, days, options.format)
        progress.tables.append(_written(name, options, time.monotonic() - started))
    say(f"✓ {len(progress.tables)} jobs")
    return []


def _can_run(name: str, inputs: Mapping[str, DataFrame]) -> bool:
    needs = {"consumer_lag": {"commits", "samples"}, "quorum_lag": {"samples", "metadata"}}
    return bool(needs.get(name, {"records", "samples"}) & set(inputs))


def _written(name: str, options: RunOptions, seconds: float) -> dict[str, Any]:
    path = table_path(options.out, name)
    return {
        "name": name,
        "rows": count_rows(path),
        "path": str(path.relative_to(options.out)),
        "format": options.format,
        "seconds": round(seconds, 2),
    }


def _run_file(
    spool: Spool, origin: Origin | None, options: RunOptions, progress: _Progress, unseen: list[dict[str, Any]]
) -> dict[str, Any]:
    where = origin.where if origin is not None else ", ".join(options.observations)
    return {
        "v": 1,
        "run_id": uuid4().hex,
        "ended_ms": time.time_ns() // 1_000_000,
        **versions(),
        "clusters": [origin.cluster] if origin is not None else [],
        "range": {"from_ms": options.first_day_ms or spool.from_ms, "to_ms": spool.to_ms},
        "inputs": [
            {
                "name": name,
                "where": where,
                "rows": rows,
                "dropped": spool.dropped if name == "samples" else 0,
                "late": 0,
            }
            for name, rows in spool.rows.items()
        ],
        "tables": progress.tables,
        "unseen": unseen,
        "thresholds": dict(options.thresholds),
        "notes": progress.notes,
        "command": options.command,
    }


def _day(ms: int) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d")
