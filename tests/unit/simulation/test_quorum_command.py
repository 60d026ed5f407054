"""`python -m simulation quorum`: what it takes, what it reports, and the picture."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from ottla.testing.trace import Violation
from simulation import __main__ as command
from simulation.quorum import runner
from simulation.quorum.scenario import run_quorum_text
from simulation.quorum.world import QuorumWorld
from simulation.scenario import ScenarioError


@pytest.fixture(autouse=True)
def _logging_again() -> Iterator[None]:
    """The command switches it off."""
    yield
    logging.disable(logging.NOTSET)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(command.main, ["quorum", *arguments])


def test_reports_seeds_and_what_happened_in_them() -> None:
    result = run("--seeds", "3", "--from-seed", "3")
    assert result.exit_code == 0, result.output
    assert "3 seeds," in result.output
    assert " elections\n" in result.output
    assert "settled at most" in result.output


def test_one_seed_as_a_conversation() -> None:
    result = run("--seed", "3")
    assert result.exit_code == 0
    assert " is LEADER in epoch " in result.output


def test_one_seed_as_a_picture(tmp_path: Path) -> None:
    path = tmp_path / "run.svg"
    assert run("--seed", "3", "--svg", str(path)).exit_code == 0
    picture = ElementTree.fromstring(path.read_text())
    assert picture.tag.endswith("svg")
    texts = [each.text or "" for each in picture.iter() if each.tag.endswith("text")]
    assert {"n1", "leads", "follows"} <= set(texts)


def test_a_failure_is_told_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(seed: int, *_: object, **__: object) -> QuorumWorld:
        violation = Violation("one vote", "n1 votes twice")
        violation.world = QuorumWorld(seed)
        violation.world.note("the end of the trace")
        raise violation

    monkeypatch.setattr(runner, "run_quorum", fail)
    kept = tmp_path / "seeds.txt"
    result = run("--seeds", "1", "--from-seed", "42", "--keep", str(kept))
    assert result.exit_code == 1
    assert "seed 42: one vote: n1 votes twice" in result.output
    assert "the end of the trace" in result.output
    assert kept.read_text() == "42 one vote: n1 votes twice\n"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((), "either --seeds or --minutes"),
        (("--seeds", "1", "--minutes", "1"), "either --seeds or --minutes"),
        (("--seeds", "1", "--svg", "x.svg"), "say which with --seed"),
    ],
)
def test_mistakes_are_explained(arguments: tuple[str, ...], complaint: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert complaint in result.output


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("start\n----\n", "begin with"),
        ("nodes 3\nfly\n----\n", "no command 'fly'"),
        ("nodes 3\npropose\n----\n", "nobody leads"),
    ],
)
def test_conversations_that_cannot_be_run(text: str, complaint: str) -> None:
    with pytest.raises(ScenarioError, match=complaint):
        run_quorum_text(text)
