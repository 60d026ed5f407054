"""docs/how-to/topics.md: its help is what is printed, every command is on the page, its claims hold."""

import re
from pathlib import Path

import click
import pytest

from ottla.cli import failure, run
from ottla.cli.configs import configs
from ottla.cli.topics import topics
from ottla.client.filters import compile_filter
from ottla.client.filters.language import ROOTS

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "topics.md").read_text(encoding="utf-8")
BLOCKS = dict(re.findall(r"^```\n\$ (ottla [^\n]*--help)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))


def names(group: click.Group, path: str) -> set[str]:
    found = {f"{path} --help"}
    for name, command in group.commands.items():
        below = f"{path} {name}"
        found |= names(command, below) if isinstance(command, click.Group) else {f"{below} --help"}
    return found


@pytest.mark.parametrize("command", BLOCKS)
def test_the_help_on_the_page_is_what_is_printed(command: str, capsys: pytest.CaptureFixture[str]):
    assert run(command.split()[1:]) == 0
    assert capsys.readouterr().out.rstrip() == BLOCKS[command].rstrip()


def test_every_command_is_on_the_page():
    expected = names(topics, "ottla topics") | names(configs, "ottla configs") | {"ottla completion --help"}
    assert expected == set(BLOCKS)


def test_the_exit_codes_are_those_that_there_are():
    codes = {int(code) for code in re.findall(r"^\| (\d)\b", PAGE, re.MULTILINE)}
    assert codes == {0, *(value for name, value in vars(failure).items() if name.startswith("EXIT_") and value < 100)}


def test_filters_on_the_page_are_filters():
    for text in re.findall(r"--filter '([^']*)'", PAGE):
        compile_filter(text)
    assert all(f"`{root}" in PAGE for root in ROOTS)
