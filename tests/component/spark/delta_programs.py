"""Programs with Delta tables. Delta needs settings of its own, so it has a Spark of its own, in another process."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyspark
import pytest

from tests.docs.blocks import ROOT
from tests.interop.jars import DELTA

__all__ = ["delta_jars", "told_by"]

SPARK = "4.2."
"""What Delta was built with; no version of it is for a newer Spark yet."""
FETCH_S = 300
RUN_S = 900


def delta_jars() -> str:
    """The paths of the jars, with commas; skips a test without them."""
    pytest.importorskip("delta", reason="needs ottla[delta]")
    if not pyspark.__version__.startswith(SPARK):
        pytest.skip(f"{DELTA} is for Spark {SPARK}x, not for {pyspark.__version__}")
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


def told_by(program: Path, place: Path) -> dict[str, Any]:
    """What a program has found."""
    done = subprocess.run(
        [sys.executable, str(program), delta_jars(), str(place)],
        capture_output=True, text=True, timeout=RUN_S, check=False, cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr + (place / "spark.log").read_text()[-5000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found
