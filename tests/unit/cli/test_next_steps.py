"""Every command that a finding recommends is there."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

import ottla.health.rules
from ottla.cli import GROUP

RULES = Path(ottla.health.rules.__file__).parent
COMMAND = re.compile(r"\bottla ([a-z]+)((?: [a-z][a-z-]+)*)")


def recommended() -> set[tuple[str, ...]]:
    texts = [path.read_text(encoding="utf-8") for path in sorted(RULES.glob("*.py"))]
    return {(each[1], *each[2].split()) for text in texts for each in COMMAND.finditer(text)}


@pytest.mark.parametrize("words", sorted(recommended()), ids=" ".join)
def test_a_recommended_command_exists(words: tuple[str, ...]) -> None:
    command: click.Command | None = GROUP
    for word in words:
        if not isinstance(command, click.Group):
            break  # what follows are arguments
        command = command.get_command(click.Context(command), word)
        assert command is not None, f"there is no {word!r} in: ottla {' '.join(words)}"


def test_commands_are_recommended() -> None:
    assert ("quorum", "status") in recommended()
