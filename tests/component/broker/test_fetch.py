"""Fetch over the wire: sizes, positions, epochs, isolation, and waiting."""

from __future__ import annotations

import time
from typing import Any

import pytest

from ottla.broker.handlers.fetch import VERSIONS
from ottla.wire.batch import build_end_txn_marker
from ottla.wire.types import DeleteTopicsRequest, FetchRequest, MetadataRequest
from tests.component.broker.raw_client import (
    RawClient,
    RunningNode,
    Topic,
    batch,
    batches,
    fetch_partition,
    fetch_request,
    produce_request,
    values,
)
from tests.component.broker.transactional_batches import DATA, in_transaction

FETCH = 1


def filled(client: RawClient, *values: bytes, partitions: int = 1, **configs: object) -> Topic:
    """A topic with one batch for each value."""
    topic = client.topic(partitions, **configs)
    for value in values:
        client.produce(topic, batch(value))
    return topic


# --- what is read -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(VERSIONS[0], VERSIONS[1] + 1))
def test_every_version_is_served(client: RawClient, version: int):
    topic = filled(client, b"a", b"b")
    answer = client.fetch(topic, version=version)
    assert (answer.error_code, answer.high_watermark, answer.last_stable_offset) == (0, 2, 2)
    assert answer.log_start_offset == (0 if version >= 5 else -1)
    assert answer.aborted_transactions is None
    assert values(answer) == [b"a", b"b"]


def test_topics_go_by_name_below_version_13_and_by_id_from_then_on(client: RawClient):
    topic = filled(client, b"a")
    by_name = client.ask(fetch_request(topic, fetch_partition(0, 0)), 12).responses[0]
    by_id = client.ask(fetch_request(topic, fetch_partition(0, 0)), 13).responses[0]
    assert (by_name.topic, by_name.topic_id) == (topic.name, bytes(16))
    assert (by_id.topic, by_id.topic_id) == ("", topic.topic_id)


def test_unknown_topics_and_partitions(client: RawClient):
    topic = client.topic()
    unknown = Topic("nowhere", b"\x07" * 16)
    assert client.fetch(unknown, version=12).error_code == 3
    assert client.fetch(unknown, version=13).error_code == 100
    assert client.fetch(Topic("", bytes(16)), version=13).error_code == 100
    assert client.fetch(topic, partition=5).error_code == 3


def test_nothing_is_an_empty_string_of_bytes_and_not_null(client: RawClient):
    topic = client.topic()
    assert client.fetch(topic).records == b""
    assert client.fetch(topic, 9).records == b""


def test_whole_batches_from_the_one_that_holds_the_offset(client: RawClient):
    topic = client.topic()
    client.produce(topic, batch(b"a", b"b", b"c"))
    client.produce(topic, batch(b"d"))
    assert values(client.fetch(topic, 2)) == [b"a", b"b", b"c", b"d"]
    assert values(client.fetch(topic, 3)) == [b"d"]


@pytest.mark.parametrize("offset", [99, -5, 6])
def test_an_offset_out_of_range(client: RawClient, offset: int):
    answer = client.fetch(filled(client, *[b"x"] * 5), offset)
    assert answer.error_code == 1
    assert (answer.high_watermark, answer.last_stable_offset, answer.log_start_offset) == (-1, -1, -1)


@pytest.mark.parametrize("offset", [1, -1])
def test_an_offset_out_of_the_range_of_an_empty_partition(client: RawClient, offset: int):
    assert client.fetch(client.topic(), offset).error_code == 1


def test_the_end_of_the_log_is_within_range(client: RawClient):
    answer = client.fetch(filled(client, b"a", b"b"), 2)
    assert (answer.error_code, answer.high_watermark, answer.records) == (0, 2, b"")


def test_the_leaders_epoch_is_checked(client: RawClient):
    topic = filled(client, b"a")
    assert client.fetch(topic, current_leader_epoch=0).error_code == 0
    assert client.fetch(topic, current_leader_epoch=7).error_code == 75
    assert client.fetch(topic, current_leader_epoch=7, partition=3).error_code == 3


# --- how much ---------------------------------------------------------------------------------------------------------


def test_the_first_batch_comes_whole_however_small_the_limits(client: RawClient):
    topic = filled(client, bytes(500), bytes(500))
    for limits in ({"partition_max_bytes": 10}, {"max_bytes": 10}, {"max_bytes": 0}, {"partition_max_bytes": 0}):
        answer = client.fetch(topic, **limits)
        assert len(batches(answer)) == 1, limits


def test_only_the_first_partition_with_data_may_pass_the_limit(client: RawClient):
    topic = client.topic(3)
    for partition in (1, 2):
        client.produce(topic, batch(bytes(500)), partition=partition)
    for max_bytes in (0, 10):
        wanted = [fetch_partition(partition, 0) for partition in range(3)]
        answer = client.ask(fetch_request(topic, *wanted, max_bytes=max_bytes, session_epoch=-1), 17)
        assert [len(one.records) > 0 for one in answer.responses[0].partitions] == [False, True, False], max_bytes


def test_later_partitions_get_what_still_fits(client: RawClient):
    topic = client.topic(2)
    for partition in (0, 1):
        for _ in range(3):
            client.produce(topic, batch(bytes(1_000)), partition=partition)
    size = len(client.fetch(topic).records)
    wanted = [fetch_partition(partition, 0) for partition in range(2)]
    answer = client.ask(fetch_request(topic, *wanted, max_bytes=size + size // 2, session_epoch=-1), 17)
    first, second = answer.responses[0].partitions
    assert (len(batches(first)), len(batches(second))) == (3, 1)
    assert len(first.records) + len(second.records) <= size + size // 2


def test_partitions_come_in_the_order_of_the_request(client: RawClient):
    topic = client.topic(3)
    wanted = [fetch_partition(partition, 0) for partition in (2, 0, 1)]
    answer = client.ask(fetch_request(topic, *wanted, session_epoch=-1), 17)
    assert [one.partition_index for one in answer.responses[0].partitions] == [2, 0, 1]


def test_in_a_session_busy_partitions_take_turns(client: RawClient):
    topic = client.topic(2)
    for partition in (0, 1):
        client.produce(topic, batch(bytes(500)), partition=partition)
    wanted = [fetch_partition(partition, 0) for partition in range(2)]
    full = client.ask(fetch_request(topic, *wanted, max_bytes=10), 17)
    served = [one.partition_index for one in full.responses[0].partitions if one.records]
    for epoch in (1, 2, 3):
        more = fetch_request(topic, session_id=full.session_id, session_epoch=epoch, max_bytes=10)
        served += [one.partition_index for one in client.ask(more, 17).responses[0].partitions if one.records]
    assert served == [0, 0, 1, 0]  # the full fetch changes nothing in the order


# --- waiting ----------------------------------------------------------------------------------------------------------


def waiting(topic: Topic, offset: int, *, max_wait_ms: int = 10_000, **fields: Any) -> FetchRequest:
    return fetch_request(topic, fetch_partition(0, offset), max_wait_ms=max_wait_ms, session_epoch=-1, **fields)


def test_without_data_the_answer_comes_when_the_time_is_over(client: RawClient):
    topic = filled(client, b"a")
    began = time.monotonic()
    answer = client.ask(waiting(topic, 1, max_wait_ms=300), 17)
    assert 0.25 < time.monotonic() - began < 5
    assert answer.responses[0].partitions[0].records == b""


def test_an_append_wakes_who_waits(client: RawClient):
    topic = filled(client, b"a")
    connection = client.connect()
    number = connection.send(waiting(topic, 1), 17)
    assert connection.is_silent(0.1)
    client.produce(topic, batch(b"b"))
    assert values(connection.receive(FETCH, 17, number).responses[0].partitions[0]) == [b"b"]
    connection.close()


def test_a_partition_that_was_never_written_can_be_waited_for(client: RawClient):
    topic = client.topic()
    connection = client.connect()
    number = connection.send(waiting(topic, 0), 17)
    assert connection.is_silent(0.1)
    client.produce(topic, batch(b"a"))
    assert values(connection.receive(FETCH, 17, number).responses[0].partitions[0]) == [b"a"]
    connection.close()


def test_waiting_goes_on_until_there_are_enough_bytes(client: RawClient):
    topic = client.topic()
    connection = client.connect()
    number = connection.send(waiting(topic, 0, min_bytes=1_500), 17)
    client.produce(topic, batch(bytes(1_000)))
    assert connection.is_silent(0.1)
    client.produce(topic, batch(bytes(1_000)))
    assert len(batches(connection.receive(FETCH, 17, number).responses[0].partitions[0])) == 2
    connection.close()


def test_an_error_is_told_at_once(client: RawClient):
    topic = filled(client, b"a")
    began = time.monotonic()
    assert client.ask(waiting(topic, 99), 17).responses[0].partitions[0].error_code == 1
    assert time.monotonic() - began < 5


def test_nothing_to_fetch_is_told_at_once(client: RawClient):
    topic = client.topic()
    began = time.monotonic()
    assert client.ask(fetch_request(topic, max_wait_ms=10_000, session_epoch=-1), 17).responses == ()
    assert time.monotonic() - began < 5


def test_a_deleted_topic_ends_the_waiting(client: RawClient):
    topic = filled(client, b"a")
    connection = client.connect()
    number = connection.send(waiting(topic, 1), 17)
    assert connection.is_silent(0.1)
    named = DeleteTopicsRequest.DeleteTopicState(topic.name)
    assert client.ask(DeleteTopicsRequest(topics=(named,), timeout_ms=5_000), 6).responses[0].error_code == 0
    began = time.monotonic()
    assert connection.receive(FETCH, 17, number).responses[0].partitions[0].error_code in (3, 100)
    assert time.monotonic() - began < 5
    connection.close()


def test_what_comes_behind_a_waiting_fetch_is_answered_after_it(client: RawClient):
    topic = filled(client, b"a")
    connection = client.connect()
    first = connection.send(waiting(topic, 1, max_wait_ms=300), 17)
    second = connection.send(MetadataRequest(()), 9)
    connection.receive(FETCH, 17, first)
    connection.receive(3, 9, second)
    connection.close()


def test_a_position_on_an_older_segment_is_not_waited_for(client: RawClient):
    """What is missing to the wanted bytes lies in the next segment, which no append will bring."""
    topic = client.topic(segment_bytes=1_048_576)
    for _ in range(3):
        client.produce(topic, batch(bytes(600_000)))
    began = time.monotonic()
    answer = client.ask(
        fetch_request(
            topic,
            fetch_partition(0, 0, partition_max_bytes=4 << 20),
            max_bytes=4 << 20,
            min_bytes=1_000_000,
            max_wait_ms=10_000,
            session_epoch=-1,
        ),
        17,
    )
    assert len(batches(answer.responses[0].partitions[0])) == 1
    assert time.monotonic() - began < 5


def test_all_data_is_read_over_segments(client: RawClient):
    topic = client.topic(segment_bytes=1_048_576)
    for number in range(4):
        client.produce(topic, batch(bytes(400_000) + b"%d" % number))
    offset, read = 0, []
    while offset < 4:
        found = client.fetch(topic, offset, partition_max_bytes=4 << 20, max_bytes=4 << 20)
        read += [value[-1:] for value in values(found) if value]
        offset = batches(found)[-1].next_offset
    assert read == [b"0", b"1", b"2", b"3"]


# --- isolation --------------------------------------------------------------------------------------------------------


def test_committed_reads_list_no_aborted_transactions_where_there_are_none(client: RawClient):
    topic = filled(client, b"a")
    answer = client.fetch(topic, isolation_level=1)
    assert (answer.aborted_transactions, values(answer)) == ((), [b"a"])
    assert client.fetch(topic, 1, isolation_level=1).aborted_transactions in ((), None)


def test_an_open_transaction_bounds_committed_reads(running: RunningNode):
    client = running.client
    topic = filled(client, b"a")
    in_transaction(running, topic, DATA)
    committed = client.fetch(topic, isolation_level=1)
    assert (values(committed), committed.last_stable_offset, committed.high_watermark) == ([b"a"], 1, 2)
    assert values(client.fetch(topic)) == [b"a", b"t"]
    assert client.fetch(topic, 1, isolation_level=1).records == b""


def test_an_aborted_transaction_is_named(running: RunningNode):
    client = running.client
    topic = filled(client, b"a")
    marker = build_end_txn_marker(
        committed=False, producer_id=5, producer_epoch=0, coordinator_epoch=0, timestamp=1_000
    )
    in_transaction(running, topic, DATA, bytes(marker))
    answer = client.fetch(topic, isolation_level=1)
    assert [(one.producer_id, one.first_offset) for one in answer.aborted_transactions] == [(5, 1)]
    assert (answer.last_stable_offset, answer.high_watermark) == (3, 3)
    assert client.fetch(topic).aborted_transactions is None


# --- leaders and epochs -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [15, 16])
def test_who_is_not_the_leader_names_it(running: RunningNode, version: int):
    client = running.client
    topic = client.topic()
    running.change(lambda: running.node.replicas.by_key.pop((topic.name, 0)))  # as if it were elsewhere
    answer = client.ask(fetch_request(topic, fetch_partition(0, 0), session_epoch=-1), version)
    partition = answer.responses[0].partitions[0]
    assert partition.error_code == 6
    named = (partition.current_leader.leader_id, [one.node_id for one in answer.node_endpoints])
    assert named == ((1, [1]) if version >= 16 else (-1, []))


def test_an_older_epoch_is_fenced_and_the_leader_named(running: RunningNode):
    client = running.client
    topic = client.topic()
    replica = running.node.replicas.get(topic.name, 0)
    assert replica is not None

    def grow() -> None:
        replica.leader_epoch = 3

    running.change(grow)
    answer = client.fetch(topic, current_leader_epoch=1)
    assert (answer.error_code, answer.current_leader.leader_id) == (74, 1)


def test_divergence_is_told_at_once_and_without_records(running: RunningNode):
    client = running.client
    topic = filled(client, b"a", b"b")
    replica = running.node.replicas.get(topic.name, 0)
    assert replica is not None

    def grow() -> None:
        replica.leader_epoch = 3
        replica.log.become_leader(3)

    running.change(grow)
    client.produce(topic, batch(b"c"))
    same = client.fetch(topic, 2, last_fetched_epoch=0)
    assert (same.diverging_epoch.epoch, values(same)) == (-1, [b"c"])
    parted = client.fetch(topic, 3, last_fetched_epoch=0)
    assert (parted.diverging_epoch.epoch, parted.diverging_epoch.end_offset, parted.records) == (0, 2, b"")
    assert parted.error_code == 0


def test_a_reader_that_hangs_up_is_not_waited_for(running: RunningNode):
    client = running.client
    topic = filled(client, b"a")
    connection = client.connect()
    connection.send(waiting(topic, 1), 17)
    assert connection.is_silent(0.1)
    assert len(running.node.purgatory) == 1
    connection.close()
    client.produce(topic, batch(b"b"))
    assert values(client.fetch(topic)) == [b"a", b"b"]
    assert len(running.node.purgatory) == 0


def test_a_fetch_sees_what_was_produced_before_it_on_the_same_connection(client: RawClient):
    topic = filled(client, b"a")
    connection = client.connect()
    for number in range(20):
        frames_sent = connection.send_together(
            (produce_request(topic, {0: batch(b"b")}, acks=0), 13), (waiting(topic, 1 + number, max_wait_ms=0), 17)
        )
        answer = connection.receive(FETCH, 17, frames_sent[1])
        assert values(answer.responses[0].partitions[0]) == [b"b"]
    connection.close()
