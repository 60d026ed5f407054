"""Bugs of replication, planted in whole nodes: simulated clusters must find each of them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import msgspec
import pytest

from ottla.broker.handlers import fetch, produce
from ottla.broker.replicas.replica_fetcher import ReplicaFetcher
from ottla.broker.replicas.replicas import Replica
from ottla.core.metadata import elections
from ottla.core.replication.partition_leader import UNKNOWN, InSyncChange, PartitionLeader
from ottla.log.errors import LogError
from ottla.wire.errors import ErrorCode
from tests.simulation.cluster_worlds import first_violation

pytestmark = pytest.mark.usefixtures("no_event_loop")

FOUND = {
    "replicated stays",
    "in sync",
    "watermark",
    "replicas equal",
    "acknowledged stays",
    "commits stay",
    "offsets in order",
}


def plant_committed_in_sync_replicas_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """A leader does not wait for a follower that may be in sync already."""
    monkeypatch.setattr(PartitionLeader, "_counts", lambda leader, replica_id, *_: replica_id in leader.isr)


def plant_high_watermark_under_the_minimum(monkeypatch: pytest.MonkeyPatch) -> None:
    """A leader commits although fewer replicas are in sync than `min.insync.replicas` asks for."""
    monkeypatch.setattr(PartitionLeader, "is_under_min_isr", lambda leader, min_insync_replicas: False)


def plant_truncation_by_high_watermark(monkeypatch: pytest.MonkeyPatch) -> None:
    """A follower cuts its log where it believes that it is committed."""
    follow = ReplicaFetcher.follow

    def truncating(fetcher: ReplicaFetcher, replica: Replica) -> None:
        follow(fetcher, replica)
        if replica.has_log:
            key = replica.topic_id, replica.topic_partition.partition
            fetcher._truncate(fetcher._followed[key], replica.high_watermark)

    monkeypatch.setattr(ReplicaFetcher, "follow", truncating)


def plant_divergence_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    """A leader sends what follows the end of a follower's log, whatever it ends with."""
    monkeypatch.setattr(fetch._Fetch, "_divergence", lambda *_: None)


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
            with suppress(LogError):
                if one.replica.is_acknowledged(one.info.last_offset + 1, waiting.acks):
                    waiting.staged.remove(one)
        if expired:
            for one in waiting.staged:
                waiting._fail(one, ErrorCode.REQUEST_TIMED_OUT, None)
        return expired or not waiting.staged

    monkeypatch.setattr(produce._Produce, "_settle", settle)


def plant_join_before_the_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    """A follower is in sync that has all below the new leader's high watermark, which may be behind."""
    expand = PartitionLeader.expand

    def hasty(leader: PartitionLeader, replica_id: int, high_watermark: int) -> InSyncChange | None:
        start_offset, leader.epoch_start_offset = leader.epoch_start_offset, 0
        try:
            return expand(leader, replica_id, high_watermark)
        finally:
            leader.epoch_start_offset = start_offset

    monkeypatch.setattr(PartitionLeader, "expand", hasty)


def plant_join_of_an_earlier_life(monkeypatch: pytest.MonkeyPatch) -> None:
    """A leader does not say in which life a follower has caught up."""
    ask = PartitionLeader._ask

    def vague(leader: PartitionLeader, isr: tuple[int, ...]) -> InSyncChange:
        leader.pending = msgspec.structs.replace(ask(leader, isr), broker_epochs=(UNKNOWN,) * len(isr))
        return leader.pending

    monkeypatch.setattr(PartitionLeader, "_ask", vague)


@pytest.mark.parametrize(
    ("plant", "first_seed"),
    [
        (plant_committed_in_sync_replicas_only, 25),
        (plant_high_watermark_under_the_minimum, 210),
        (plant_truncation_by_high_watermark, 24),
        (plant_divergence_ignored, 18),
        (plant_unclean_in_elr, 305),
        (plant_waiter_of_any_epoch, 260),
        (plant_join_before_the_epoch, 152),
        (plant_join_of_an_earlier_life, 143),
    ],
)
def test_a_planted_bug_is_found(
    plant: Callable[[pytest.MonkeyPatch], None], first_seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    assert first_violation(first_seed).name in FOUND
