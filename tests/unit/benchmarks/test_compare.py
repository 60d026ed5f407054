"""The comparison of two runs of a benchmark."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import compare


def content(rows: dict[tuple[str, str], float], processor: str = "one") -> dict[str, Any]:
    return {
        "commit": "abc",
        "measured_at": "today",
        "machine": {"processor": processor},
        "results": [{"case": case, "subject": subject, "best_s": best} for (case, subject), best in rows.items()],
    }


def only_change(old: dict[tuple[str, str], float], new: dict[tuple[str, str], float]) -> compare.Change:
    (change,) = compare.changes(old, new)
    return change


@pytest.mark.parametrize(("new", "slower"), [(1.04, False), (1.06, True), (0.5, False)])
def test_more_than_five_per_cent_is_marked(new: float, slower: bool):
    assert only_change({("t", "ottla"): 1.0}, {("t", "ottla"): new}).slower is slower


def test_a_slower_machine_is_not_our_fault():
    old = {("t", "ottla"): 1.0, ("t", "kio"): 1.0, ("t", "aiokafka"): 2.0}
    new = {("t", "ottla"): 1.5, ("t", "kio"): 1.5, ("t", "aiokafka"): 3.0}
    change = only_change(old, new)
    assert (change.raw, change.machine, change.own, change.slower) == (1.5, 1.5, 1.0, False)


def test_a_faster_machine_does_not_hide_our_loss():
    old = {("t", "ottla"): 1.0, ("t", "kio"): 1.0}
    assert only_change(old, {("t", "ottla"): 1.0, ("t", "kio"): 0.8}).slower


def test_rivals_of_another_case_do_not_count():
    old = {("t", "ottla"): 1.0, ("u", "kio"): 1.0}
    assert only_change(old, {("t", "ottla"): 1.2, ("u", "kio"): 1.2}).slower


def test_the_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    old = content({("decode", "ottla"): 1e-6, ("encode", "ottla"): 1e-3, ("gone", "ottla"): 1.0})
    new = content({("decode", "ottla"): 2e-6, ("encode", "ottla"): 1e-3, ("fresh", "ottla"): 1.0}, processor="two")
    for name, one in (("old", old), ("new", new)):
        (tmp_path / name).write_text(json.dumps(one))
    assert compare.main([str(tmp_path / "old"), str(tmp_path / "new")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.endswith("SLOWER") for line in lines if line.startswith(("decode", "encode"))] == [True, False]
    assert "only in the old file: gone, ottla" in lines
    assert "only in the new file: fresh, ottla" in lines
    assert any("different processors" in line for line in lines)
    assert lines[-1] == "1 of 2 figures are more than 5% slower"


def test_wrong_arguments_are_told_the_usage(capsys: pytest.CaptureFixture[str]):
    assert compare.main(["one"]) == 2
    assert "usage:" in capsys.readouterr().err
