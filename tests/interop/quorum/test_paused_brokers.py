"""A broker whose process stands still, and one that is killed: until when it leads, and what it comes back as."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ottla.core.metadata.records import read_batch
from ottla.wire.batch import BatchView, split_batches
from ottla.wire.types import (
    BrokerRegistrationChangeRecord,
    CreateTopicsRequest,
    DescribeClusterRequest,
    RegisterBrokerRecord,
)
from tests.interop.node.brokers import OTTLA
from tests.interop.quorum.members import Quorum, ask, until

CONTROLLER, LEADER, FOLLOWER = 1, 2, 3
TOPIC = "orders"
SESSION_S, SHORT_S, HEARTBEAT_MS = 9, 6, 500
FENCED, UNFENCED = 1, -1


@pytest.fixture(scope="module")
def quorum(kind: str, apache_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Quorum]:
    """A controller, and two brokers with a partition that the first leads."""
    settings = {"broker.session.timeout.ms": SESSION_S * 1000, "broker.heartbeat.interval.ms": HEARTBEAT_MS}
    brokers = {LEADER: kind, FOLLOWER: kind}
    with Quorum(tmp_path_factory.mktemp("quorum"), voters={CONTROLLER: kind}, brokers=brokers, **settings) as quorum:
        quorum.start(*brokers)
        request = CreateTopicsRequest
        placed = request.CreatableReplicaAssignment(0, (LEADER, FOLLOWER))
        topic = request.CreatableTopic(TOPIC, -1, -1, (placed,))
        (created,) = ask(quorum.nodes[CONTROLLER].bootstrap_servers, request((topic,), 60_000), 7).topics
        assert created.error_code == 0, created
        quorum.wait_in_sync(TOPIC)
        yield quorum
        quorum.check_health()


@contextmanager
def paused(quorum: Quorum, number: int) -> Iterator[None]:
    pid = quorum.nodes[number].pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def is_fenced(quorum: Quorum, number: int) -> bool:
    request = DescribeClusterRequest(include_fenced_brokers=True)
    brokers = ask(quorum.nodes[CONTROLLER].bootstrap_servers, request, 2).brokers
    return next(bool(each.is_fenced) for each in brokers if each.broker_id == number)


def led_by(quorum: Quorum) -> tuple[int, set[int]]:
    """Leader and replicas in sync, as the controller's own broker knows them."""
    (partition,) = quorum.partitions(TOPIC, at=CONTROLLER)
    return partition.leader_id, set(partition.isr_nodes)


def life_of(quorum: Quorum, number: int) -> list[tuple[int, int]]:
    """Epoch and change of fencing in each record that says something of it; a registration is a change as well."""
    found = []
    for data in quorum.metadata_log(CONTROLLER).values():
        for batch in split_batches(data):
            assert isinstance(batch, BatchView)
            for record in () if batch.is_control else read_batch(batch):
                message = record.message
                if isinstance(message, RegisterBrokerRecord) and message.broker_id == number:
                    found.append((message.broker_epoch, FENCED))
                elif isinstance(message, BrokerRegistrationChangeRecord) and message.broker_id == number:
                    found += [(message.broker_epoch, message.fenced)] if message.fenced else []
    return found


def test_a_pause_shorter_than_the_session_changes_nothing(quorum: Quorum) -> None:
    before = life_of(quorum, LEADER)
    with paused(quorum, LEADER):
        time.sleep(SHORT_S)
        assert not is_fenced(quorum, LEADER)
        assert led_by(quorum) == (LEADER, {LEADER, FOLLOWER})
    assert life_of(quorum, LEADER) == before


def test_a_broker_that_was_paused_for_longer_comes_back_with_its_epoch(quorum: Quorum) -> None:
    before = life_of(quorum, LEADER)
    epoch, last = before[-1]
    assert last == UNFENCED
    with paused(quorum, LEADER):
        began = time.monotonic()
        until(lambda: is_fenced(quorum, LEADER), "it to be fenced")
        assert time.monotonic() - began > SHORT_S, "nobody refuses connections to it, so only its session counts"
        until(lambda: led_by(quorum) == (FOLLOWER, {FOLLOWER}), "the other to lead")
    until(lambda: led_by(quorum) == (FOLLOWER, {LEADER, FOLLOWER}), "both in sync again")
    assert life_of(quorum, LEADER) == [*before, (epoch, FENCED), (epoch, UNFENCED)], "it has not registered again"
    quorum.elect_preferred(TOPIC)
    quorum.wait_in_sync(TOPIC)


def test_a_killed_broker_is_replaced(quorum: Quorum, kind: str) -> None:
    """By ottla before its session could end: connections to it are refused, so its process is gone."""
    quorum.nodes[LEADER].kill()
    began = time.monotonic()
    until(lambda: led_by(quorum) == (FOLLOWER, {FOLLOWER}), "the other to lead")
    took = time.monotonic() - began
    if kind == OTTLA:
        assert took < SESSION_S - HEARTBEAT_MS / 1000
    quorum.start(LEADER)
    until(lambda: led_by(quorum) == (FOLLOWER, {LEADER, FOLLOWER}), "both in sync again")
    epochs = [epoch for epoch, _ in life_of(quorum, LEADER)]
    assert epochs[-1] > epochs[0], "another process has another epoch"
