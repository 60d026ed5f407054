"""Runs over the files of a small cluster, and following it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, NamedTuple

import cramjam
import pyarrow.dataset as ds
import pytest
from msgspec.structs import replace

from ottla.health.samples import encode
from ottla.spark.jobs.tables import TABLES
from ottla.spark.pipeline import job_runner, recent_lag
from ottla.spark.pipeline.archive import Archive
from ottla.spark.pipeline.batch import run
from ottla.spark.pipeline.follow import Follower
from ottla.spark.pipeline.options import RunOptions
from ottla.spark.pipeline.origins import directory_origin
from ottla.spark.pipeline.run_file import read_run
from ottla.spark.pipeline.tables import dataset_of, table_path
from tests.unit.spark.log_directories import CLUSTER
from tests.unit.spark.pipeline.cluster_files import DAY, NOON, ClusterFiles, busy_day
from tests.unit.spark.pipeline.ingesting import read

Rows = list[dict[str, Any]]
Tables = dict[str, Rows]
TOPIC = "ottla.observations"


def tables_in(out: Path) -> Tables:
    """The rows of all tables, in the order of their keys."""
    found: Tables = {}
    for name, table in TABLES.items():
        data = dataset_of(table_path(out, name))
        rows = [] if data is None else data.to_table().to_pylist()
        found[name] = sorted(rows, key=lambda row: [str(row[key]) for key in table.key])
    return found


def origin_of(cluster: Path | None) -> Any:
    return None if cluster is None else directory_origin([str(cluster)], TOPIC)


def run_over(spark: Any, cluster: Path | None, out: Path, **options: Any) -> Tables:
    run(lambda: spark, origin_of(cluster), RunOptions(out=out, **options), lambda _: None)
    return tables_in(out)


def follow_over(spark: Any, cluster: Path | None, out: Path, *directories: Path, **options: Any) -> Tables:
    """One step of a new process: all that is new there."""
    work = out / ".work-test"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    observations = tuple(map(str, directories))
    follower = Follower(
        lambda: origin_of(cluster),
        RunOptions(out=out, observations=observations, **options),
        work,
        lambda _: None,
    )
    try:
        follower.step(spark)
    finally:
        follower.close()
    return tables_in(out)


class KilledError(Exception):
    """The process ends here."""


def write_observations(directory: Path, samples: list[Any], number: int) -> None:
    path = directory / "kind=quorum" / "date=2024-10-04" / f"aaaa-{number:012d}.jsonl.zst"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes(cramjam.zstd.compress(b"".join(encode(each) + b"\n" for each in samples))))


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


def test_workers_make_the_rows_that_the_driver_makes_of_few(
    spark: Any, cluster: Path, batch: Tables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(job_runner, "DRIVER_ROWS", 0)
    assert run_over(spark, cluster, tmp_path) == batch


def test_the_driver_replaces_what_workers_have_written(
    spark: Any, cluster: Path, batch: Tables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    with monkeypatch.context() as patch:
        patch.setattr(job_runner, "DRIVER_ROWS", 0)
        run_over(spark, cluster, tmp_path)
    assert run_over(spark, cluster, tmp_path) == batch


class Growing(NamedTuple):
    """A cluster at noon, and ten minutes later, with the tables of a run over all of it."""

    first: Path
    last: Path
    tables: Tables


@pytest.fixture(scope="module")
def growing(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Growing:
    base = tmp_path_factory.mktemp("growing")
    first, last = base / "first", base / "last"
    with ClusterFiles(last) as made:
        busy_day(made, minutes=2)
    shutil.copytree(last, first)
    with ClusterFiles(last) as made:
        made.restart()
        made.rebalance(NOON + 600_000, "billing", 3, "three")
        made.rebalance(NOON + 600_000, "shipping", 1, "one")
        for second in range(0, 60, 5):
            ts = NOON + 600_000 + second * 1_000
            made.data(ts)
            made.commit(ts, "shipping", second)
            made.share(ts, "risk", [(1, 1, 0, 2 + second // 5), (200 + second, 200 + second, 2, 1)])
            # A while late.
            made.quorum(ts - 400_000, epoch=2, observer="two")
            made.lag(ts - 300_000, "audit", committed=200 + second, end=300 + 2 * second, observer="two")
    return Growing(first, last, run_over(spark, last, base / "out"))


@pytest.mark.parametrize(
    ("place", "rows_in_process"), [("table_stream.changes_in", recent_lag.ROWS_IN_PROCESS), ("follow.write_run", 0)]
)
def test_following_gives_the_tables_of_a_run(
    spark: Any, growing: Growing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, rows_in_process: int
):
    """The third process begins where the second was killed: in the midst of a batch of the stream, or when all was done
    but the note of it. Lag is computed by the driver, or by Spark."""
    monkeypatch.setattr(recent_lag, "ROWS_IN_PROCESS", rows_in_process)
    later, out = tmp_path / "later", tmp_path / "out"
    shutil.copytree(growing.first, later)
    follow_over(spark, later, out)
    shutil.copytree(growing.last, later, dirs_exist_ok=True)

    def killed(*_: Any) -> None:
        raise KilledError("it was killed")

    with monkeypatch.context() as m:
        m.setattr(f"ottla.spark.pipeline.{place}", killed)
        with pytest.raises(Exception, match="it was killed"):
            follow_over(spark, later, out)
    found = follow_over(spark, later, out)
    assert {name: len(rows) for name, rows in found.items()} == {
        name: len(rows) for name, rows in growing.tables.items()
    }
    assert found == growing.tables
    assert {file.name.partition("-")[0] for file in (out / "tables").rglob("*.parquet")} == {"hour"}


def test_following_goes_on_after_a_run(spark: Any, growing: Growing, tmp_path: Path):
    """The run joins the steps, and the state of the stream is made anew from them."""
    later, out = tmp_path / "later", tmp_path / "out"
    shutil.copytree(growing.first, later)
    follow_over(spark, later, out)
    run_over(spark, later, out)
    assert [path.name for path in (out / "events").glob("step=*")] == ["step=00000001"]
    shutil.copytree(growing.last, later, dirs_exist_ok=True)
    assert follow_over(spark, later, out) == growing.tables
    assert sorted(path.name for path in (out / "events").glob("step=*")) == ["step=00000001", "step=00000002"]


def test_following_goes_on_after_a_run_that_was_killed(
    spark: Any, growing: Growing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The run has written tables, and did not come to join the steps."""
    later, out = tmp_path / "later", tmp_path / "out"
    shutil.copytree(growing.first, later)
    follow_over(spark, later, out)

    def killed(*_: Any) -> None:
        raise KilledError("it was killed")

    with monkeypatch.context() as m:
        m.setattr("ottla.spark.pipeline.batch._counted", killed)
        with pytest.raises(KilledError):
            run_over(spark, later, out)
    shutil.copytree(growing.last, later, dirs_exist_ok=True)
    assert follow_over(spark, later, out) == growing.tables


def test_a_run_over_some_days_leaves_nothing_out_of_the_steps(spark: Any, growing: Growing, tmp_path: Path):
    """What it left out would be missing for good: a stream goes on where the run ends."""
    later, out = tmp_path / "later", tmp_path / "out"
    shutil.copytree(growing.first, later)
    follow_over(spark, later, out)
    shutil.copytree(growing.last, later, dirs_exist_ok=True)
    run_over(spark, later, out, since_ms=NOON + 3 * DAY)
    archive = Archive(out)
    archive.open()
    expected = read(growing.last, tmp_path / "all").rows
    assert {name: archive.describe().rows[name] for name in ("records", "commits", "samples")} == {
        name: expected[name] for name in ("records", "commits", "samples")
    }


def test_files_of_an_observer_are_followed(spark: Any, tmp_path: Path):
    """They may be all that there is, and come from several clusters."""
    out, seen = tmp_path / "out", tmp_path / "seen"
    cluster = ClusterFiles(tmp_path / "unused")
    for number in range(3):
        body = {"leader": 1, "leader_epoch": number, "replicas": [{"id": 1, "log_end": 5}]}
        sample = cluster.make_sample(NOON + number * 20_000, "quorum", "q", **body)
        write_observations(seen, [sample, replace(sample, cluster="another")], number)
        found = follow_over(spark, None, out, seen)
    assert [(row["cluster"], row["elections"]) for row in found["quorum_lag"]] == [
        *[("another", elections) for elections in (0, 1, 1)],
        *[(CLUSTER, elections) for elections in (0, 1, 1)],
    ]
    assert found["quorum_lag"] == run_over(spark, None, tmp_path / "run", observations=(str(seen),))["quorum_lag"]


def test_rows_that_come_late_reach_the_tables_with_the_next_run(spark: Any, tmp_path: Path):
    path, out = tmp_path / "cluster", tmp_path / "out"
    with ClusterFiles(path) as made:
        made.quorum(NOON, epoch=1)
        made.quorum(NOON + 3_600_000, epoch=1)
    follow_over(spark, path, out)
    with ClusterFiles(path) as made:
        made.quorum(NOON + 1_800_000, epoch=1, observer="two")
        made.quorum(NOON + 3_500_000, epoch=1, observer="two")
    windows = [row["window_start"] for row in follow_over(spark, path, out)["quorum_lag"]]
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
