"""Whole nodes in simulated clusters: random faults from seeds, kept seeds, and planted bugs.

`python -m simulation cluster` runs as many seeds as you like. Every planted bug must be found within 2,000 of them, in
ten simulated seconds each.
"""

from __future__ import annotations

import asyncio
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
from ottla.broker.handlers import produce
from ottla.broker.replicas.replica_fetcher import ReplicaFetcher
from ottla.broker.replicas.replicas import Replica, Replicas
from ottla.core.metadata import elections, in_sync_replicas
from ottla.core.quorum.quorum import Quorum
from ottla.core.replication.partition_leader import PartitionLeader
from ottla.testing.trace import Violation
from ottla.wire.errors import ErrorCode
from simulation.cluster.runner import Plan, run_cluster, run_clusters, shorten

SEEDS_FOR_A_BUG = 2_000
KEPT = Path(__file__).parent / "cluster_seeds.txt"


@pytest.fixture(autouse=True)
def no_event_loop() -> None:
    """Worlds are taken down without help of a loop that Python would make; as after any other test."""
    asyncio.set_event_loop(None)


@pytest.mark.parametrize("first_seed", range(0, 60, 5))
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


def first_violation() -> Violation:
    for seed in range(SEEDS_FOR_A_BUG):
        try:
            run_cluster(seed)
        except Violation as violation:
            return violation
    pytest.fail(f"no seed below {SEEDS_FOR_A_BUG} has found it")


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
    """The active controller makes snapshots of its own image, at the log's end."""

    class Ahead:
        def __init__(self, node: Any) -> None:
            self._node = node

        def __getattr__(self, name: str) -> Any:
            fork = self._node.controller.image if name == "image" else None
            return getattr(self._node, name) if fork is None else fork

    make = MetadataChores.__init__
    monkeypatch.setattr(MetadataChores, "__init__", lambda chores, node: make(chores, Ahead(node)))


def plant_committed_in_sync_replicas_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """A leader does not wait for a follower that may be in sync already."""
    monkeypatch.setattr(PartitionLeader, "_counts", lambda leader, replica_id, *_: replica_id in leader.isr)


def plant_high_watermark_under_the_minimum(monkeypatch: pytest.MonkeyPatch) -> None:
    """A leader commits although fewer replicas are in sync than `min.insync.replicas` asks for."""
    monkeypatch.setattr(PartitionLeader, "is_under_min_isr", lambda leader, min_insync_replicas: False)


def plant_joining_before_the_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    """A follower joins that has not come as far as its leader's epoch."""
    make = PartitionLeader.__init__

    def careless(leader: PartitionLeader, *arguments: Any, **options: Any) -> None:
        make(leader, *arguments, **options | {"epoch_start_offset": 0})

    monkeypatch.setattr(PartitionLeader, "__init__", careless)


def plant_joining_of_an_earlier_life(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a broker has fetched before it lost its power counts."""

    def is_active(image: Any, broker_id: int) -> bool:
        return broker_id in image.brokers and image.brokers[broker_id].is_active

    monkeypatch.setattr(Replicas, "_is_eligible", lambda replicas, broker_id, _: is_active(replicas._image, broker_id))
    monkeypatch.setattr(in_sync_replicas, "_is_eligible", lambda state, one: is_active(state.image, one.broker_id))


def plant_truncation_by_high_watermark(monkeypatch: pytest.MonkeyPatch) -> None:
    """A follower cuts its log where it believes that it is committed."""
    follow = ReplicaFetcher.follow

    def truncating(fetcher: ReplicaFetcher, replica: Replica) -> None:
        if replica.has_log:
            replica.log.truncate_to(replica.high_watermark, 0)
        follow(fetcher, replica)

    monkeypatch.setattr(ReplicaFetcher, "follow", truncating)


def plant_unclean_in_elr(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that has lost its power stays eligible."""
    stopped = elections.broker_stopped
    monkeypatch.setattr(
        elections, "broker_stopped", lambda state, broker_id, *, is_clean: stopped(state, broker_id, is_clean=True)
    )


def plant_waiter_of_any_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    """A record is acknowledged when the high watermark passes it, whoever leads by then."""

    def settle(waiting: produce._Produce, *, expired: bool) -> bool:
        for one in waiting.staged[:]:
            if one.replica.high_watermark > one.info.last_offset:
                waiting.staged.remove(one)
        if expired:
            for one in waiting.staged:
                waiting._fail(one, ErrorCode.REQUEST_TIMED_OUT, None)
        return expired or not waiting.staged

    monkeypatch.setattr(produce._Produce, "_settle", settle)


LOST = {"replicated stays", "in sync", "watermark", "acknowledged stays", "commits stay", "offsets in order"}


@pytest.mark.parametrize(
    ("plant", "names"),
    [
        (plant_committed_in_sync_replicas_only, LOST),
        (plant_high_watermark_under_the_minimum, LOST),
        (plant_joining_before_the_epoch, LOST),
        (plant_joining_of_an_earlier_life, LOST),
        (plant_truncation_by_high_watermark, LOST),
        (plant_unclean_in_elr, LOST),
        (plant_waiter_of_any_epoch, LOST),
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
