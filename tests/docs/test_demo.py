"""docs/tutorial/demo.md and the recording: every option is on the page, and what the README quotes was really said."""

import re
from pathlib import Path

import pytest

from ottla.cli.demo import demo
from tools import record_first_run

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "tutorial" / "demo.md").read_text()
RECORDING = (ROOT / "docs" / "tutorial" / "first-run.txt").read_text()


def test_every_option_is_told():
    options = {option for param in demo.params if not getattr(param, "hidden", False) for option in param.opts}
    options -= {"-q", "--quiet", "-v", "--verbose"}  # which every command has
    assert [option for option in options if f"`{option}" not in PAGE] == []


def test_the_recording_is_whole():
    assert [number for number in range(1, 7) if f"{number}/6 " not in RECORDING] == []
    held, wanted = re.search(r"expectations met: (\d+) of (\d+)", RECORDING).groups()
    assert held == wanted
    assert f"expectations met: {held} of {wanted}" in PAGE
    assert "report demo/report.html" in RECORDING.splitlines()


def test_what_the_readme_quotes_was_said():
    """Lines after `$ make demo` in the README are lines of the recording; `…` stands for what was left out."""
    readme = (ROOT / "README.md").read_text()
    block = re.search(r"^```console\n\$ make demo\n(.*?)^```", readme, re.MULTILINE | re.DOTALL)
    assert block is not None
    quoted = [line for line in block[1].splitlines() if line.strip() and line.strip() != "…"]
    assert len(quoted) > 5
    assert [line for line in quoted if line not in RECORDING.splitlines()] == []


def test_the_tool_records_what_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    said = tmp_path / "said.txt"
    said.write_text(RECORDING.removeprefix("$ ottla demo\n"))
    readme = (ROOT / "README.md").read_text()
    monkeypatch.setattr(record_first_run, "RECORDING", tmp_path / "first-run.txt")
    monkeypatch.setattr(record_first_run, "README", tmp_path / "README.md")
    (tmp_path / "README.md").write_text(readme)
    record_first_run.main([str(said)])
    assert (tmp_path / "first-run.txt").read_text() == RECORDING
    assert (tmp_path / "README.md").read_text() == readme


def test_a_run_that_missed_something_is_not_recorded(tmp_path: Path):
    said = tmp_path / "said.txt"
    said.write_text("expectations met: 20 of 22\n")
    with pytest.raises(SystemExit, match="not recorded"):
        record_first_run.main([str(said)])
