"""`python -m simulation`: what it takes and what it reports."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ottla.testing.trace import Violation
from simulation import __main__ as command
from simulation import runner
from simulation.transaction_world import TransactionWorld


@pytest.fixture(autouse=True)
def _logging_again() -> Iterator[None]:
    """The command switches it off."""
    yield
    logging.disable(logging.NOTSET)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(command.main, list(arguments))


def test_reports_seeds_hours_and_faults() -> None:
    result = run("--families", "transactions", "--seeds", "2", "--from-seed", "3")
    assert result.exit_code == 0, result.output
    assert "2 seeds," in result.output
    assert "simulated hours" in result.output
    assert " kill\n" in result.output


def test_a_failure_is_told_with_its_seed_and_trace_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(seed: int, families: Sequence[str]) -> TransactionWorld:
        violation = Violation("owned once", "a and b")
        violation.world = TransactionWorld(seed)
        violation.world.note("the end of the trace")
        raise violation

    monkeypatch.setattr(runner, "run_seed", fail)
    kept = tmp_path / "seeds.txt"
    result = run("--families", "classic,consumer", "--seeds", "1", "--from-seed", "42", "--keep", str(kept))
    assert result.exit_code == 1
    assert "seed 42, classic,consumer: owned once: a and b" in result.output
    assert "the end of the trace" in result.output
    assert kept.read_text() == "classic,consumer 42 owned once: a and b\n"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--families", "quantum", "--seeds", "1"), "no family 'quantum'"),
        (("--families", "classic"), "either --seeds or --minutes"),
        (("--seeds", "1", "--minutes", "1"), "either --seeds or --minutes"),
    ],
)
def test_mistakes_are_explained(arguments: tuple[str, ...], complaint: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert complaint in result.output


def test_minutes_end() -> None:
    assert "0 seeds" in run("--families", "classic", "--minutes", "0").output
