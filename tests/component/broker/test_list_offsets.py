"""ListOffsets over the wire: every special time, every version, what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.broker.handlers.list_offsets import VERSIONS
from ottla.wire.types import DeleteRecordsRequest, ListOffsetsRequest
from tests.component.broker.raw_client import RawClient, RunningNode, Topic, batch
from tests.component.broker.transactional_batches import DATA, in_transaction

LATEST, EARLIEST, MAX, EARLIEST_LOCAL, LATEST_TIERED, PENDING_UPLOAD = -1, -2, -3, -4, -5, -6
NEWEST = VERSIONS[1]
Found = tuple[int, int, int, int]
"""Error, timestamp, offset, leader epoch."""


def ask(
    client: RawClient, topic: Topic, *asked: ListOffsetsRequest.ListOffsetsPartition, version: int, isolation: int
) -> Any:
    named = ListOffsetsRequest.ListOffsetsTopic(topic.name, asked)
    return client.ask(ListOffsetsRequest(-1, isolation, (named,)), version).topics[0].partitions


def find(
    client: RawClient,
    topic: Topic,
    timestamp: int,
    *,
    version: int = NEWEST,
    isolation: int = 0,
    epoch: int = -1,
    partition: int = 0,
) -> Found:
    wanted = ListOffsetsRequest.ListOffsetsPartition(partition, epoch, timestamp)
    (found,) = ask(client, topic, wanted, version=version, isolation=isolation)
    return found.error_code, found.timestamp, found.offset, found.leader_epoch


def filled(client: RawClient) -> Topic:
    """Five records at 1000, 2000 … 5000 in batches of two, two and one."""
    topic = client.topic()
    client.produce(topic, batch(b"a", b"b", timestamps=[1_000, 2_000]))
    client.produce(topic, batch(b"c", b"d", timestamps=[3_000, 4_000]))
    client.produce(topic, batch(b"e", timestamps=[5_000]))
    return topic


@pytest.mark.parametrize("version", range(VERSIONS[0], VERSIONS[1] + 1))
def test_every_version_is_served(client: RawClient, version: int):
    topic = filled(client)
    epoch = 0 if version >= 4 else -1
    assert find(client, topic, LATEST, version=version) == (0, -1, 5, epoch)
    assert find(client, topic, EARLIEST, version=version) == (0, -1, 0, epoch)
    assert find(client, topic, 2_500, version=version) == (0, 3_000, 2, epoch)


@pytest.mark.parametrize(
    ("timestamp", "since", "found"),
    [
        (MAX, 7, (0, 5_000, 4, 0)),
        (EARLIEST_LOCAL, 8, (0, -1, 0, 0)),
        (LATEST_TIERED, 9, (0, -1, -1, -1)),
        (PENDING_UPLOAD, 11, (0, -1, -1, -1)),
    ],
)
def test_special_times_have_a_version_of_their_own(client: RawClient, timestamp: int, since: int, found: Found):
    topic = filled(client)
    assert find(client, topic, timestamp, version=since - 1) == (35, -1, -1, -1)
    assert find(client, topic, timestamp, version=since) == found
    assert find(client, topic, timestamp) == found


@pytest.mark.parametrize("timestamp", [-7, -100])
def test_an_unknown_special_time_is_refused(client: RawClient, timestamp: int):
    assert find(client, filled(client), timestamp)[0] == 35


def test_the_first_record_that_is_not_older(client: RawClient):
    topic = filled(client)
    found = [find(client, topic, timestamp)[1:3] for timestamp in (0, 1_000, 1_001, 4_000, 5_000)]
    assert found == [(1_000, 0), (1_000, 0), (2_000, 1), (4_000, 3), (5_000, 4)]


def test_a_time_after_the_last_record_finds_nothing_which_is_no_error(client: RawClient):
    assert find(client, filled(client), 9_999) == (0, -1, -1, -1)


def test_of_equal_largest_timestamps_the_first_record_is_found(client: RawClient):
    topic = client.topic()
    client.produce(topic, batch(b"a", b"b", b"c", timestamps=[1_000, 9_000, 9_000]))
    client.produce(topic, batch(b"d", b"e", timestamps=[9_000, 100]))
    assert find(client, topic, MAX) == (0, 9_000, 1, 0)


def test_times_need_not_rise(client: RawClient):
    topic = client.topic()
    for timestamp in (5_000, 1_000, 3_000):
        client.produce(topic, batch(b"x", timestamps=[timestamp]))
    assert find(client, topic, 2_000)[1:3] == (5_000, 0)
    assert find(client, topic, MAX)[1:3] == (5_000, 0)


@pytest.mark.parametrize(
    ("timestamp", "found"),
    [
        (LATEST, (0, -1, 0, 0)),
        (EARLIEST, (0, -1, 0, 0)),
        (EARLIEST_LOCAL, (0, -1, 0, 0)),
        (MAX, (0, -1, -1, -1)),
        (0, (0, -1, -1, -1)),
        (LATEST_TIERED, (0, -1, -1, -1)),
    ],
)
def test_an_empty_partition(client: RawClient, timestamp: int, found: Found):
    assert find(client, client.topic(), timestamp) == found


def test_deleted_records_are_not_found(client: RawClient):
    topic = filled(client)
    delete = DeleteRecordsRequest.DeleteRecordsPartition(0, 3)
    named = DeleteRecordsRequest.DeleteRecordsTopic(topic.name, (delete,))
    assert client.ask(DeleteRecordsRequest((named,), 5_000), 2).topics[0].partitions[0].error_code == 0
    assert find(client, topic, EARLIEST)[2] == 3
    assert find(client, topic, 0)[1:3] == (4_000, 3)


def test_unknown_topics_and_partitions(client: RawClient):
    assert find(client, Topic("nowhere", bytes(16)), LATEST) == (3, -1, -1, -1)
    assert find(client, client.topic(), LATEST, partition=4) == (3, -1, -1, -1)


def test_a_partition_twice_in_a_request_is_refused_once(client: RawClient):
    topic = filled(client)
    twice = [ListOffsetsRequest.ListOffsetsPartition(0, -1, timestamp) for timestamp in (LATEST, EARLIEST)]
    answers = ask(client, topic, *twice, version=NEWEST, isolation=0)
    assert [(one.partition_index, one.error_code) for one in answers] == [(0, 42)]


def test_the_leaders_epoch_is_checked(client: RawClient):
    topic = filled(client)
    assert find(client, topic, LATEST, epoch=0)[0] == 0
    assert find(client, topic, LATEST, epoch=5)[0] == 75


def test_an_older_epoch_is_fenced(running: RunningNode):
    topic = filled(running.client)
    replica = running.node.replicas.get(topic.name, 0)
    assert replica is not None

    def grow() -> None:
        replica.leader_epoch = 3

    running.change(grow)
    assert find(running.client, topic, LATEST, epoch=1)[0] == 74


def test_an_open_transaction_bounds_what_committed_readers_find(running: RunningNode):
    client = running.client
    topic = filled(client)
    in_transaction(running, topic, DATA)
    assert find(client, topic, LATEST)[2] == 6
    assert find(client, topic, LATEST, isolation=1)[2] == 5
    late = client.topic()
    in_transaction(running, late, DATA)
    assert find(client, late, 500)[2] == 0
    assert find(client, late, 500, isolation=1) == (0, -1, -1, -1)
