"""Room to work in, what was written where, and what is known before any job runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ottla.spark.errors import OttlaSparkError
from ottla.spark.jobs.share_configs import share_limits
from ottla.spark.jobs.tables import Table, columns
from ottla.spark.pipeline import tables
from ottla.spark.pipeline.event_decoder import EVENT_COLUMNS
from ottla.spark.pipeline.event_lookup import KnownFromEvents, configs_in, kinds_in, metadata_table, topic_names
from ottla.spark.pipeline.run_directory import RunDirectory
from ottla.spark.pipeline.run_file import read_run, write_run
from ottla.spark.pipeline.tables import Days, TableFigures, dataset_of, day_of, table_path, write_few
from ottla.spark.schemas import arrow_schema
from tests.unit.spark.log_directories import CLUSTER
from tests.unit.spark.pipeline.cluster_files import DAY, NOON, ClusterFiles
from tests.unit.spark.pipeline.ingesting import read


def test_one_at_a_time_works_in_a_directory(tmp_path: Path):
    with RunDirectory(tmp_path) as work:
        (work / "something").write_text("x")
        with pytest.raises(OttlaSparkError, match="is in use by another pipeline"), RunDirectory(tmp_path):
            pass
    assert not work.exists()
    with RunDirectory(tmp_path):
        pass


def test_what_a_killed_run_left_is_taken_away(tmp_path: Path):
    (tmp_path / ".work-dead" / "events").mkdir(parents=True)
    with RunDirectory(tmp_path):
        assert not (tmp_path / ".work-dead").exists()


def test_a_run_file_is_there_as_a_whole_or_not_at_all(tmp_path: Path):
    assert read_run(tmp_path) is None
    write_run(tmp_path, {"v": 1, "notes": ["ü"]})
    assert read_run(tmp_path) == {"v": 1, "notes": ["ü"]}
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


# --- tables -----------------------------------------------------------------------------------------------------------


def written(path: Path, day: str, *sources: str) -> None:
    (path / f"run_date={day}").mkdir(parents=True)
    pq.write_table(pa.table({"source": list(sources)}), path / f"run_date={day}" / "part.parquet")


def few(*rows: tuple[str, str, int]) -> pa.Table:
    names = ("cluster", "group", "ts", "run_date")
    return pa.Table.from_pylist([dict(zip(names, (*row, day_of(row[-1])), strict=True)) for row in rows])


TIMES = Table("times", columns("cluster:text group:text ts:long run_date:text"), ("cluster", "group", "ts"), "ts")
DAY_MS = 86_400_000


def rows_in(out: Path) -> dict[str, list[tuple[Any, ...]]]:
    """By file, in order."""
    path = table_path(out, TIMES.name)
    return {
        str(file.relative_to(path)): [tuple(row.values()) for row in pq.ParquetFile(file).read().to_pylist()]
        for file in sorted(path.rglob("*"))
        if file.is_file()
    }


def test_few_rows_replace_their_days_in_order(tmp_path: Path):
    day = table_path(tmp_path, TIMES.name) / "run_date=1970-01-01"
    day.mkdir(parents=True)
    for name in ("part-00000.snappy.parquet", ".part-00000.snappy.parquet.crc", ".part-0.parquet"):
        (day / name).write_bytes(b"of Spark, or of a run that was killed")
    rows = few(("c", "b", 1), ("c", "a", DAY_MS), ("c", "a", 2), ("c", "a", 1))
    write_few(rows, TIMES, tmp_path, Days())
    expected = {
        "run_date=1970-01-01/part-0.parquet": [("c", "a", 1), ("c", "a", 2), ("c", "b", 1)],
        "run_date=1970-01-02/part-0.parquet": [("c", "a", DAY_MS)],
    }
    assert rows_in(tmp_path) == expected
    write_few(rows, TIMES, tmp_path, Days())
    assert rows_in(tmp_path) == expected


def test_days_without_few_rows_go_if_they_were_computed(tmp_path: Path):
    write_few(few(("c", "a", 0), ("c", "a", DAY_MS), ("c", "a", 2 * DAY_MS)), TIMES, tmp_path, Days())
    write_few(few(("c", "b", 2 * DAY_MS)), TIMES, tmp_path, Days(first="1970-01-02"))
    assert rows_in(tmp_path) == {
        "run_date=1970-01-01/part-0.parquet": [("c", "a", 0)],
        "run_date=1970-01-03/part-0.parquet": [("c", "b", 2 * DAY_MS)],
    }
    write_few(few(("c", "a", 0)).slice(1), TIMES, tmp_path, Days())
    assert rows_in(tmp_path) == {}


def test_the_rows_of_a_day_come_into_files_that_are_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tables, "ROWS_IN_ORDER", 3)
    parts, path = tmp_path / "parts", table_path(tmp_path, TIMES.name)
    for day in ("1970-01-01", "1970-01-02"):
        (parts / day).mkdir(parents=True)
        (path / f"run_date={day}").mkdir(parents=True)
        for number in range(3):
            (path / f"run_date={day}" / f"part-{number}.parquet").write_bytes(b"of an earlier run")

    def put(day: str, part: str, *rows: tuple[str, str, int]) -> None:
        pq.write_table(few(*rows).drop_columns(["run_date"]), parts / day / f"{part}.parquet")

    put("1970-01-01", "part-a", ("c", "z", 3), ("c", "b", 1))
    put("1970-01-01", "part-b", ("c", "a", 2))
    put("1970-01-01", "part-c", ("c", "y", 2), ("c", "c", 9))
    put("1970-01-02", "part-a", ("c", "b", DAY_MS))
    for day in ("1970-01-01", "1970-01-02"):
        tables.write_day(day, parts, path, TIMES)
    assert rows_in(tmp_path) == {
        "run_date=1970-01-01/part-0.parquet": [("c", "a", 2), ("c", "b", 1), ("c", "z", 3)],
        "run_date=1970-01-01/part-1.parquet": [("c", "c", 9), ("c", "y", 2)],
        "run_date=1970-01-02/part-0.parquet": [("c", "b", DAY_MS)],
    }


@pytest.mark.parametrize(
    ("sources", "expected"),
    [(("records",), "records"), (("samples", "samples"), "samples"), (("records", "samples"), "both")],
)
def test_where_rows_come_from(tmp_path: Path, sources: tuple[str, ...], expected: str):
    written(tmp_path / "tables" / "t", "2026-01-01", *sources)
    figures = TableFigures(tmp_path)
    assert (figures.source("t"), figures.rows("t")) == (expected, len(sources))
    written(tmp_path / "tables" / "t", "2026-01-02", "records")
    assert figures.rows("t") == len(sources) + 1


def test_a_table_without_rows_is_none(tmp_path: Path):
    figures = TableFigures(tmp_path)
    assert (figures.source("t"), dataset_of(tmp_path), figures.rows("t")) == (None, None, 0)


def test_days_of_an_earlier_version_have_nulls_in_new_columns(tmp_path: Path):
    written(tmp_path, "2026-01-01", "records")
    day = tmp_path / "run_date=2026-01-02"
    day.mkdir()
    pq.write_table(pa.table({"source": ["samples"], "lag": pa.array([7], pa.int32()), "gone": [1]}), day / "p.parquet")
    found = dataset_of(tmp_path, columns("source:text lag:long run_date:text")).to_table().sort_by("run_date")
    assert found.schema.field("lag").type == pa.int64()
    assert found.to_pylist() == [
        {"source": "records", "lag": None, "run_date": "2026-01-01"},
        {"source": "samples", "lag": 7, "run_date": "2026-01-02"},
    ]


def test_days_have_bounds_or_none():
    assert day_of(NOON) == "2024-10-04"
    assert Days().has("1970-01-01")
    some = Days("2024-10-03", "2024-10-05")
    assert [some.has(day) for day in ("2024-10-02", "2024-10-03", "2024-10-05", "2024-10-06")] == [
        False,
        True,
        True,
        False,
    ]
    assert some.condition("d") == "d >= '2024-10-03' and d <= '2024-10-05'"
    assert Days().condition("d") == "true"


# --- what is known ----------------------------------------------------------------------------------------------------


@pytest.fixture
def events(tmp_path: Path) -> Path:
    with ClusterFiles(tmp_path / "cluster") as made:
        made.sample(NOON, "topic", "orders", topic="orders", id="id-1", partitions=[{"partition": 0, "leader": 1}])
        made.sample(NOON, "group", "billing", group="billing", type="consumer", state="Stable")
        made.sample(NOON, "cluster", "cluster", brokers=[{"id": 1, "host": "h", "port": 9092}])
        values = {"share.delivery.count.limit": "3"}
        made.sample(NOON, "configs", "group:risk", resource="group", name="risk", values=values)
        made.sample(NOON + 1, "cluster", "cluster", error="UNREACHABLE")
        made.share(NOON, "risk", [(0, 0, 2, 1)], start=0)
    return read(made.path, tmp_path / "events").path


def metadata(*rows: tuple[str, dict[str, Any]]) -> pa.Table:
    table = metadata_table("c", None, {})
    same = {"cluster": "c", "offset": 0, "timestamp": NOON - DAY, "version": 0, "epoch": 0}
    made = [{**same, "type": kind, "value": json.dumps(value)} for kind, value in rows]
    return pa.Table.from_pylist(made, schema=table.schema)


def test_names_of_topics_from_both_sides(events: Path):
    told = metadata(("TopicRecord", {"name": "gone", "topicId": "id-0"}))
    assert topic_names(told) == {"id-0": "gone"}
    assert KnownFromEvents().take(events).topic_names == {"id-1": "orders"}


def test_settings_from_both_sides(events: Path):
    lock = {"resourceType": 4, "resourceName": "", "name": "group.share.record.lock.duration.ms", "value": "9000"}
    known = KnownFromEvents().take(events).configs
    found = share_limits([*configs_in(CLUSTER, metadata(("ConfigRecord", lock))), *known])
    assert found == {(CLUSTER, ""): (5, 9_000), (CLUSTER, "risk"): (3, 9_000)}


def test_what_there_is_in_the_cluster(events: Path):
    nodes = [{"id": 1, "host": "h", "port": 9092, "rack": None}]
    assert KnownFromEvents().take(events).seen == {
        "nodes": nodes,
        "topics": 1,
        "partitions": 1,
        "groups": {"consumer": 1},
    }


def test_samples_that_do_not_fit_their_kind_tell_nothing(tmp_path: Path):
    """Any client may write anything to the topic."""
    with ClusterFiles(tmp_path / "cluster") as made:
        for kind in ("topic", "group", "configs", "lag"):
            made.sample(NOON, kind, "x", unknown=1)
        made.sample(NOON, "cluster", "cluster", brokers=7)
    known = KnownFromEvents().take(read(made.path, tmp_path / "events").path)
    assert (known.seen, list(known.configs), known.topic_names) == ({}, [], {})


def test_a_quorum_that_was_sampled_in_vain_was_not_sampled(tmp_path: Path):
    """Then the elections of the metadata log are all that is known of it, in a run and in a stream."""
    with ClusterFiles(tmp_path / "cluster") as made:
        made.sample(NOON, "quorum", "q", error="CLUSTER_AUTHORIZATION_FAILED")
    known = KnownFromEvents().take(read(made.path, tmp_path / "events").path)
    assert known.with_quorum == set()
    with ClusterFiles(tmp_path / "cluster") as made:
        made.quorum(NOON + 1, epoch=1)
    assert known.take(read(made.path, tmp_path / "more").path).with_quorum == {CLUSTER}


def test_the_last_record_tells_the_type_of_a_group_whichever_file_has_it(tmp_path: Path):
    schema = arrow_schema({name: kind for name, kind in EVENT_COLUMNS.items() if name != "input"})
    parts = (("ShareGroupMetadata", 5), ("ConsumerGroupMetadata", 9)), (("ShareGroupMetadata", 7), ("GroupMetadata", 1))
    for number, told in enumerate(parts):
        rows = [{"cluster": "c", "group": "g", "type": kind, "ts": ts, "value": b"x"} for kind, ts in told]
        rows.append({"cluster": "c", "group": "g", "type": "StreamsGroupMetadata", "ts": 20, "value": None})
        path = tmp_path / "input=records" / f"part-{number}.parquet"
        path.parent.mkdir(exist_ok=True)
        pq.write_table(pa.Table.from_pylist(rows, schema), path)
    (known,) = KnownFromEvents().take(tmp_path).group_types().to_pylist()
    assert known == {"cluster": "c", "group": "g", "type": "consumer"}


def test_which_kinds_there_are(events: Path):
    found = kinds_in(events)
    assert found["records"] == {"ShareUpdate"}
    assert found["samples"] == {"topic", "group", "cluster", "configs"}
    assert kinds_in(events / "nothing") == {"records": frozenset(), "samples": frozenset()}


def test_topics_that_a_cluster_names_stand_for_its_log():
    table = metadata_table("c", None, {"orders": "id"})
    (row,) = table.to_pylist()
    assert (row["type"], json.loads(row["value"])) == ("TopicRecord", {"name": "orders", "topicId": "id"})
