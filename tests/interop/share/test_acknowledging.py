"""What becomes of records that are accepted, released, rejected, renewed or forgotten, with every client."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from tests.interop.share.brokers import Cluster
from tests.interop.share.workers import (
    JAVA,
    LIBRDKAFKA,
    OTTLA,
    DeliveredRecord,
    Workers,
    closing,
    polled,
    settled,
    silent,
)

CLIENTS = ("java-4.3.1", "java-4.4.0", LIBRDKAFKA, OTTLA)
RENEWING = ("java-4.3.1", "java-4.4.0", OTTLA)
EXPLICIT = {"share.acknowledgement.mode": "explicit"}
LOCK_S = 1.0
SHORT_LOCK = {"share.record.lock.duration.ms": 1000}


@pytest.fixture
def topic(cluster: Cluster, name: str) -> str:
    """Ten records in one batch, and a group that reads from the beginning."""
    cluster.topic(name)
    cluster.produce(name, *(f"v{number}" for number in range(10)))
    cluster.configure(name, {"share.auto.offset.reset": "earliest"})
    return name


def deliveries(given: list[DeliveredRecord]) -> Mapping[int, int]:
    return {each.offset: each.delivery_count for each in given}


EVERYTHING = dict.fromkeys(range(10), 1)


@pytest.mark.parametrize("client", CLIENTS)
def test_implicit_acceptance(workers: Workers, cluster: Cluster, topic: str, client: str):
    worker = workers.open(client, topic, topic)
    with closing(worker):
        given = polled(worker)
        assert deliveries(given) == EVERYTHING
        assert [each.value for each in given] == [f"v{number}" for number in range(10)]
        assert silent(worker, 0.5)  # which accepts them
    assert cluster.lag(topic) == 0


@pytest.mark.parametrize("client", ["java-4.3.1", "java-4.4.0", OTTLA])
def test_records_of_one_poll_come_again_after_an_implicit_close(workers: Workers, topic: str, client: str):
    worker = workers.open(client, topic, topic)
    with closing(worker):
        assert deliveries(polled(worker)) == EVERYTHING
    again = workers.open(client, topic, topic)
    with closing(again):
        assert deliveries(polled(again)) == dict.fromkeys(range(10), 2)
        assert again.commit() == {0: "NONE"}


@pytest.mark.parametrize("client", CLIENTS)
def test_records_accepted_explicitly_do_not_come_again(workers: Workers, cluster: Cluster, topic: str, client: str):
    worker = workers.open(client, topic, topic, EXPLICIT)
    with closing(worker):
        assert settled(worker, polled(worker), "ACCEPT") == {0: "NONE"}
        assert cluster.lag(topic) == 0
    again = workers.open(client, topic, topic)
    with closing(again):
        assert silent(again)


@pytest.mark.parametrize("client", CLIENTS)
def test_released_records_come_again(workers: Workers, cluster: Cluster, topic: str, client: str):
    worker = workers.open(client, topic, topic, EXPLICIT)
    with closing(worker):
        given = polled(worker)
        for each in given:
            worker.acknowledge(each, "RELEASE" if each.offset in (3, 4) else "ACCEPT")
        assert worker.commit() == {0: "NONE"}
        assert cluster.lag(topic) == 2
        again = polled(worker)
        assert deliveries(again) == {3: 2, 4: 2}
        assert settled(worker, again, "ACCEPT") == {0: "NONE"}
    assert cluster.lag(topic) == 0


@pytest.mark.parametrize("client", CLIENTS)
def test_rejected_records_do_not_come_again(workers: Workers, cluster: Cluster, topic: str, client: str):
    worker = workers.open(client, topic, topic, EXPLICIT)
    with closing(worker):
        assert settled(worker, polled(worker), "REJECT") == {0: "NONE"}
        assert silent(worker, 0.5)
    assert cluster.lag(topic) == 0


@pytest.mark.parametrize("client", CLIENTS)
def test_acknowledgements_go_with_the_next_poll(workers: Workers, cluster: Cluster, topic: str, client: str):
    worker = workers.open(client, topic, topic, EXPLICIT)
    with closing(worker):
        verdicts = ["ACCEPT", "RELEASE", "REJECT"]
        for each in polled(worker):
            worker.acknowledge(each, verdicts[each.offset % 3])
        again = polled(worker)
        assert deliveries(again) == {1: 2, 4: 2, 7: 2}
        settled(worker, again, "ACCEPT")
    assert cluster.lag(topic) == 0


@pytest.mark.parametrize("client", CLIENTS)
def test_locks_expire(workers: Workers, cluster: Cluster, topic: str, client: str):
    """Who holds records for too long loses them to others."""
    cluster.configure(topic, SHORT_LOCK)
    slow = workers.open(client, topic, topic, EXPLICIT)
    other = workers.open(client, topic, topic, EXPLICIT)
    with closing(slow, other):
        given = polled(slow)
        again = polled(other)
        assert deliveries(again) == dict.fromkeys(range(10), 2)
        assert settled(other, again, "ACCEPT") == {0: "NONE"}
        late = settled(slow, given[5:], "ACCEPT")
        assert late == {0: "NONE"}, "below the start offset everything has been said"
    assert cluster.lag(topic) == 0


@pytest.mark.parametrize("client", CLIENTS)
def test_too_late_is_refused(workers: Workers, cluster: Cluster, topic: str, client: str):
    cluster.configure(topic, SHORT_LOCK)
    slow = workers.open(client, topic, topic, EXPLICIT)
    other = workers.open(client, topic, topic, EXPLICIT)
    with closing(slow, other):
        given = polled(slow)
        polled(other)
        assert settled(slow, given, "ACCEPT") == {0: "INVALID_RECORD_STATE"}
    assert cluster.lag(topic) == 10


@pytest.mark.parametrize("client", RENEWING)
def test_renewal_beyond_the_lock(workers: Workers, cluster: Cluster, topic: str, client: str):
    cluster.configure(topic, SHORT_LOCK)
    worker = workers.open(client, topic, topic, EXPLICIT)
    other = workers.open(client, topic, topic, EXPLICIT)
    with closing(worker, other):
        given = polled(worker)
        for _ in range(3):
            assert silent(other, 0.6)
            settled(worker, given, "RENEW")
            if client in JAVA:  # which gives renewed records once more
                given = polled(worker)
            assert deliveries(given) == EVERYTHING
        assert settled(worker, given, "ACCEPT") == {0: "NONE"}
        assert silent(other, 0.5)
    assert cluster.lag(topic) == 0


def test_slow_iteration_loses_no_locks(workers: Workers, cluster: Cluster, topic: str):
    """Our iterator accepts in time, and keeps what it has not given; a second consumer gets nothing of it."""
    from ottla.client import Client, ShareConsumer

    cluster.configure(topic, SHORT_LOCK)
    other = workers.open(OTTLA, topic, topic, EXPLICIT)

    async def work(client: Client) -> list[tuple[int, int]]:
        seen = []
        async with ShareConsumer(client, topic, [topic]) as consumer:
            async for record in consumer:
                if not seen:  # from now on the other one asks as well
                    asking = asyncio.get_running_loop().run_in_executor(None, other.poll, 2 * LOCK_S)
                seen.append((record.offset, record.delivery_count))
                await asyncio.sleep(0.3 * LOCK_S)  # the work
                if len(seen) == 10:
                    await consumer.commit()
                    assert await asking == []
                    return seen
        raise AssertionError("the consumer ended")

    with closing(other):
        seen = cluster.run(work)
        assert seen == [(offset, 1) for offset in range(10)]
        assert silent(other, 0.5)
    assert cluster.lag(topic) == 0


@pytest.mark.parametrize("client", RENEWING)
def test_renewal_can_be_forbidden(workers: Workers, cluster: Cluster, topic: str, client: str):
    cluster.configure(topic, {"share.renew.acknowledge.enable": "false"})
    worker = workers.open(client, topic, topic, EXPLICIT)
    with closing(worker):
        given = polled(worker)
        if client in JAVA:
            assert settled(worker, given, "RENEW") == {0: "INVALID_RECORD_STATE"}
        else:
            with pytest.raises(Exception, match="INVALID_RECORD_STATE"):
                worker.acknowledge(given[0], "RENEW")


@pytest.mark.parametrize("client", CLIENTS)
def test_the_delivery_limit(workers: Workers, cluster: Cluster, topic: str, client: str):
    cluster.configure(topic, {"share.delivery.count.limit": 2})
    worker = workers.open(client, topic, topic, EXPLICIT)
    with closing(worker):
        counts: dict[int, list[int]] = {}
        while sum(map(len, counts.values())) < 20:
            given = polled(worker)
            for each in given:
                counts.setdefault(each.offset, []).append(each.delivery_count)
            assert settled(worker, given, "RELEASE") == {0: "NONE"}
        assert counts == {offset: [1, 2] for offset in range(10)}
        assert silent(worker, 0.7)
    assert cluster.lag(topic) == 0
