"""Delta tables: what a run merges, and what becomes of a table of an earlier version of ottla."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.component.spark.delta_programs import told_by

PROGRAM = Path(__file__).with_name("delta_steps.py")


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """By the names of the steps."""
    return told_by(PROGRAM, tmp_path_factory.mktemp("delta"))


def test_the_same_rows_add_no_version(steps: dict[str, Any]):
    assert steps["again"]["versions"] == steps["first"]["versions"] == 1


def test_rows_are_changed_added_and_deleted_in_the_days_of_a_run(steps: dict[str, Any]):
    assert steps["first"]["rows"] == [["a", 1, "2026-01-01"], ["b", 2, "2026-01-02"], ["c", 3, "2026-01-02"]]
    assert steps["changed"]["rows"] == [["a", 1, "2026-01-01"], ["b", 5, "2026-01-02"], ["d", 6, "2026-01-02"]]


def test_columns_that_an_earlier_version_lacked_are_added(steps: dict[str, Any]):
    assert steps["older"]["columns"] == ["name", "source", "run_date"]
    assert steps["newer"]["rows"] == [["a", None, "2026-01-01"], ["b", 5, "2026-01-02"]]
