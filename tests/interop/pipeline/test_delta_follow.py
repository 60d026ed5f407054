"""A stream with Delta tables has the rows of the Parquet tables that it copies, and of a run."""

from __future__ import annotations

from pathlib import Path

from tests.component.spark.delta_programs import told_by

PROGRAM = Path(__file__).with_name("delta_follow.py")


def test_following_copies_the_hours_that_have_changed(tmp_path: Path):
    """One process of the second step was killed when some tables were copied. The last one finds nothing new."""
    found = told_by(PROGRAM, tmp_path)
    first, second, third, last, of_run = found["steps"]
    for step in (first, second, third, of_run):
        assert {name for name, each in step.items() if not each["is_same"]} == set()
    assert {name for name, each in third.items() if each["rows"]} >= {"group_timeline", "consumer_lag", "findings"}
    assert last == third
    assert third["stability"]["versions"] == 3, "the killed process did not come to it"
    assert found["report"]
