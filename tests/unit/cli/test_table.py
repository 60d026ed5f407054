"""Every line of the table leads to a command that can be run."""

import pytest

from ottla.cli import run
from ottla.cli.lazy import load
from ottla.cli.table import COMMANDS


@pytest.mark.parametrize("name", COMMANDS)
def test_each_entry_is_the_command_it_names(name: str):
    assert load(COMMANDS[name]).name == name


@pytest.mark.parametrize("name", COMMANDS)
def test_each_summary_fits_one_line(name: str):
    summary = COMMANDS[name].summary
    assert summary.endswith(".")
    assert len(name) + len(summary) < 78


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]):
    assert run([name, "--help"]) == 0
    assert f"Usage: ottla {name}" in capsys.readouterr().out


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]):
    assert run(["--help"]) == 0
    out = capsys.readouterr().out
    for name, entry in COMMANDS.items():
        assert name in out
        assert entry.summary in out


def test_no_command_at_all_shows_the_help(capsys: pytest.CaptureFixture[str]):
    assert run([]) == 0
    assert "Run Kafka:" in capsys.readouterr().out
