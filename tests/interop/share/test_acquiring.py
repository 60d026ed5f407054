"""Which records are handed out: how many at once, from where on, and of which transactions."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import Producer

from ottla.client import delete_records
from tests.interop.share.brokers import Cluster
from tests.interop.share.workers import (
    LIBRDKAFKA,
    OTTLA,
    DeliveredRecord,
    Worker,
    Workers,
    closing,
    polled,
    settled,
    silent,
    until,
)

MODES = ("java-4.3.1", "java-4.4.0", OTTLA)
CLIENTS = (*MODES, LIBRDKAFKA)
EXPLICIT = {"share.acknowledgement.mode": "explicit"}
EARLIEST = {"share.auto.offset.reset": "earliest"}
HOUR_MS = 3_600_000


def offsets(given: list[DeliveredRecord]) -> list[int]:
    return [each.offset for each in given]


def accepted(worker: Worker, count: int) -> list[DeliveredRecord]:
    """Accept what comes, until so many have come."""
    found: list[DeliveredRecord] = []

    def step() -> bool:
        given = worker.poll()
        found.extend(given)
        assert set(settled(worker, given, "ACCEPT").values()) <= {"NONE"}
        return len(found) >= count

    until(f"{count} records", step)
    return found


# --- how many at once -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("client", CLIENTS)
def test_whole_batches_whatever_the_limit(workers: Workers, cluster: Cluster, name: str, client: str):
    cluster.topic(name)
    cluster.configure(name, EARLIEST)
    for start in (0, 20):
        cluster.produce(name, *(f"v{number}" for number in range(start, start + 20)))
    worker = workers.open(client, name, name, EXPLICIT | {"max.poll.records": "7"})
    with closing(worker):
        # All of the first batch is acquired; how much of it one poll gives is the client's matter.
        assert offsets(accepted(worker, 40)) == [*range(40)]
    assert cluster.lag(name) == 0


@pytest.mark.parametrize("client", MODES)
def test_no_more_than_the_limit(workers: Workers, cluster: Cluster, name: str, client: str):
    cluster.topic(name)
    cluster.configure(name, EARLIEST)
    for start in (0, 20):
        cluster.produce(name, *(f"v{number}" for number in range(start, start + 20)))
    limited = EXPLICIT | {"max.poll.records": "7", "share.acquire.mode": "record_limit"}
    one, two = (workers.open(client, name, name, limited) for _ in range(2))
    with closing(one, two):
        first = polled(one)
        assert offsets(first) == [*range(7)]
        second = polled(two)
        begin = offsets(second)[0]
        assert begin in (7, 14), "the next, or those behind what a slow first member has fetched ahead"
        assert offsets(second) == [*range(begin, begin + 7)]
        settled(one, first, "ACCEPT")
        settled(two, second, "ACCEPT")
        rest = {*range(7, 40)} - {*offsets(second)}
        assert sorted(offsets(accepted(one, 26))) == sorted(rest)
    assert cluster.lag(name) == 0


# --- from where on ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("client", CLIENTS)
def test_from_the_latest(workers: Workers, cluster: Cluster, name: str, client: str):
    cluster.topic(name)
    cluster.produce(name, "before")
    worker = workers.open(client, name, name, EXPLICIT)
    with closing(worker):
        # Latest is where the partition ends at the first fetch, so what is written after some time certainly counts.
        given: list[DeliveredRecord] = []

        def step() -> bool:
            cluster.produce(name, "after")
            given.extend(accepted(worker, 0))
            return bool(given)

        until("a record", step)
        assert {each.value for each in given} == {"after"}


@pytest.mark.parametrize("client", CLIENTS)
def test_from_some_time_ago(workers: Workers, cluster: Cluster, name: str, client: str):
    cluster.topic(name)
    cluster.configure(name, {"share.auto.offset.reset": "by_duration:PT1H"})
    now_ms = time.time_ns() // 1_000_000
    cluster.produce(name, "yesterday", timestamp_ms=now_ms - 24 * HOUR_MS)
    cluster.produce(name, "a minute ago", timestamp_ms=now_ms - 60_000)
    worker = workers.open(client, name, name, EXPLICIT)
    with closing(worker):
        assert [each.value for each in accepted(worker, 1)] == ["a minute ago"]
    assert cluster.lag(name) == 0


# --- transactions -----------------------------------------------------------------------------------------------------


def write_transactions(cluster: Cluster, name: str) -> Producer:
    """Committed c0 to c2, aborted a0 and a1, committed c3; then one that stays open with o0."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": name})
    producer.init_transactions(60)
    for values, is_kept in ((("c0", "c1", "c2"), True), (("a0", "a1"), False), (("c3",), True)):
        producer.begin_transaction()
        for value in values:
            producer.produce(name, value, partition=0)
        producer.flush(60)
        (producer.commit_transaction if is_kept else producer.abort_transaction)(60)
    producer.begin_transaction()
    producer.produce(name, "o0", partition=0)
    assert producer.flush(60) == 0
    return producer


@pytest.mark.parametrize("client", CLIENTS)
def test_read_committed(workers: Workers, cluster: Cluster, name: str, client: str):
    cluster.topic(name)
    cluster.configure(name, EARLIEST | {"share.isolation.level": "read_committed"})
    producer = write_transactions(cluster, name)
    worker = workers.open(client, name, name, EXPLICIT)
    with closing(worker):
        assert [each.value for each in accepted(worker, 4)] == ["c0", "c1", "c2", "c3"]
        assert silent(worker, 0.5), "the open transaction is waited for"
        producer.commit_transaction(60)
        assert [each.value for each in accepted(worker, 1)] == ["o0"]
        until("the marker behind it is passed", lambda: silent(worker, 0.1) and cluster.lag(name) == 0)


@pytest.mark.parametrize("client", CLIENTS)
def test_read_uncommitted(workers: Workers, cluster: Cluster, name: str, client: str):
    cluster.topic(name)
    cluster.configure(name, EARLIEST)
    producer = write_transactions(cluster, name)
    worker = workers.open(client, name, name, EXPLICIT)
    with closing(worker):
        assert [each.value for each in accepted(worker, 7)] == ["c0", "c1", "c2", "a0", "a1", "c3", "o0"]
    producer.abort_transaction(60)


# --- logs that lose records -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("client", CLIENTS)
def test_a_truncated_topic(workers: Workers, cluster: Cluster, name: str, client: str):
    """Records are deleted that were handed out, that were released, and that nobody has read yet."""
    cluster.topic(name)
    cluster.configure(name, EARLIEST)
    for start in range(0, 40, 10):
        cluster.produce(name, *(f"v{number}" for number in range(start, start + 10)))
    worker = workers.open(client, name, name, EXPLICIT | {"max.poll.records": "10"})
    with closing(worker):
        first = polled(worker)
        assert offsets(first) == [*range(10)]
        for each in first:
            worker.acknowledge(each, "RELEASE" if each.offset < 5 else "ACCEPT")
        assert worker.commit() == {0: "NONE"}
        cluster.run(lambda client: delete_records(client, {(name, 0): 20}))
        assert offsets(accepted(worker, 20)) == [*range(20, 40)]
    assert cluster.lag(name) == 0


@pytest.mark.parametrize("client", CLIENTS)
def test_a_compacted_topic(workers: Workers, cluster: Cluster, name: str, client: str):
    """Offsets that are gone are passed, in the middle of batches and between them."""
    compacting = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.ms": "100"}
    cluster.topic(name, **compacting)
    cluster.configure(name, EARLIEST)
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "linger.ms": 20})

    def write(*keys: int) -> None:
        for key in keys:
            producer.produce(name, f"v{key}", key=str(key), partition=0)
        assert producer.flush(60) == 0
        time.sleep(0.15)  # the next batch begins a new segment

    write(*range(10))
    write(0, 1)
    write(0, 1, 2, 5)
    write(99)
    # The second batch is gone as a whole; the active segment, with the last one, is never compacted.
    left = [3, 4, 6, 7, 8, 9, 12, 13, 14, 15, 16]
    until("the cleaner has been there", lambda: record_count(cluster, name) == len(left))
    worker = workers.open(client, name, name, EXPLICIT)
    with closing(worker):
        assert offsets(accepted(worker, len(left))) == left
        until("the holes are passed", lambda: silent(worker, 0.1) and cluster.lag(name) == 0)


def record_count(cluster: Cluster, name: str) -> int:
    from ottla.client import EARLIEST, LATEST, Client, fetch

    async def read(client: Client) -> int:
        return len([record async for record in fetch(client, {(name, 0): EARLIEST}, until=LATEST)])

    time.sleep(0.1)
    return cluster.run(read)
