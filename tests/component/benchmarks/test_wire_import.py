"""The benchmark of imports: what it starts must work, and bytecode must be where it says."""

from pathlib import Path

import pytest

from benchmarks import runner


def test_bytecode_is_written_where_it_is_wanted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    runner.run_python("import colorsys", str(tmp_path))
    assert list(tmp_path.rglob("colorsys*.pyc"))
