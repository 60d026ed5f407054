"""Follows a growing cluster with Delta tables, step by step, and prints how they compare with the Parquet tables that
they are copies of, and with the tables of a run."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ottla.spark.jobs.tables import TABLES
from ottla.spark.pipeline.batch import run
from ottla.spark.pipeline.delta_copy import HOURS, DeltaCopy
from ottla.spark.pipeline.follow import Follower
from ottla.spark.pipeline.options import RunOptions
from ottla.spark.pipeline.origins import DirectoryOrigin, directory_origin
from ottla.spark.pipeline.session import pipeline_session
from ottla.spark.pipeline.tables import dataset_of, table_path
from tests.unit.spark.pipeline.cluster_files import NOON, ClusterFiles, busy_day

TOPIC = "ottla.observations"
STEPS = 3
STEP_MS = 40 * 60_000


class KilledError(Exception):
    """The process ends here."""


def grow(cluster: Path, step: int) -> None:
    """Some minutes of a cluster, the next ones in another hour. One group commits first, and is sampled then."""
    start = NOON + step * STEP_MS
    with ClusterFiles(cluster) as made:
        made._seq = step * 1_000
        busy_day(made, start, minutes=1)
        made.rebalance(start + 30_000, "shipping", 1 + step, f"member-{step}")
        for second in range(0, 60, 10):
            made.commit(start + second * 1_000, "shipping", second)
            if step == 1:
                made.lag(start + second * 1_000, "shipping", committed=second, end=second + 3)


def origin_of(cluster: Path) -> DirectoryOrigin:
    return directory_origin([str(cluster)], TOPIC)


def follow_once(spark: Any, cluster: Path, out: Path) -> None:
    """One step of a new process."""
    work = out / ".work-test"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    options = RunOptions(out=out, format="delta")
    follower = Follower(lambda: origin_of(cluster), options, work, lambda _: None)
    try:
        follower.step(spark)
    finally:
        follower.close()


def killed_while_copying(spark: Any, cluster: Path, out: Path) -> None:
    """A process that is killed when some of the Delta tables are copied."""
    note, left = DeltaCopy._note, 3

    def killed(*args: Any) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise KilledError
        note(*args)

    DeltaCopy._note = killed  # type: ignore[method-assign]
    try:
        follow_once(spark, cluster, out)
    except KilledError:
        return
    finally:
        DeltaCopy._note = note  # type: ignore[method-assign]
    raise AssertionError("it was not killed")


def in_order(rows: list[dict[str, Any]], name: str) -> list[list[str]]:
    return sorted([str(row[column]) for column in TABLES[name].names] for row in rows)


def compared(spark: Any, delta: Path, parquet: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for name in TABLES:
        rows = dataset_of(table_path(parquet, name))
        expected = [] if rows is None else rows.to_table().to_pylist()
        path = table_path(delta, name)
        found = []
        if (path / "_delta_log").exists():
            found = [row.asDict() for row in spark.read.format("delta").load(str(path)).collect()]
        versions = len(list((path / "_delta_log").glob("*.json")))
        is_same = in_order(found, name) == in_order(expected, name)
        yield name, {"rows": len(found), "is_same": is_same, "versions": versions}


def main() -> None:
    jars, base = sys.argv[1], Path(sys.argv[2])
    conf = {"spark.jars": jars, "spark.sql.shuffle.partitions": "1"}
    spark = pipeline_session("local[2]", log=base / "spark.log", delta=True, is_small=True, conf=conf)
    cluster, delta = base / "cluster", base / "delta"
    steps = []
    for step in range(STEPS):
        grow(cluster, step)
        if step == 1:
            killed_while_copying(spark, cluster, delta)
        follow_once(spark, cluster, delta)
        steps.append(dict(compared(spark, delta, delta / HOURS)))
    follow_once(spark, cluster, delta)
    steps.append(dict(compared(spark, delta, delta / HOURS)))
    run(lambda: spark, origin_of(cluster), RunOptions(out=base / "run"), lambda _: None)
    steps.append(dict(compared(spark, delta, base / "run")))
    sys.stdout.write(json.dumps({"steps": steps, "report": (delta / "report.html").exists()}))
    spark.stop()


if __name__ == "__main__":
    main()
