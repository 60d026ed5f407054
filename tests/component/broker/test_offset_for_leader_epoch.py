"""OffsetForLeaderEpoch over the wire."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.wire.types import OffsetForLeaderEpochRequest
from tests.component.broker.raw_client import RawClient, RunningNode, Topic, batch

Found = tuple[int, int, int]
"""Error, epoch, end offset."""


def ends(
    client: RawClient, topic: Topic, epoch: int, *, current: int = -1, partition: int = 0, version: int = 4
) -> Found:
    asked = OffsetForLeaderEpochRequest.OffsetForLeaderPartition(partition, current, epoch)
    named = OffsetForLeaderEpochRequest.OffsetForLeaderTopic(topic.name, (asked,))
    (found,) = client.ask(OffsetForLeaderEpochRequest(-1, (named,)), version).topics[0].partitions
    return found.error_code, found.leader_epoch, found.end_offset


def filled(client: RawClient) -> Topic:
    topic = client.topic()
    client.produce(topic, batch(b"a", b"b"))
    return topic


@pytest.mark.parametrize("version", [2, 3, 4])
def test_the_current_epoch_ends_where_the_log_ends(client: RawClient, version: int):
    assert ends(client, filled(client), 0, version=version) == (0, 0, 2)


@pytest.mark.parametrize("epoch", [5, -1])
def test_an_unknown_epoch_is_no_error(client: RawClient, epoch: int):
    assert ends(client, filled(client), epoch) == (0, -1, -1)


def test_an_empty_partition(client: RawClient):
    topic = client.topic()
    assert ends(client, topic, 0) == (0, 0, 0)
    assert ends(client, topic, 1) == (0, -1, -1)
    assert ends(client, topic, -1) == (0, -1, -1)


def test_the_readers_view_of_the_leader_is_checked(client: RawClient):
    topic = filled(client)
    assert ends(client, topic, 0, current=0) == (0, 0, 2)
    assert ends(client, topic, 0, current=4) == (75, -1, -1)


def test_unknown_topics_and_partitions(client: RawClient):
    assert ends(client, Topic("nowhere", bytes(16)), 0) == (3, -1, -1)
    assert ends(client, client.topic(), 0, partition=3) == (3, -1, -1)


def lead_anew(running: RunningNode, topic: Topic, epoch: int) -> None:
    replica = running.node.replicas.get(topic.name, 0)
    assert replica is not None

    def grow() -> None:
        replica.leader_epoch = epoch
        if replica.has_log:
            replica.log.become_leader(epoch)

    running.change(grow)


def test_an_older_epoch_ends_where_the_next_one_begins(running: RunningNode):
    client = running.client
    topic = filled(client)
    lead_anew(running, topic, 3)
    client.produce(topic, batch(b"c"))
    assert [ends(client, topic, epoch) for epoch in range(5)] == [
        (0, 0, 2),
        (0, 0, 2),
        (0, 0, 2),
        (0, 3, 3),
        (0, -1, -1),
    ]
    assert ends(client, topic, 0, current=1) == (74, -1, -1)


def test_epochs_without_data_leave_no_trace_but_the_last(running: RunningNode):
    client = running.client
    topic = filled(client)
    for epoch in range(1, 6):
        lead_anew(running, topic, epoch)
    assert [ends(client, topic, epoch) for epoch in range(6)] == [*[(0, 0, 2)] * 5, (0, 5, 2)]
    client.produce(topic, batch(b"c"))
    assert [ends(client, topic, epoch) for epoch in (0, 4, 5)] == [(0, 0, 2), (0, 0, 2), (0, 5, 3)]
    replica = running.node.replicas.get(topic.name, 0)
    assert replica is not None
    running.change(replica.log.flush)
    text = Path(replica.log.directory.path, "leader-epoch-checkpoint").read_text()
    assert text.split() == ["0", "2", "0", "0", "5", "2"]


def test_an_epoch_older_than_all_that_is_known_ends_where_the_log_begins(running: RunningNode):
    client = running.client
    empty = client.topic()
    lead_anew(running, empty, 3)
    assert ends(client, empty, 1) == (0, 1, 0)
    written = client.topic()
    lead_anew(running, written, 3)
    client.produce(written, batch(b"a"))
    assert ends(client, written, 1) == (0, 1, 0)
