"""One run over a closed range: read everything once, compute every table, write whole days."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from ottla.spark.pipeline.archive import Archive
from ottla.spark.pipeline.computing import compute, fit, prepare, unseen_in
from ottla.spark.pipeline.ingest import Reading, Spool, need_something
from ottla.spark.pipeline.known import seen_in
from ottla.spark.pipeline.options import RunOptions, Say
from ottla.spark.pipeline.places import Workplace
from ottla.spark.pipeline.run_file import versions, write_run
from ottla.spark.pipeline.tables import source_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ottla.spark.pipeline.origins import Origin

__all__ = ["run", "sources", "told"]


def run(
    start_spark: Callable[[], SparkSession], origin: Origin | None, options: RunOptions, say: Say
) -> tuple[SparkSession, dict[str, Any]]:
    """Do it, and give the session and what the run file says. Spark starts while what is small is read."""
    notes = list(origin.notes) if origin is not None else []
    archive = Archive(options.out)
    with Workplace(options.out) as work, _meanwhile(start_spark) as started:
        began = time.monotonic()
        reading = Reading(origin, options.observations, options.starts, notes)
        spool = reading.here(work / "events")
        spark = started.result()
        if spool is None:
            spool = reading.by_spark(spark, work / "events")
        late = sum(archive.late_tables().values())
        if archive.exists():
            spool = archive.joined(spark, spool, work / "all")
        need_something(spool, _where(origin, options))
        say(f"✓ read {sum(spool.rows.values()):,} records ({time.monotonic() - began:.1f} s)")
        fit(spark, sum(spool.rows.values()))
        material = prepare(origin, spool, work, options)
        tables = compute(spark, spool, material, options, say, is_complete=options.since_ms is None)
        say(f"✓ {len(tables)} jobs")
        found = {
            **told(spool, origin, options, late),
            "tables": _counted(spark, tables, options.out),
            "source": sources(tables, options.out),
            "unseen": unseen_in(work),
            "notes": notes + _not_computed(tables),
        }
        archive.compact(spool)
    write_run(options.out, found)
    return spark, found


@contextmanager
def _meanwhile(start: Callable[[], SparkSession]) -> Iterator[Future[SparkSession]]:
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(start)


def _where(origin: Origin | None, options: RunOptions) -> str:
    return ", ".join([*([] if origin is None else [origin.where]), *options.observations])


def told(spool: Spool, origin: Origin | None, options: RunOptions, late: int) -> dict[str, Any]:
    """What the run file says of what was read, and by whom."""
    where = _where(origin, options)
    counted = {"samples": {"dropped": spool.dropped, "late": late}}
    nothing = {"dropped": 0, "late": 0}
    return {
        "v": 1,
        "run_id": uuid4().hex,
        "ended_ms": time.time_ns() // 1_000_000,
        **versions(),
        "clusters": [origin.cluster] if origin is not None else [],
        "range": {"from_ms": options.first_day_ms or spool.from_ms, "to_ms": spool.to_ms},
        "inputs": [
            {"name": name, "where": where, "rows": rows, **counted.get(name, nothing)}
            for name, rows in spool.rows.items()
        ],
        "seen": seen_in(spool.path),
        "thresholds": dict(options.thresholds),
        "command": options.command,
    }


def _counted(spark: SparkSession, tables: list[dict[str, Any]], out: Path) -> list[dict[str, Any]]:
    """Tables of Delta are counted by those who can read them."""
    for table in tables:
        if table["rows"] is None:
            table["rows"] = spark.read.format("delta").load(str(out / table["path"])).count()
    return tables


def sources(tables: list[dict[str, Any]], out: Path) -> dict[str, str]:
    """What each table was made from."""
    found = {each["name"]: source_of(out / each["path"]) for each in tables}
    return {name: source for name, source in found.items() if source is not None}


def _not_computed(tables: list[dict[str, Any]]) -> list[str]:
    from ottla.spark.pipeline.jobs import JOBS

    there = {table["name"] for table in tables}
    return [f"{name} was not computed: nothing that it needs was there to read" for name in JOBS if name not in there]
