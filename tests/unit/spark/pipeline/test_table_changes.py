"""Changes of tables, applied to one file for each hour."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from ottla.spark.jobs.stream_fold import ALL_OF_GROUP, Change, change_of
from ottla.spark.jobs.tables import GROUP_TIMELINE, QUORUM_LAG, SHARE_DELIVERY, TABLES
from ottla.spark.pipeline.table_changes import TableChanges, changes_by_hour, changes_in
from ottla.spark.pipeline.tables import dataset_of, table_path
from ottla.spark.worker_files import write_files
from tests.unit.spark.pipeline.cluster_files import NOON

HOUR = 3_600_000
ID, OTHER = "A" * 22, "B" * 22


def event(ts: int, seq: int, name: str = "created", group: str = "g", source: str = "records", **more: Any) -> Change:
    cells = {"cluster": "c", "group": group, "ts": ts, "seq": seq, "event": name, "source": source, **more}
    return change_of(GROUP_TIMELINE, cells)


def written(path: Path, changes: Iterable[Change]) -> Path:
    """Changes on disk, as workers write them."""
    columns = dict(zip(Change._fields, zip(*changes, strict=True), strict=True))
    types = {"table": pa.string(), "hour": pa.int64(), "key": pa.binary(), "body": pa.binary()}
    batch = pa.RecordBatch.from_pydict({name: pa.array(column, types[name]) for name, column in columns.items()})
    write_files(changes_by_hour([batch]), path, "part-0")
    return path


def rows(out: Path, name: str = "group_timeline") -> list[dict[str, Any]]:
    data = dataset_of(table_path(out, name), TABLES[name].columns)
    return (
        [] if data is None else data.to_table().sort_by([(each, "ascending") for each in TABLES[name].key]).to_pylist()
    )


def files(out: Path) -> dict[str, int]:
    return {str(file.relative_to(out)): file.stat().st_mtime_ns for file in out.rglob("*.parquet")}


def test_only_hours_that_changed_are_written(tmp_path: Path) -> None:
    tables = TableChanges(tmp_path)
    tables.apply(written(tmp_path / "one", [event(NOON, 1), event(NOON + HOUR, 2)]), {})
    before = files(tmp_path / "tables")
    assert sorted(before) == [
        "group_timeline/run_date=2024-10-04/hour-12.parquet",
        "group_timeline/run_date=2024-10-04/hour-13.parquet",
    ]
    tables.apply(written(tmp_path / "two", [event(NOON + HOUR, 2, "deleted"), event(NOON + HOUR, 3)]), {})
    after = files(tmp_path / "tables")
    assert [name for name in after if after[name] != before[name]] == [max(before)]
    assert [(row["seq"], row["event"]) for row in rows(tmp_path)] == [(1, "created"), (2, "deleted"), (3, "created")]
    assert {row["run_date"] for row in rows(tmp_path)} == {"2024-10-04"}


def test_the_same_changes_again_change_nothing(tmp_path: Path) -> None:
    changes = written(tmp_path / "one", [event(NOON, 1), event(NOON, 2), event(NOON, 1)._replace(body=None)])
    tables = TableChanges(tmp_path)
    tables.apply(changes, {})
    found = rows(tmp_path)
    assert [row["seq"] for row in found] == [2], "the last change of a row counts"
    TableChanges(tmp_path).apply(changes, {})
    assert rows(tmp_path) == found
    tables.apply_some([event(NOON, 2)._replace(body=None)], {})
    assert files(tmp_path / "tables") == {}, "an hour without rows has no file"


def test_a_group_that_has_records_loses_its_rows_from_samples(tmp_path: Path) -> None:
    tables = TableChanges(tmp_path)
    sampled = [event(NOON + each * HOUR, each, group=group, source="samples") for each in range(3) for group in "ab"]
    tables.apply(written(tmp_path / "one", sampled), {})
    forget = Change(ALL_OF_GROUP, 0, msgspec.msgpack.encode(["c", "a"]), None)
    tables.apply(written(tmp_path / "two", [event(NOON, 9, group="a"), forget]), {})
    assert [(row["group"], row["source"]) for row in rows(tmp_path)] == [("a", "records"), *[("b", "samples")] * 3]


def test_names_of_topics_are_filled_in_when_they_are_known(tmp_path: Path) -> None:
    gained = event(NOON, 1, "partition_gained", new=json.dumps([f"{ID}-0", f"{OTHER}-1", "classic-2"]))
    share = {"cluster": "c", "group": "g", "topic_id": ID, "partition": 0, "window_start": NOON, "source": "records"}
    told = change_of(SHARE_DELIVERY, {**share, "topic": None, "poison": []})
    TableChanges(tmp_path).apply(written(tmp_path / "one", [gained, told]), {OTHER: "b"})
    assert json.loads(rows(tmp_path)[0]["new"]) == ["b-1", "classic-2", f"{ID}-0"]
    later = TableChanges(tmp_path)
    later.name_topics({OTHER: "b"})
    assert rows(tmp_path, "share_delivery")[0]["topic"] is None
    later.name_topics({ID: "orders"})
    assert json.loads(rows(tmp_path)[0]["new"]) == ["b-1", "orders-0", "classic-2"]
    assert rows(tmp_path, "share_delivery")[0]["topic"] == "orders"
    before = files(tmp_path / "tables")
    TableChanges(tmp_path).name_topics({ID: "orders"})
    assert files(tmp_path / "tables") == before, "what is named is not looked at again"


@pytest.mark.parametrize("source", ["records", "samples"])
def test_rows_from_a_source_are_withdrawn(tmp_path: Path, source: str) -> None:
    tables = TableChanges(tmp_path)
    cells = [
        {"cluster": cluster, "replica": number, "window_start": NOON, "source": each}
        for cluster in ("c", "d")
        for number, each in enumerate(("records", "samples"))
    ]
    tables.apply_some([change_of(QUORUM_LAG, each) for each in cells], {})
    tables.withdraw(QUORUM_LAG, [NOON // HOUR, NOON // HOUR + 1], source, {"c"})
    left = [(row["cluster"], row["source"]) for row in rows(tmp_path, "quorum_lag")]
    assert left == [("c", each) for each in ("records", "samples") if each != source] + [
        ("d", "records"),
        ("d", "samples"),
    ]


def test_tables_that_are_made_anew_are_empty_first(tmp_path: Path) -> None:
    tables = TableChanges(tmp_path)
    tables.apply(written(tmp_path / "one", [event(NOON, 1)]), {})
    tables.begin()
    assert files(tmp_path / "tables") == {}
    assert list(changes_in(tmp_path / "nothing")) == []
