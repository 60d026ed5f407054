"""Looks for the world that finds a planted bug."""

from __future__ import annotations

import pytest

from ottla.testing.trace import Violation
from simulation.cluster.runner import run_cluster

SEEDS_FOR_A_BUG = 2_000
"""Every planted bug must be found within so many, in ten simulated seconds each."""


def first_violation(first_seed: int = 0) -> Violation:
    """Of seeds that find nothing, those before `first_seed` may be left out."""
    for seed in range(first_seed, SEEDS_FOR_A_BUG):
        try:
            run_cluster(seed)
        except Violation as violation:
            return violation
    pytest.fail(f"no seed below {SEEDS_FOR_A_BUG} has found it")
