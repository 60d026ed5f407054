"""Reading tables in pieces gives what reading them whole would."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import dataset

from ottla.spark.report import rows as rows_module
from ottla.spark.report.rows import Rows

TABLE = pa.table(
    {
        "cluster": ["a", "a", "b", "a", "b"],
        "group": ["x", "y", "x", "x", "x"],
        "ts": [5, 2, 9, 7, 1],
        "value": [1, None, 3, 4, 5],
        "items": [[1], [], None, [2, 3], [4]],
    }
)


@pytest.fixture(params=["table", "files"])
def rows(request: pytest.FixtureRequest, tmp_path: Path) -> Rows:
    if request.param == "table":
        return Rows(TABLE)
    for number in range(2):
        folder = tmp_path / f"run_date=2026-09-2{number}"
        folder.mkdir()
        pq.write_table(TABLE.slice(3 * number, 3), folder / "part.parquet")
    return Rows(dataset.dataset(tmp_path, format="parquet", partitioning="hive"))


@pytest.fixture(autouse=True, params=[1, 2, 1000])
def piece_rows(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows_module, "PIECE_ROWS", request.param)
    monkeypatch.setattr(rows_module, "MERGE_ROWS", 2)


def test_groups_are_put_together_from_pieces(rows: Rows):
    wanted = {"n": ("ts", "count"), "total": ("value", "sum"), "last": ("ts", "max"), "first": ("ts", "min")}
    assert rows.grouped(["cluster", "group"], wanted) == [
        {"cluster": "a", "group": "x", "n": 2, "total": 5, "last": 7, "first": 5},
        {"cluster": "a", "group": "y", "n": 1, "total": None, "last": 2, "first": 2},
        {"cluster": "b", "group": "x", "n": 2, "total": 8, "last": 9, "first": 1},
    ]


def test_the_newest_row_of_each_key(rows: Rows):
    assert rows.newest(["cluster", "group"], "ts", ["value", "items"]) == [
        {"cluster": "a", "group": "x", "ts": 7, "value": 4, "items": [2, 3]},
        {"cluster": "a", "group": "y", "ts": 2, "value": None, "items": []},
        {"cluster": "b", "group": "x", "ts": 9, "value": 3, "items": None},
    ]


def test_the_first_rows_in_an_order(rows: Rows):
    assert rows.top(["group", "value"], 2, [("value", "descending")]) == [
        {"group": "x", "value": 5},
        {"group": "x", "value": 4},
    ]


def test_filters_narrow_and_unknown_columns_are_null(rows: Rows):
    found = rows.where(pc.field("ts") > 4).among([("a", "x"), ("a", "y")])
    assert sorted(found.each(["ts", "nothing"]), key=lambda row: row["ts"]) == [
        {"ts": 5, "nothing": None},
        {"ts": 7, "nothing": None},
    ]
    assert found.count == 2
    assert rows.grouped(["group"], {"most": ("nothing", "max")})[0] == {"group": "x", "most": None}


def test_a_table_that_is_missing_has_no_rows():
    missing = Rows(None)
    assert missing.where(pc.field("ts") > 4).among([("a", "x")]).count == 0
    assert missing.grouped(["group"], {"n": ("ts", "count")}) == []
    assert missing.newest(["group"], "ts", []) == missing.top(["ts"], 1, [("ts", "ascending")]) == []


ROW = st.fixed_dictionaries(
    {"key": st.sampled_from("ab"), "ts": st.integers(0, 9), "value": st.none() | st.integers(0, 9)}
)


@settings(max_examples=20)
@given(st.lists(ROW, min_size=1, max_size=12))
def test_sums_do_not_depend_on_pieces(given_rows: list[dict[str, Any]]):
    schema = pa.schema([("key", pa.string()), ("ts", pa.int64()), ("value", pa.int64())])
    found = Rows(pa.Table.from_pylist(given_rows, schema=schema)).grouped(["key"], {"total": ("value", "sum")})
    for row in found:
        mine = [each["value"] for each in given_rows if each["key"] == row["key"] and each["value"] is not None]
        assert row["total"] == (sum(mine) if mine else None)
