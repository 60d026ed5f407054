"""librdkafka's consumers of the new protocol (confluent-kafka) in groups of both brokers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from tests.interop.node.brokers import MOVING, wanted

PARTITIONS = 4
RECORDS = 200
PATIENCE_S = 75
"""Longer than a session: a leave may get lost."""
POLL_S = 0.1


@contextmanager
def member(bootstrap_servers: str, group: str, **settings: Any) -> Iterator[Consumer]:
    named = {key.replace("_", "."): value for key, value in settings.items()}
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": group,
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "topic.metadata.refresh.interval.ms": 500,
        }
        | named
    )
    try:
        yield consumer
    finally:
        consumer.close()


@pytest.fixture
def admin(bootstrap_servers: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap_servers})


@pytest.fixture
def topic(admin: AdminClient, name: str, bootstrap_servers: str) -> str:
    """A topic with records in every partition."""
    create(admin, name, PARTITIONS)
    producer = Producer({"bootstrap.servers": bootstrap_servers})
    for number in range(RECORDS):
        producer.produce(name, str(number).encode(), partition=number % PARTITIONS)
    assert producer.flush(PATIENCE_S) == 0
    return name


def create(admin: AdminClient, name: str, partitions: int) -> None:
    for created in admin.create_topics([NewTopic(name, partitions, 1)]).values():
        created.result(PATIENCE_S)


def until(what: str, consumers: Sequence[Consumer], is_so: Callable[[], bool]) -> list[Any]:
    """Polls all until something is so, and gives what they read."""
    read = []
    end = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < end, f"never came: {what}"
        for consumer in consumers:
            message = consumer.poll(POLL_S)
            if message is not None and message.error() is None:
                read.append(message)
    return read


def owned(consumer: Consumer) -> set[tuple[str, int]]:
    return {(each.topic, each.partition) for each in consumer.assignment()}


def share(consumers: Sequence[Consumer], *counts: int) -> bool:
    parts = [owned(consumer) for consumer in consumers]
    return [len(part) for part in parts] == list(counts) and len(set().union(*parts)) == sum(counts)


def test_members_share_read_commit_and_take_over(bootstrap_servers: str, topic: str):
    with member(bootstrap_servers, topic) as first:
        first.subscribe([topic])
        read: list[Any] = []
        end = time.monotonic() + PATIENCE_S
        while len(read) < RECORDS and time.monotonic() < end:
            message = first.poll(POLL_S)
            if message is not None and message.error() is None:
                read.append(message)
        assert sorted(int(each.value()) for each in read) == list(range(RECORDS))
        first.commit(asynchronous=False)
        with member(bootstrap_servers, topic) as second:
            second.subscribe([topic])
            again = until("both have half", [first, second], lambda: share([first, second], 2, 2))
            assert again == []
        until("the first has all again", [first], lambda: len(owned(first)) == PARTITIONS)


def test_a_pattern_is_resolved_by_the_broker(bootstrap_servers: str, admin: AdminClient, name: str):
    create(admin, f"{name}.a", 1)
    create(admin, f"x{name}.a", 1)
    with member(bootstrap_servers, name) as consumer:
        consumer.subscribe([f"^{name}\\..*"])
        until("the topic that is there", [consumer], lambda: owned(consumer) == {(f"{name}.a", 0)})
        create(admin, f"{name}.b", 2)
        until("one that comes", [consumer], lambda: len(owned(consumer)) == 3)


def test_a_topic_grows_while_it_is_subscribed_to(bootstrap_servers: str, admin: AdminClient, topic: str):
    with member(bootstrap_servers, topic) as consumer:
        consumer.subscribe([topic])
        until("all partitions", [consumer], lambda: len(owned(consumer)) == PARTITIONS)
        for grown in admin.create_partitions([NewPartitions(topic, PARTITIONS + 3)]).values():
            grown.result(PATIENCE_S)
        until("the new ones, too", [consumer], lambda: len(owned(consumer)) == PARTITIONS + 3)


@pytest.mark.skipif(
    MOVING in wanted(),
    reason="a leave gets lost when the coordinator moves, and UNRELEASED_INSTANCE_ID is fatal to librdkafka",
)
def test_a_static_member_comes_back_to_its_partitions(bootstrap_servers: str, topic: str):
    with ExitStack() as stack:
        two = stack.enter_context(member(bootstrap_servers, topic, group_instance_id="two"))
        two.subscribe([topic])
        with member(bootstrap_servers, topic, group_instance_id="one") as one:
            one.subscribe([topic])
            until("both have half", [one, two], lambda: share([one, two], 2, 2))
            before = owned(one)
        again = stack.enter_context(member(bootstrap_servers, topic, group_instance_id="one"))
        again.subscribe([topic])
        until("both have half again", [again, two], lambda: share([again, two], 2, 2))
        assert owned(again) == before


@pytest.mark.parametrize("assignor", ["uniform", "range"])
def test_the_brokers_assignors(bootstrap_servers: str, topic: str, assignor: str):
    with ExitStack() as stack:
        consumers = [
            stack.enter_context(member(bootstrap_servers, f"{topic}-{assignor}", group_remote_assignor=assignor))
            for _ in range(PARTITIONS)
        ]
        for consumer in consumers:
            consumer.subscribe([topic])
        until("one each", consumers, lambda: share(consumers, *[1] * PARTITIONS))
