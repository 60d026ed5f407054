"""Whole nodes in simulated clusters: random faults from seeds, kept seeds, and planted bugs.

`python -m simulation cluster` runs as many seeds as you like.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ottla.broker.controller import metadata_load
from ottla.broker.controller.metadata_chores import MetadataChores
from ottla.broker.controller.publisher import MetadataPublisher
from ottla.core.quorum.quorum import Quorum
from simulation.cluster.runner import Plan, run_cluster, run_clusters, shorten
from tests.simulation.cluster_worlds import first_violation

KEPT = Path(__file__).parent / "cluster_seeds.txt"

pytestmark = pytest.mark.usefixtures("no_event_loop")


@pytest.mark.parametrize("first_seed", range(0, 40, 5))
def test_invariants_hold(first_seed: int) -> None:
    for seed in range(first_seed, first_seed + 5):
        run_cluster(seed)


@pytest.mark.parametrize("seed", [int(line.split()[0]) for line in KEPT.read_text().splitlines() if line[:1].isdigit()])
def test_seeds_that_failed_once(seed: int) -> None:
    run_cluster(seed)


def test_a_seed_gives_the_same_story_in_any_process() -> None:
    """Whatever strings hash to, and whatever the process has done before."""
    program = "from simulation.cluster.runner import run_cluster; print(run_cluster(10).trace.digest)"

    def digest(hash_seed: str) -> str:
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        ran = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
        )
        return ran.stdout.strip()

    assert digest("1") == digest("2") == run_cluster(10).trace.digest != run_cluster(8).trace.digest


def test_seeds_have_what_they_are_about() -> None:
    tally = run_clusters(range(100, 110))
    assert tally.failures == []
    assert {"create topic", "produce", "transaction", "commit", "add voter", "remove voter"} <= tally.operations.keys()
    assert {"kill", "partition", "pause", "power loss"} <= tally.faults.keys()


# --- planted bugs -----------------------------------------------------------------------------------------------------


def plant_forgotten_vote(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node forgets at its start whom it has voted for."""
    read = metadata_load.read_quorum_state

    def forgetful(*arguments: Any) -> Any:
        stored = read(*arguments)
        return stored and msgspec.structs.replace(stored, voted_id=-1, voted_directory_id=bytes(16))

    monkeypatch.setattr(metadata_load, "read_quorum_state", forgetful)


def plant_fetch_before_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    """A follower asks for more before what it has is synced."""
    monkeypatch.setattr(Quorum, "is_log_settled", property(lambda quorum: not quorum._writes))


def plant_uncommitted_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records are applied when they are appended."""
    expect_batch = MetadataPublisher.expect_batch

    def hasty(publisher: MetadataPublisher, batch: Any) -> None:
        expect_batch(publisher, batch)
        publisher.committed(batch.next_offset)

    monkeypatch.setattr(MetadataPublisher, "expect_batch", hasty)


def plant_snapshot_of_the_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    """The active controller makes snapshots of its own image, at the log's end, and does not check what it does."""

    class Ahead:
        def __init__(self, node: Any) -> None:
            self._node = node

        def __getattr__(self, name: str) -> Any:
            fork = self._node.controller.image if name == "image" else None
            return getattr(self._node, name) if fork is None else fork

    make = MetadataChores.__init__
    monkeypatch.setattr(MetadataChores, "__init__", lambda chores, node: make(chores, Ahead(node)))
    monkeypatch.setattr(Quorum, "check_snapshot", lambda quorum, snapshot_id: None)


@pytest.mark.parametrize(
    ("plant", "names"),
    [
        (plant_forgotten_vote, {"one vote"}),
        (plant_fetch_before_sync, {"stored first", "majority"}),
        (plant_uncommitted_metadata, {"applied committed"}),
        (plant_snapshot_of_the_fork, {"snapshot committed"}),
    ],
)
def test_a_planted_bug_is_found(
    plant: Callable[[pytest.MonkeyPatch], None], names: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    assert first_violation().name in names


def test_a_failing_seed_is_shortened(monkeypatch: pytest.MonkeyPatch) -> None:
    plant_forgotten_vote(monkeypatch)
    world = first_violation().world
    failure = shorten(world.seed, Plan())
    assert "one vote" in failure.violation
    assert failure.plan != Plan(), "some of it was not needed"
    before, after = ([line for line in lines if " !! " in line] for lines in (world.trace.lines, failure.trace))
    assert len(after) <= len(before)
