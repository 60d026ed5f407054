"""The report of a directory of tables, as a page and as JSON."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ottla.spark.errors import OttlaSparkError
from ottla.spark.jobs.tables import TABLES
from ottla.spark.pipeline.run_file import RUN_FILE, read_run
from ottla.spark.pipeline.tables import dataset_of, table_path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["PAGE", "TWIN", "write_report"]

PAGE: Final = "report.html"
TWIN: Final = "report.json"


def write_report(out: Path, spark: SparkSession | None, parquet: Path | None = None) -> dict[str, Any]:
    """Write both from the tables in `out`, and return the facts. Delta tables need a session, unless `parquet` is a
    directory with the same tables as Parquet."""
    import msgspec

    from ottla.spark.report import facts_of, page

    run = read_run(out)
    if run is None:
        raise OttlaSparkError(f"{out / RUN_FILE} does not exist: run `ottla pipeline run --out {out}` first")
    facts = facts_of(_tables(out, run, spark, parquet), run, _generated(run))
    _replace(out / TWIN, msgspec.json.encode(facts))
    _replace(out / PAGE, page(facts).encode())
    return facts


def _generated(run: dict[str, Any]) -> int:
    return int(run.get("ended_ms") or 0)


def _tables(out: Path, run: dict[str, Any], spark: SparkSession | None, parquet: Path | None) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for table in run["tables"]:
        name, path = table["name"], table_path(out, table["name"])
        if name not in TABLES:
            continue
        if table["format"] != "delta" or parquet is not None:
            data = dataset_of(table_path(parquet or out, name), TABLES[name].columns)
        elif spark is None:
            raise OttlaSparkError("these are Delta tables: `ottla pipeline run` writes their report")
        else:
            data = spark.read.format("delta").load(str(path)).toArrow()
        if data is not None:
            found[name] = data
    return found


def _replace(path: Path, data: bytes) -> None:
    new = path.with_name(f".{path.name}.new")
    new.write_bytes(data)
    os.replace(new, path)
