"""One run over a closed range: read everything once, compute every table, write whole days."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from ottla.spark.jobs.params import Params
from ottla.spark.pipeline.archive import CHECKPOINT, Archive
from ottla.spark.pipeline.delta_copy import HOURS
from ottla.spark.pipeline.event_lookup import KnownFromEvents
from ottla.spark.pipeline.ingest import EventFiles, Ingestion, Starts, require_events
from ottla.spark.pipeline.job_runner import compute, fit, prepare, share_window_ms, unseen_in
from ottla.spark.pipeline.observations import ObservationFiles, require_observations
from ottla.spark.pipeline.options import RunOptions, Say
from ottla.spark.pipeline.run_directory import RunDirectory
from ottla.spark.pipeline.run_file import read_run, versions, write_run
from ottla.spark.pipeline.tables import TableFigures

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ottla.spark.pipeline.origins import Origin

__all__ = ["origins_of", "run", "run_summary", "sources"]


def run(
    start_spark: Callable[[], SparkSession], origin: Origin | None, options: RunOptions, say: Say
) -> tuple[SparkSession, dict[str, Any]]:
    """Run the pipeline; returns the session and the contents of the run file. Spark starts while small inputs are
    read."""
    notes = list(origin.notes) if origin is not None else []
    archive = Archive(options.out)
    with RunDirectory(options.out) as work, _meanwhile(start_spark) as started:
        archive.open()
        began = time.monotonic()
        # A stream goes on where this run ends, so the archive has to have everything before.
        # Without a stream nobody else needs the commits that are replaced by others in the window of a row.
        starts, window_ms = (Starts(), None) if archive.exists() else (options.starts, Params().lag_window_ms)
        files = ObservationFiles(options.observations)
        ingestion = Ingestion(origin, files, starts, notes, commit_window_ms=window_ms)
        for directory in options.observations:
            require_observations(directory, ingestion.parts)
        event_files = ingestion.in_process(work / "events")
        if event_files is None:
            event_files = ingestion.by_spark(started.result(), work / "events")
        late = archive.late
        if archive.exists():
            event_files = archive.joined(started.result(), event_files, work / "all")
        require_events(event_files, origins_of(origin, options))
        say(f"✓ read {sum(event_files.read.values()):,} records ({time.monotonic() - began:.1f} s)")
        known = KnownFromEvents().take(event_files.path)
        job_inputs = prepare(origin, event_files, known, work, options, archive.topic_names)
        spark = started.result()
        fit(spark, sum(event_files.rows.values()))
        if archive.exists():
            _take_tables_over(options.out)
        tables = compute(spark, event_files, job_inputs, options, say, is_complete=options.since_ms is None)
        say(f"✓ {len(tables)} jobs")
        found = {
            **run_summary(event_files, origin, options, late, known.seen),
            "tables": _counted(spark, tables, options.out),
            "source": sources(tables, TableFigures(options.out)),
            "unseen": unseen_in(work),
            "notes": notes + _not_computed(tables),
        }
        if archive.last is not None:
            archive.compact(event_files, ingestion.positions)
            found["step"] = archive.last.number
    write_run(options.out, found)
    return spark, found


def _take_tables_over(out: Path) -> None:
    """From now on the tables are not those of a stream. Even if this run does not come to its end, the stream makes
    them anew from the archive: it could not tell which rows of a day the run has written."""
    told = read_run(out)
    if told is not None:
        write_run(out, {name: each for name, each in told.items() if name != "step"})
    for name in (CHECKPOINT, HOURS):
        shutil.rmtree(out / name, ignore_errors=True)


@contextmanager
def _meanwhile(start: Callable[[], SparkSession]) -> Iterator[Future[SparkSession]]:
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(start)


def origins_of(origin: Origin | None, options: RunOptions) -> str:
    """Where the data come from, in words."""
    return ", ".join([*([] if origin is None else [origin.where]), *options.observations])


def run_summary(
    event_files: EventFiles, origin: Origin | None, options: RunOptions, late: int, seen: dict[str, Any]
) -> dict[str, Any]:
    """The part of the run file that says what was read and seen, and by which versions."""
    where = origins_of(origin, options)
    counted = {"samples": {"dropped": event_files.dropped, "late": late}}
    nothing = {"dropped": 0, "late": 0}
    return {
        "v": 1,
        "run_id": uuid4().hex,
        "ended_ms": time.time_ns() // 1_000_000,
        **versions(),
        "clusters": [origin.cluster] if origin is not None else [],
        "range": {"from_ms": options.first_day_ms or event_files.from_ms, "to_ms": event_files.to_ms},
        "inputs": [
            {"name": name, "where": where, "rows": rows, **counted.get(name, nothing)}
            for name, rows in event_files.read.items()
        ],
        "seen": seen,
        "thresholds": dict(options.thresholds),
        "windows": {"share_delivery": share_window_ms((event_files.from_ms, event_files.to_ms), options)},
        "command": options.command,
    }


def _counted(spark: SparkSession, tables: list[dict[str, Any]], out: Path) -> list[dict[str, Any]]:
    """Fill in the rows of Delta tables, which only Spark can count."""
    for table in tables:
        if table["rows"] is None:
            table["rows"] = spark.read.format("delta").load(str(out / table["path"])).count()
    return tables


def sources(tables: list[dict[str, Any]], figures: TableFigures) -> dict[str, str]:
    """By table: records, samples or both."""
    found = {each["name"]: figures.source(each["name"]) for each in tables}
    return {name: source for name, source in found.items() if source is not None}


def _not_computed(tables: list[dict[str, Any]]) -> list[str]:
    from ottla.spark.pipeline.jobs import JOBS

    there = {table["name"] for table in tables}
    return [f"{name} was not computed: there was no input for it" for name in JOBS if name not in there]
