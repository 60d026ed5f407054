"""Seeds of quorums with up to three voters, about a minute. Larger ones are in test_quorum_large.py, side by side."""

from __future__ import annotations

import pytest

from simulation.quorum.runner import run_quorum, voters_in


@pytest.mark.parametrize("seed", [seed for seed in range(1_000, 1_530) if voters_in(seed) <= 3])
def test_invariants_hold(seed: int) -> None:
    run_quorum(seed)
