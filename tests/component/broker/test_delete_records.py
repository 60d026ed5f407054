"""DeleteRecords over the wire."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.wire.types import DeleteRecordsRequest
from tests.component.broker.raw_client import RawClient, RunningNode, Topic, batch, running_node, values

Deleted = tuple[int, int]
"""Error, low watermark."""


def delete(client: RawClient, topic: Topic, offset: int, *, partition: int = 0, version: int = 2) -> Deleted:
    asked = DeleteRecordsRequest.DeleteRecordsPartition(partition, offset)
    named = DeleteRecordsRequest.DeleteRecordsTopic(topic.name, (asked,))
    (found,) = client.ask(DeleteRecordsRequest((named,), 5_000), version).topics[0].partitions
    return found.error_code, found.low_watermark


def filled(client: RawClient, **configs: object) -> Topic:
    topic = client.topic(**configs)
    for value in (b"a", b"b", b"c", b"d", b"e"):
        client.produce(topic, batch(value, keys=[b"k"]))
    return topic


@pytest.mark.parametrize("version", [0, 1, 2])
def test_every_version_is_served(client: RawClient, version: int):
    assert delete(client, filled(client), 2, version=version) == (0, 2)


def test_what_lies_before_the_offset_is_gone(client: RawClient):
    topic = filled(client)
    assert delete(client, topic, 2) == (0, 2)
    assert client.fetch(topic, 0).error_code == 1
    found = client.fetch(topic, 2)
    assert (values(found), found.log_start_offset) == ([b"c", b"d", b"e"], 2)
    assert client.produce(topic, batch(b"f")).log_start_offset == 2


def test_everything(client: RawClient):
    topic = filled(client)
    assert delete(client, topic, -1) == (0, 5)
    assert client.fetch(topic, 5).records == b""
    assert client.produce(topic, batch(b"f")).base_offset == 5


def test_an_offset_at_or_below_the_start_changes_nothing(client: RawClient):
    topic = filled(client)
    delete(client, topic, 3)
    assert [delete(client, topic, offset) for offset in (0, 2, 3)] == [(0, 3)] * 3


@pytest.mark.parametrize("offset", [6, 99, -2])
def test_an_offset_out_of_range(client: RawClient, offset: int):
    assert delete(client, filled(client), offset) == (1, -1)


def test_an_empty_partition(client: RawClient):
    topic = client.topic()
    assert [delete(client, topic, offset) for offset in (-1, 0, 1)] == [(0, 0), (0, 0), (1, -1)]


def test_unknown_topics_and_partitions(client: RawClient):
    assert delete(client, Topic("nowhere", bytes(16)), 0) == (3, -1)
    assert delete(client, client.topic(), 0, partition=4) == (3, -1)


def test_topics_that_are_only_compacted_are_refused(client: RawClient):
    assert delete(client, filled(client, cleanup_policy="compact"), 2) == (44, -1)
    assert delete(client, client.topic(cleanup_policy="compact"), 0) == (44, -1)
    assert delete(client, filled(client, cleanup_policy="compact,delete"), 2) == (0, 2)


def test_a_reader_that_waits_learns_of_it(client: RawClient):
    topic = filled(client)
    assert delete(client, topic, 5) == (0, 5)
    assert client.fetch(topic, 5).log_start_offset == 5


def test_a_new_node_does_not_bring_records_back(tmp_path: Path):
    with running_node(tmp_path) as first:
        topic = filled(first.client)
        delete(first.client, topic, 2)
    with running_node(tmp_path) as second:
        assert second.client.fetch(topic, 1).error_code == 1
        assert values(second.client.fetch(topic, 2)) == [b"c", b"d", b"e"]


def test_only_the_leader_deletes(running: RunningNode):
    topic = filled(running.client)
    replica = running.node.replicas.get(topic.name, 0)
    assert replica is not None

    def move() -> None:
        replica.leader = 9

    running.change(move)
    assert delete(running.client, topic, 2) == (6, -1)
