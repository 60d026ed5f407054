"""docs/how-to/streams.md: the drawing that it shows is the drawing that one gets, and every command is on the page."""

from pathlib import Path

import pytest

from ottla.cli import run
from ottla.cli.streams import streams

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "streams.md").read_text(encoding="utf-8")
TEXT = Path(__file__).parents[1] / "golden" / "topologies" / "stateless.txt"


def test_the_drawing(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["streams", "topology", "--from", str(TEXT)]) == 0
    assert f"$ ottla streams topology --from describe.txt\n{capsys.readouterr().out}$ " in PAGE


@pytest.mark.parametrize("name", sorted(streams.commands))
def test_every_command_is_told(name: str) -> None:
    assert f"\n| `ottla streams {name}" in PAGE
