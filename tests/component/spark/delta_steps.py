"""Writes Delta tables as runs of the pipeline do, and prints what is in them after each step."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from ottla.spark.jobs.tables import Table, columns
from ottla.spark.pipeline.session import pipeline_session
from ottla.spark.pipeline.tables import Days, table_path, write_table
from ottla.spark.records.types import ddl

TABLE = Table("made_up", columns("name:text lag:long source:text run_date:text"), ("name",), "lag")
OLDER = Table("older", columns("name:text source:text run_date:text"), ("name",), "lag")
FIRST, SECOND = "2026-01-01", "2026-01-02"


def main() -> None:
    jars, out = sys.argv[1], Path(sys.argv[2])
    conf = {"spark.jars": jars, "spark.sql.shuffle.partitions": "1"}
    spark = pipeline_session("local[2]", log=out / "spark.log", delta=True, is_small=True, conf=conf)

    def write(rows: list[tuple[Any, ...]], days: Days, table: Table = TABLE, name: str = "made_up") -> dict[str, Any]:
        frame = spark.createDataFrame(rows, ddl(table.columns))
        write_table(frame, table._replace(name=name), out, days, "delta")
        path = table_path(out, name)
        found = spark.read.format("delta").load(str(path))
        shown = [each for each in ("name", "lag", "run_date") if each in found.columns]
        return {
            "columns": found.columns,
            "rows": sorted([list(row) for row in found.select(*shown).collect()], key=str),
            "versions": len(list((path / "_delta_log").glob("*.json"))),
        }

    first = [("a", 1, "x", FIRST), ("b", 2, "x", SECOND), ("c", 3, "x", SECOND)]
    steps = {
        "first": write(first, Days()),
        "again": write(first, Days()),
        "changed": write([("b", 5, "x", SECOND), ("d", 6, "x", SECOND)], Days(SECOND)),
        "older": write([("a", "x", FIRST), ("b", "x", SECOND)], Days(), OLDER, "older"),
        "newer": write([("b", 5, "x", SECOND)], Days(SECOND), name="older"),
    }
    sys.stdout.write(json.dumps(steps))
    spark.stop()


if __name__ == "__main__":
    main()
