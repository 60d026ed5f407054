"""Runs and streams over the files of a small cluster."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from pyspark.errors import StreamingQueryException

from ottla.spark.jobs.tables import TABLES
from ottla.spark.pipeline.batch import run
from ottla.spark.pipeline.options import RunOptions
from ottla.spark.pipeline.origins import directory_origin
from ottla.spark.pipeline.run_file import read_run
from ottla.spark.pipeline.stream import Follower, start_stream
from ottla.spark.pipeline.tables import dataset_of, table_path
from tests.unit.spark.pipeline.cluster_files import DAY, NOON, ClusterFiles, busy_day

Rows = list[dict[str, Any]]
Tables = dict[str, Rows]
TOPIC = "ottla.observations"
LATE_WORKER = "Python worker failed to connect back"
"""Spark gives a new process ten seconds, which cannot be set, and which a starved machine may take."""
WORKER_TRIES = 4


def tables_in(out: Path) -> Tables:
    """The rows of all tables, in the order of their keys."""
    found: Tables = {}
    for name, table in TABLES.items():
        data = dataset_of(table_path(out, name))
        rows = [] if data is None else data.to_table().to_pylist()
        found[name] = sorted(rows, key=lambda row: [str(row[key]) for key in table.key])
    return found


def run_over(spark: Any, cluster: Path, out: Path, **options: Any) -> Tables:
    run(lambda: spark, directory_origin([str(cluster)], TOPIC), RunOptions(out=out, **options), lambda _: None)
    return tables_in(out)


def stream_over(spark: Any, cluster: Path, out: Path, **options: Any) -> Tables:
    """All that is there, as a stream reads it."""
    origin = directory_origin([str(cluster)], TOPIC)
    work = out / ".work-test"
    work.mkdir(parents=True, exist_ok=True)
    follower = Follower(origin, RunOptions(out=out, **options), work, lambda _: None)
    for tries_left in reversed(range(WORKER_TRIES)):
        query = start_stream(spark, follower)
        try:
            query.awaitTermination()
            break
        except StreamingQueryException as error:
            if LATE_WORKER not in str(error) or not tries_left:
                raise
        finally:
            query.stop()
    return tables_in(out)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with ClusterFiles(tmp_path_factory.mktemp("cluster")) as made:
        busy_day(made)
    return made.path


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("out")


@pytest.fixture(scope="module")
def batch(spark: Any, cluster: Path, out: Path) -> Tables:
    return run_over(spark, cluster, out)


def test_a_run_fills_the_tables(batch: Tables, out: Path):
    assert {name for name, rows in batch.items() if rows} >= {
        "group_timeline", "rebalances", "stability", "share_delivery", "quorum_lag", "consumer_lag", "findings",
    }  # fmt: skip
    share = batch["share_delivery"]
    assert (sum(row["accepted"] for row in share), sum(row["released"] for row in share)) == (36, 36)
    assert {(row["group"], row["source"]) for row in batch["consumer_lag"]} == {
        ("audit", "samples"),
        ("billing", "records"),
    }
    assert batch["consumer_lag"][-1]["lag_records"] is not None, "the topic's own log tells where it ended"
    assert sum(row["elections"] for row in batch["quorum_lag"]) == 2
    assert [(row["group_epoch"], row["ended_by"]) for row in batch["rebalances"]][:1] == [(1, "converged")]
    told = read_run(out)
    assert told is not None
    assert {each["name"]: each["rows"] for each in told["inputs"]} == {"records": 44, "commits": 36, "samples": 72}
    assert {each["name"]: each["rows"] for each in told["tables"]} == {
        name: len(rows) for name, rows in batch.items() if rows or name == "task_movement"
    }


def test_a_second_run_changes_nothing(spark: Any, cluster: Path, out: Path, batch: Tables):
    assert run_over(spark, cluster, out) == batch


def test_a_stream_gives_the_tables_of_a_run(spark: Any, cluster: Path, batch: Tables, tmp_path: Path):
    """In two steps: what is there at noon, and what has come a while later. The second process begins where the first
    was killed, in the midst of a step that had written half of what it had to."""
    later = tmp_path / "later"
    with ClusterFiles(later) as made:
        busy_day(made, minutes=2)
    stream_over(spark, later, tmp_path / "out")
    shutil.rmtree(tmp_path / "out" / "checkpoint" / "commits")  # killed before the step was done
    shutil.rmtree(tmp_path / "out" / "tables" / "consumer_lag")
    shutil.copytree(cluster, later, dirs_exist_ok=True)
    found = stream_over(spark, later, tmp_path / "out")
    assert {name: len(rows) for name, rows in found.items()} == {name: len(rows) for name, rows in batch.items()}
    assert found == batch


def test_rows_that_come_late_reach_the_tables_with_the_next_run(spark: Any, tmp_path: Path):
    path, out = tmp_path / "cluster", tmp_path / "out"
    with ClusterFiles(path) as made:
        made.quorum(NOON, epoch=1)
        made.quorum(NOON + 3_600_000, epoch=1)
    stream_over(spark, path, out)
    with ClusterFiles(path) as made:
        made.quorum(NOON + 1_800_000, epoch=1, observer="two")
        made.quorum(NOON + 3_500_000, epoch=1, observer="two")
    windows = [row["window_start"] for row in stream_over(spark, path, out)["quorum_lag"]]
    assert windows == [NOON, NOON + 3_500_000, NOON + 3_600_000], "less than ten minutes is not late"
    late = ds.dataset(out / "late_quorum_lag", partitioning="hive").to_table().to_pylist()
    assert [row["ts"] for row in late] == [NOON + 1_800_000]
    windows = [row["window_start"] for row in run_over(spark, path, out)["quorum_lag"]]
    assert windows == [NOON, NOON + 1_800_000, NOON + 3_500_000, NOON + 3_600_000]
    assert not (out / "late_quorum_lag").exists()
    told = read_run(out)
    assert told is not None
    assert [each["late"] for each in told["inputs"] if each["name"] == "samples"] == [1]


def test_gaps_and_restarts_of_the_observer(spark: Any, tmp_path: Path):
    """An observer that was away for ten minutes, and began anew, as another, with its first number: each sample counts
    once, and what it could not see is not made up."""
    with ClusterFiles(tmp_path / "cluster") as made:
        for second in range(0, 60, 10):
            made.lag(NOON + second * 1_000, "audit", committed=second, end=second + 5)
        made.sample(NOON + 61_000, "lag", "audit:orders-0", error="UNREACHABLE")
        made.restart()
        for second in range(660, 720, 10):
            made.lag(NOON + second * 1_000, "audit", committed=100, end=second, observer="two")
    found = run_over(spark, tmp_path / "cluster", tmp_path / "out")["consumer_lag"]
    assert len(found) == 12
    after = next(row for row in found if row["window_start"] == NOON + 660_000)
    assert (after["stuck"], after["lag_records"]) == (False, 560)
    # At 50 s the log ended at 55, at 660 s at 660: offset 100 was its end after 95.4 s or so, as far as anyone can say.
    assert after["lag_seconds"] == pytest.approx(660 - (50 + 610 * 45 / 605), abs=0.1)


def test_days_before_the_range_are_left_as_they_are(spark: Any, tmp_path: Path):
    path, out = tmp_path / "cluster", tmp_path / "out"
    with ClusterFiles(path) as made:
        made.quorum(NOON, epoch=1)
        made.quorum(NOON + DAY, epoch=2)
    run_over(spark, path, out)
    before = {file: file.stat().st_mtime_ns for file in (out / "tables").rglob("*.parquet")}
    found = run_over(spark, path, out, since_ms=NOON + DAY)["quorum_lag"]
    assert [(row["window_start"], row["elections"]) for row in found] == [(NOON, 0), (NOON + DAY, 1)]
    kept = [file for file in before if file.exists() and file.stat().st_mtime_ns == before[file]]
    assert any("quorum_lag" in str(file) for file in kept)
