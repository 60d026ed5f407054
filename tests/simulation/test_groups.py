"""Groups in simulated worlds: some seeds of each family, and those that once failed.

`python -m simulation` runs as many as you like.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from simulation.clients.other_clients import Administrator
from simulation.runner import run_seed
from simulation.workloads import FAMILIES
from simulation.world import World

KEPT = [line.split()[:2] for line in (Path(__file__).parent / "group_seeds.txt").read_text().splitlines() if line]
DIGEST = "from simulation.runner import run_seed; print(run_seed(7, [{family!r}]).trace.digest)"

# A crowd takes a quarter of a minute a seed; it is for the command.
SMALL = [family for family in FAMILIES if family != "streams-crowd"]

pytestmark = pytest.mark.usefixtures("quiet")


@pytest.mark.parametrize("first_seed", range(0, 8, 4))
@pytest.mark.parametrize("family", SMALL)
def test_invariants_hold(family: str, first_seed: int) -> None:
    for seed in range(first_seed, first_seed + 4):
        run_seed(seed, [family])


@pytest.mark.parametrize("family", ["consumer", "mixed"])
@pytest.mark.parametrize("seed", [1, 8])
def test_targets_that_are_computed_outside_the_event_loop(family: str, seed: int) -> None:
    """These seeds compute all of them there: they come late, fail, and are superseded."""
    world = run_seed(seed, [family])
    assert isinstance(world, World)
    assert world.environment.world.inline_target_max == 0


def test_families_live_together() -> None:
    for seed in range(4):
        run_seed(seed, SMALL)


def test_the_administrator_deletes_groups_that_are_there() -> None:
    world = run_seed(5, ["consumer", "streams"])
    assert isinstance(world, World)
    clients = [client for each in world.workloads for client in each.clients]
    (administrator,) = [each for each in clients if isinstance(each, Administrator)]
    assert set(administrator.groups) <= {each.group_id for each in clients}


@pytest.mark.parametrize(("families", "seed"), KEPT)
def test_seeds_that_once_failed(families: str, seed: str) -> None:
    run_seed(int(seed), families.split(","))


@pytest.mark.parametrize("family", SMALL)
def test_a_seed_gives_the_same_world_on_any_machine(family: str) -> None:
    """Sets of texts have another order in each process; nothing may depend on it."""
    digests = {
        subprocess.run(
            [sys.executable, "-c", DIGEST.format(family=family)],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for hash_seed in ("1", "2")
    }
    assert len(digests) == 1
