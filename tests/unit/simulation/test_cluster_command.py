"""`python -m simulation cluster`: what it takes, and what it reports."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ottla.testing.trace import Violation
from simulation import __main__ as command
from simulation.cluster import runner
from simulation.cluster.world import ClusterWorld


@pytest.fixture(autouse=True)
def _logging_again() -> Iterator[None]:
    """The command switches it off."""
    yield
    logging.disable(logging.NOTSET)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(command.main, ["cluster", *arguments])


def test_reports_seeds_and_what_happened_in_them() -> None:
    result = run("--seeds", "1", "--from-seed", "3", "--seconds", "2")
    assert result.exit_code == 0, result.output
    assert "1 seeds," in result.output
    assert "settled at most" in result.output


def test_one_seed_as_a_story() -> None:
    result = run("--seed", "3", "--seconds", "2")
    assert result.exit_code == 0
    assert " is LEADER in epoch 1\n" in result.output
    assert "the calm begins" in result.output


def test_a_failure_is_told_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(seed: int, *_: object) -> ClusterWorld:
        violation = Violation("one vote", "n1 votes twice")
        violation.world = ClusterWorld(seed)
        violation.world.note("the end of the story")
        raise violation

    monkeypatch.setattr(runner, "run_cluster", fail)
    kept = tmp_path / "seeds.txt"
    result = run("--seeds", "1", "--from-seed", "42", "--keep", str(kept))
    assert result.exit_code == 1
    assert "seed 42: one vote: n1 votes twice" in result.output
    assert "the end of the story" in result.output
    assert kept.read_text() == "42 one vote: n1 votes twice\n"


@pytest.mark.parametrize("arguments", [(), ("--seeds", "1", "--minutes", "1")])
def test_mistakes_are_explained(arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert "either --seeds or --minutes" in result.output
