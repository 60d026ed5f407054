"""Groups in simulated worlds: some seeds of each family, those that once failed, and planted bugs.

`python -m ottla.testing.simulation` runs as many as you like.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ottla.broker.coordinators.shard import Shard
from ottla.coordinator.contract import Result
from ottla.groups.classic.family import ClassicFamily
from ottla.testing.simulation.running import run_seed
from ottla.testing.simulation.trace import Violation

SEEDS_FOR_A_BUG = 500
KEPT = [line.split()[:2] for line in (Path(__file__).parent / "group_seeds.txt").read_text().splitlines() if line]


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """The coordinator warns of each fault that is made on purpose."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("first_seed", range(0, 30, 10))
@pytest.mark.parametrize("family", ["classic"])
def test_invariants_hold(family: str, first_seed: int) -> None:
    for seed in range(first_seed, first_seed + 10):
        run_seed(seed, [family])


@pytest.mark.parametrize(("families", "seed"), KEPT)
def test_seeds_that_once_failed(families: str, seed: str) -> None:
    run_seed(int(seed), families.split(","))


def test_a_seed_gives_the_same_world_on_any_machine() -> None:
    """Sets of texts have another order in each process; nothing may depend on it."""
    program = "import sys; from ottla.testing.simulation.running import run_seed; print(run_seed(7, ['classic']).trace.digest)"
    digests = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in (1, 2)
    }
    assert len(digests) == 1


def finds(families: list[str]) -> str:
    """The invariant that the first failing seed violates."""
    for seed in range(SEEDS_FOR_A_BUG):
        try:
            run_seed(seed, families)
        except Violation as violation:
            return violation.name
    pytest.fail(f"no seed below {SEEDS_FOR_A_BUG} has found it")


def answer_before_append(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers leave although what they tell of is not written yet."""

    def release(self: Shard, result: Result) -> None:
        self._release(result.replies, result.effects, result.after)

    monkeypatch.setattr(Shard, "_file", release)


def test_finds_answers_before_the_append(monkeypatch: pytest.MonkeyPatch) -> None:
    answer_before_append(monkeypatch)
    assert finds(["classic"]) == "kept"


def test_finds_a_forgotten_time_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions are never looked at: a member that crashed is waited for."""
    expire = ClassicFamily.expire

    def forgetful(self: ClassicFamily, key: tuple[str, ...], context: object) -> Result:
        return Result() if key[1] == "session" else expire(self, key, context)  # type: ignore[arg-type]

    monkeypatch.setattr(ClassicFamily, "expire", forgetful)
    assert finds(["classic"]) == "converges"
