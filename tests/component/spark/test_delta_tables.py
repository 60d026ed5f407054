"""Delta tables: what a run merges, what a stream copies, and what becomes of a table of an earlier version of ottla.

Delta needs settings of its own, so it has a Spark of its own, in another process.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.docs.blocks import ROOT
from tests.interop.jars import DELTA

FETCH_S = 300
RUN_S = 300
RUNS, STREAM = "delta_steps.py", "delta_follow.py"
"""The programs."""


@pytest.fixture(scope="module")
def jars() -> str:
    pytest.importorskip("delta", reason="needs ottla[delta]")
    if shutil.which("java") is None or shutil.which("mvn") is None:
        pytest.skip("Delta needs Java, and Maven to fetch its jars")
    try:
        done = subprocess.run(
            [sys.executable, "-m", "tests.interop.jars", DELTA],
            cwd=ROOT, capture_output=True, text=True, timeout=FETCH_S, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        pytest.skip(f"Maven did not fetch Delta's jars within {FETCH_S} s")
    if done.returncode:
        pytest.skip(f"Delta's jars could not be fetched: {done.stderr.strip().splitlines()[-1]}")
    return ",".join(map(str, sorted(Path(done.stdout.strip()).glob("*.jar"))))


def told_by(program: str, jars: str, place: Path) -> dict[str, Any]:
    """What a program has found."""
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name(program)), jars, str(place)],
        capture_output=True, text=True, timeout=RUN_S, check=False, cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr + (place / "spark.log").read_text()[-5000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def steps(jars: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """By the names of the steps."""
    return told_by(RUNS, jars, tmp_path_factory.mktemp("delta"))


def test_the_same_rows_add_no_version(steps: dict[str, Any]):
    assert steps["again"]["versions"] == steps["first"]["versions"] == 1


def test_rows_are_changed_added_and_deleted_in_the_days_of_a_run(steps: dict[str, Any]):
    assert steps["first"]["rows"] == [["a", 1, "2026-01-01"], ["b", 2, "2026-01-02"], ["c", 3, "2026-01-02"]]
    assert steps["changed"]["rows"] == [["a", 1, "2026-01-01"], ["b", 5, "2026-01-02"], ["d", 6, "2026-01-02"]]


def test_columns_that_an_earlier_version_lacked_are_added(steps: dict[str, Any]):
    assert steps["older"]["columns"] == ["name", "source", "run_date"]
    assert steps["newer"]["rows"] == [["a", None, "2026-01-01"], ["b", 5, "2026-01-02"]]


def test_following_copies_the_hours_that_have_changed(jars: str, tmp_path: Path):
    """One process of the second step was killed when some tables were copied. The last one finds nothing new."""
    found = told_by(STREAM, jars, tmp_path)
    first, second, third, last, of_run = found["steps"]
    for step in (first, second, third, of_run):
        assert {name for name, each in step.items() if not each["is_same"]} == set()
    assert {name for name, each in third.items() if each["rows"]} >= {"group_timeline", "consumer_lag", "findings"}
    assert last == third
    assert third["quorum_lag"]["versions"] == 3
    assert found["report"]
