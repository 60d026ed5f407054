"""Quotas frame by frame on both brokers: how long the pauses are, what is in the answers, who is let in."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from ottla.wire.types import ApiVersionsRequest, CreateTopicsRequest, DeleteTopicsRequest
from tests.component.broker.quota_requests import alter, await_limits, describe, entry
from tests.component.broker.raw_client import (
    Closed,
    Connection,
    RawClient,
    Topic,
    batch,
    fetch_partition,
    fetch_request,
    produce_request,
)
from tests.interop.node.brokers import Node

QUOTA_EXCEEDED = 89
_serial = count()


def limited(client: RawClient, **limits: float) -> Connection:
    """A connection of a new client that has these limits."""
    client_id = f"limited-{next(_serial)}-{os.getpid()}"
    assert alter(client, entry({"client-id": client_id}, **limits)) == [0]
    while not describe(client, ("client-id", 0, client_id)):
        pass  # Apache Kafka's broker learns of it a little later
    return client.connect(client_id)


def produce(connection: Connection, topic: Topic, size: int) -> int:
    answer = connection.ask(produce_request(topic, {0: batch(os.urandom(size))}, acks=1), 13)
    assert answer.responses[0].partition_responses[0].error_code == 0
    pause_ms: int = answer.throttle_time_ms
    return pause_ms


def fetch(connection: Connection, topic: Topic, offset: int, **fields: Any) -> tuple[int, int]:
    """The pause, and how many bytes of records came."""
    answer = connection.ask(
        fetch_request(topic, fetch_partition(0, offset), **{"session_epoch": -1, "max_wait_ms": 100} | fields), 17
    )
    return answer.throttle_time_ms, sum(len(one.records or b"") for each in answer.responses for one in each.partitions)


def test_pauses_after_a_burst(client: RawClient) -> None:
    """Ten seconds' worth is free; then each request pays for itself, and nothing is answered before it has paid."""
    topic = client.topic()
    connection = limited(client, producer_byte_rate=10_000.0)
    started = time.monotonic()
    assert [produce(connection, topic, 30_000) for _ in range(3)] == [0, 0, 0]
    took_ms = (time.monotonic() - started) * 1000
    pause_ms = produce(connection, topic, 30_000)
    assert 2_040 - took_ms - 300 <= pause_ms <= 2_060  # four requests of 30,140 bytes are 12,056 ms' worth
    paused_at = time.monotonic()
    number = connection.send(ApiVersionsRequest(), 0)
    connection.receive(18, 0, number)
    assert pause_ms - 100 <= (time.monotonic() - paused_at) * 1000 <= pause_ms + 1_000
    assert produce(connection, topic, 30_000) == pytest.approx(4_800, abs=500)


def test_one_large_request(client: RawClient) -> None:
    connection = limited(client, producer_byte_rate=10_000.0)
    assert produce(connection, client.topic(), 500_000) == pytest.approx(40_010, abs=20)


def test_fetches_get_ten_seconds_worth_and_then_nothing(client: RawClient) -> None:
    topic = client.topic()
    for _ in range(8):
        produce(client.connection, topic, 30_000)
    connection = limited(client, consumer_byte_rate=10_000.0)
    got = [fetch(connection, topic, 0) for _ in range(3)]
    assert [size for _, size in got] == [0, 100_000, 0]
    assert got[0][0] <= 10  # what comes with the records is a little too much at first
    assert got[2][0] == pytest.approx(9_850, abs=200)


def test_an_over_quota_fetch_opens_no_session(client: RawClient) -> None:
    topic = client.topic()
    produce(client.connection, topic, 600)
    connection = limited(client, consumer_byte_rate=100.0)
    assert fetch(connection, topic, 0)[1] > 600
    answer = connection.ask(fetch_request(topic, fetch_partition(0, 0), session_epoch=0, max_wait_ms=0), 17)
    assert (answer.session_id, answer.responses) == (0, ())
    assert answer.throttle_time_ms > 0


def test_mutations_are_refused_one_by_one_and_older_clients_wait(client: RawClient) -> None:
    kind = CreateTopicsRequest

    def create(connection: Connection, version: int, *numbers: int) -> Any:
        topics = tuple(kind.CreatableTopic(f"{connection.client_id}-{each}", 8, 1) for each in numbers)
        return connection.ask(kind(topics, 10_000), version)

    connection = limited(client, controller_mutation_rate=1.0)
    answer = create(connection, 7, 1, 2, 3)
    assert sorted(each.error_code for each in answer.topics) == [0, 0, QUOTA_EXCEEDED]
    assert answer.throttle_time_ms == pytest.approx(5_000, abs=500)
    connection = limited(client, controller_mutation_rate=1.0)
    answer = create(connection, 5, 1, 2, 3)
    assert [each.error_code for each in answer.topics] == [0, 0, 0]
    assert answer.throttle_time_ms == pytest.approx(13_000, abs=500)
    other = client.connect(connection.client_id)
    deleted = other.ask(DeleteTopicsRequest(topic_names=(f"{connection.client_id}-1",), timeout_ms=10_000), 5)
    assert deleted.responses[0].error_code == QUOTA_EXCEEDED


def test_what_is_only_checked_costs_as_much(client: RawClient) -> None:
    connection = limited(client, controller_mutation_rate=1.0)
    kind = CreateTopicsRequest
    topics = tuple(kind.CreatableTopic(f"{connection.client_id}-{each}", 8, 1) for each in range(3))
    answer = connection.ask(kind(topics, 10_000, validate_only=True), 7)
    assert sorted(each.error_code for each in answer.topics) == [0, 0, QUOTA_EXCEEDED]


def test_time_is_felt_a_second_at_a_time(client: RawClient) -> None:
    connection = limited(client, request_percentage=0.00001)
    answer = connection.ask(ApiVersionsRequest(), 2)
    assert answer.throttle_time_ms == 1000


def test_connections_from_an_address(boot: Callable[..., Node]) -> None:
    node = boot()
    client = RawClient.at(node.bootstrap_servers)
    assert alter(client, entry({"ip": "127.0.0.1"}, connection_creation_rate=3.0)) == [0]
    await_limits(client, "nobody", {})
    while not describe(client, ("ip", 0, "127.0.0.1")):
        pass
    time.sleep(0.2)
    started = time.monotonic()
    let_in = sum(is_let_in(client) for _ in range(60))
    took_s = time.monotonic() - started
    assert took_s > 2, "who is too fast is held up"
    assert 28 <= let_in <= 34 + 3 * took_s
    assert let_in < 60
    assert client.ask(ApiVersionsRequest(), 0).error_code == 0, "who was in stays in"
    client.close_all()


def is_let_in(client: RawClient) -> bool:
    connection = client.connect()
    try:
        connection.ask(ApiVersionsRequest(), 0)
    except (Closed, ConnectionError):
        return False
    finally:
        connection.close()
    return True
