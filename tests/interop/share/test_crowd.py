"""Many consumers in one group, of one kind and of all kinds, some of which are killed."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack

import pytest

from tests.interop.share.brokers import Cluster
from tests.interop.share.workers import (
    JAVA,
    LIBRDKAFKA,
    OTTLA,
    DeliveredRecord,
    Driver,
    JavaWorker,
    Workers,
    closing,
    librdkafka_member,
    settled,
    until,
)

EXPLICIT = {"share.acknowledgement.mode": "explicit"}
EARLIEST = {"share.auto.offset.reset": "earliest"}
MEMBERS = 20
BATCH = 10
LOCK_MS = 600_000
"""Longer than any test: a record that comes twice came while somebody held it."""
RECORDS = 10_000
PARTITIONS = 3
STEP = 50 * PARTITIONS
"""A batch for each partition."""


@pytest.mark.parametrize("client", ["java-4.3.1", LIBRDKAFKA, OTTLA])
def test_twenty_consumers_on_one_partition(workers: Workers, cluster: Cluster, name: str, client: str):
    """Each gets a batch of its own, and all are accepted.

    Now and then a Java consumer acquires two batches for one poll: a `poll` that begins just before an answer arrives
    asks for another one. It gives the first and keeps the second, which is released when it is closed. So whoever still
    waits when a round of polls has given nothing gets a new batch to wait for.
    """
    cluster.topic(name)
    cluster.configure(name, EARLIEST | {"share.record.lock.duration.ms": LOCK_MS})
    written = 0

    def write_batch() -> None:
        nonlocal written
        cluster.produce(name, *(f"v{number}" for number in range(written, written + BATCH)))
        written += BATCH

    for _ in range(MEMBERS):
        write_batch()
    settings = EXPLICIT | {"max.poll.records": str(BATCH)}
    members = [workers.open(client, name, name, settings) for _ in range(MEMBERS)]
    given: dict[int, list[DeliveredRecord]] = {}

    def step() -> bool:
        found = {n: worker.poll(0.1) for n, worker in enumerate(members) if n not in given}
        given.update((n, records) for n, records in found.items() if records)
        if not any(found.values()):
            write_batch()
        return len(given) == MEMBERS

    with closing(*members):
        until("every member has records", step)
        batches = {number: [each.offset for each in found] for number, found in given.items()}
        assert all(batch == [*range(batch[0], batch[0] + BATCH)] for batch in batches.values()), batches
        assert len({batch[0] for batch in batches.values()}) == MEMBERS, f"two have the same batch: {batches}"
        assert {each.delivery_count for found in given.values() for each in found} == {1}
        for number, worker in enumerate(members):
            assert settled(worker, given[number], "ACCEPT") == {0: "NONE"}
    rest: list[DeliveredRecord] = []
    last = workers.open(client, name, name, settings)

    def drained() -> bool:
        found = last.poll()
        rest.extend(found)
        if found:
            settled(last, found, "ACCEPT")
        return cluster.lag(name) == 0

    with closing(last):
        until("nothing is left", drained)
    delivered = [offset for batch in batches.values() for offset in batch] + [each.offset for each in rest]
    assert sorted(delivered) == [*range(written)]


def test_clients_of_all_kinds_in_one_group(cluster: Cluster, name: str):
    """Java 4.2.1, 4.3.1, 4.4.0 and librdkafka share 10 000 records; two of them are killed on the way.

    A partition that only those two had is nobody's until their sessions in the group are over.
    """
    cluster.topic(name, PARTITIONS)
    cluster.configure(name, EARLIEST | {"share.session.timeout.ms": 10_000})
    servers = cluster.bootstrap_servers
    with ExitStack() as stack:
        drivers = {release: Driver(release, servers) for release in JAVA}
        native = [librdkafka_member(servers, name, name) for _ in range(2)]
        histories = [*(driver.history for driver in drivers.values()), *native]
        for history in histories:
            stack.callback(history.end)
        for driver in drivers.values():
            JavaWorker(driver, name, name, EXPLICIT | {"max.poll.records": "50"}).work()
        killed = [drivers["java-4.2.1"].history, native[0]]
        written = 0

        def all_have_worked() -> bool:
            """A little at a time: of much at once the first to join would leave nothing to the last."""
            nonlocal written
            write(cluster, name, written, written + STEP)
            written += STEP
            return all(len(each.accepted) >= STEP for each in histories)

        until("all of them have worked", all_have_worked)
        for history in killed:
            history.end()
        total = max(RECORDS, written + RECORDS // 2)
        write(cluster, name, written, total)
        until("nothing is left", lambda: cluster.lag(name) == 0)
        accepted = Counter(place for history in histories for place in history.accepted)
        delivered = {each.value for history in histories for each in history.records}
    assert delivered == {f"v{number}" for number in range(total)}
    assert set(accepted.values()) == {1}, "what a leader has accepted is not delivered again"
    # Of what was on its way to a leader when a member was killed, nobody heard whether it was accepted.
    assert len(accepted) >= total - 2 * 500


def write(cluster: Cluster, name: str, start: int, end: int) -> None:
    """Batches of 50, one partition after the other."""
    for number, first in enumerate(range(start, end, 50)):
        cluster.produce(name, *(f"v{each}" for each in range(first, first + 50)), partition=number % PARTITIONS)
