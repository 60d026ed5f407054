"""Seeds of quorums with four and five voters, about a minute. Smaller ones: test_quorum_small.py, side by side."""

from __future__ import annotations

import pytest

from simulation.quorum.runner import run_quorum, voters_in


@pytest.mark.parametrize("seed", [seed for seed in range(1_000, 1_630) if voters_in(seed) > 3])
def test_invariants_hold(seed: int) -> None:
    run_quorum(seed)
