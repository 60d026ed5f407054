"""What docs/how-to/testing.md says about scenarios and worlds: every command is there, and the example is true."""

import re
from pathlib import Path

import pytest

from simulation.commands import COMMANDS
from simulation.coordinator_kinds import KINDS
from simulation.runner import FAMILY_NAMES
from simulation.scenario import run_text

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "testing.md").read_text()


@pytest.mark.parametrize(
    "name", [name for name, command in COMMANDS.items() if command.__module__.startswith("simulation")]
)
def test_every_command_is_told(name: str):
    assert re.search(rf"^\| [^|]*`{name}[` ]", PAGE, re.MULTILINE)


@pytest.mark.parametrize("name", FAMILY_NAMES)
def test_every_family_is_told(name: str):
    assert f"\n| `{name}` |" in PAGE


def test_the_example_is_true():
    [example] = re.findall(r"^```text\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    seen, faults = run_text(example, KINDS["groups"])
    assert seen == example
    assert faults == []
