"""Following a worked example of docs/how-to/extending.md word for word gives an API that works."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.docs.worked_examples import follow, steps, titles

ROOT = Path(__file__).parents[2]
PARTS = ("src", "simulation", "tests", "tools", "benchmarks", "docs", "pyproject.toml")


@pytest.mark.parametrize("title", titles())
def test_an_example_works_as_it_is_written(title: str, tmp_path: Path) -> None:
    for part in PARTS:
        copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy2
        copy(ROOT / part, tmp_path / part)
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": programs, "PYTHONPATH": str(tmp_path / "src")}
    for step in steps(title):
        follow(step, tmp_path, environment)
