"""docs/how-to/groups.md: the help that it shows is the help that there is, and every command is on the page."""

import re
from pathlib import Path

import click
import pytest

from ottla.cli import run
from ottla.cli.groups import groups

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "groups.md"
BLOCKS = dict(re.findall(r"^```\n\$ (ottla [^\n]*--help)\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL))


@pytest.mark.parametrize("command", BLOCKS)
def test_the_help_on_the_page_is_what_is_printed(command: str, capsys: pytest.CaptureFixture[str]):
    assert run(command.split()[1:]) == 0
    assert capsys.readouterr().out.rstrip() == BLOCKS[command].rstrip()


def test_every_command_is_on_the_page():
    assert isinstance(groups, click.Group)
    assert {"ottla groups --help", *(f"ottla groups {name} --help" for name in groups.commands)} == set(BLOCKS)
