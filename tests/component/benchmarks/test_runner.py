"""The timing of benchmarks, with a clock and a machine of our own making."""

import argparse
import json
from pathlib import Path

import pytest

from benchmarks import runner
from benchmarks.runner import Case, Size, Subject


def test_results_can_be_judged_by_a_stranger(tmp_path: Path):
    out = tmp_path / "deep" / "out.json"
    options = argparse.Namespace(rounds=2, window=0.001, size=Size.FULL, only="task", out=out)
    cases = [Case("a task", [Subject("ottla", abs, [(-1,)])], {"message_bytes": 3}), Case("other", [])]
    runner.run("test", cases, options, ["pytest"])
    content = json.loads(out.read_text(encoding="utf-8"))
    assert content["settings"] == {"rounds": 2, "window_s": 0.001}
    assert set(content["versions"]) == {"python", "pytest"}
    assert content["machine"]["cores"] >= 1
    assert content["commit"]
    (row,) = content["results"]
    assert (row["case"], row["subject"], row["message_bytes"]) == ("a task", "ottla", 3)
    assert len(row["windows_s"]) == 2
    assert 0 < row["best_s"] <= row["median_s"]


@pytest.mark.parametrize(
    ("arguments", "files"),
    [
        ([], ["test.json"]),
        (["--only", "task"], ["test-part.json"]),
        (["--quick"], ["test-part.json"]),
        (["--smoke"], []),
    ],
)
def test_only_a_whole_run_replaces_what_is_kept(
    arguments: list[str], files: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(runner, "RESULTS", tmp_path)
    runner.run("test", [], runner.read_windows(runner.parser(None), arguments), [])
    assert [path.name for path in tmp_path.iterdir()] == files


def test_only_a_clean_tree_is_called_by_its_commit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(runner, "ROOT", tmp_path)
    assert runner.commit() == "unknown"
