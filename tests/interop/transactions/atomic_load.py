"""Transactions of several producers over several partitions, and whether each has happened as a whole or not at all.

Each producer counts its transactions, writes the number to every partition, and commits or aborts by turns. What it
knows of each is kept: committed, aborted, or not certain, because the broker went before it answered.
"""

from __future__ import annotations

import threading
from itertools import count

from ottla.wire.errors import ErrorCode
from ottla.wire.types import CreateTopicsRequest
from tests.component.broker.raw_client import Closed, RawClient, Topic, batches
from tests.component.broker.transactional_producer import Producer, error

PARTITIONS = 3
COMMITTED, ABORTED, UNCERTAIN = "committed", "aborted", "uncertain"
_GONE = (OSError, Closed)


class AtomicLoad:
    """Producers in threads of their own, which go on through crashes of the broker until `finish`."""

    def __init__(self, bootstrap_servers: str, *, producers: int, txn_version: int) -> None:
        self.bootstrap_servers = bootstrap_servers
        self.topic = self._create()
        self.outcomes: dict[str, dict[int, str]] = {f"atomic-{number}": {} for number in range(producers)}
        self._txn_version = txn_version
        self._is_over = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(name,)) for name in self.outcomes]
        for thread in self._threads:
            thread.start()

    def _create(self) -> Topic:
        client = RawClient.at(self.bootstrap_servers)
        wanted = CreateTopicsRequest.CreatableTopic("atomic", PARTITIONS, 1)
        answer = client.ask(CreateTopicsRequest((wanted,), 30_000), 7).topics[0]
        assert error(answer) is ErrorCode.NONE
        client.close()
        return Topic("atomic", answer.topic_id)

    def finish(self) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join()

    @property
    def done_count(self) -> int:
        return sum(len(each) for each in list(self.outcomes.values()))

    def _run(self, name: str) -> None:
        numbers = count()
        while not self._is_over.is_set():
            client = RawClient.at(self.bootstrap_servers)
            try:
                producer = self._producer(client, name)
                while not self._is_over.is_set():
                    self._transact(producer, next(numbers))
            except _GONE:
                self._is_over.wait(0.05)
            finally:
                client.close()

    def _producer(self, client: RawClient, name: str) -> Producer:
        kind = Producer if self._txn_version == 2 else Producer.of_version_1
        return kind(client, name=name).begun()

    def _transact(self, producer: Producer, number: int) -> None:
        outcomes, is_commit = self.outcomes[producer.name], number % 3 != 0
        outcomes[number] = ABORTED  # until its end is asked for, nothing else can come of it
        if self._txn_version < 2:
            assert set(producer.add(self.topic.name, *range(PARTITIONS))) == {ErrorCode.NONE}
        for partition in range(PARTITIONS):
            answer = producer.produce(self.topic, f"{producer.name} {number}".encode(), partition=partition)
            assert error(answer) is ErrorCode.NONE, answer
        if is_commit:
            outcomes[number] = UNCERTAIN
        assert error(producer.end(is_commit)) is ErrorCode.NONE
        outcomes[number] = COMMITTED if is_commit else ABORTED

    # --- judging ------------------------------------------------------------------------------------------------------

    def check(self, bootstrap_servers: str) -> None:
        """All partitions tell the same, each producer's transactions in order, and nobody was told otherwise."""
        client = RawClient.at(bootstrap_servers)
        tellers = [read_committed(client, self.topic, partition) for partition in range(PARTITIONS)]
        client.close()
        by_producer = [{name: numbers_of(values, name) for name in self.outcomes} for values in tellers]
        assert by_producer[0] == by_producer[1] == by_producer[2], "each transaction is in all partitions or in none"
        for name, outcomes in self.outcomes.items():
            found = by_producer[0][name]
            assert found == sorted(set(found)), f"{name}: once each, and in order"
            certain = {number for number, outcome in outcomes.items() if outcome == COMMITTED}
            possible = certain | {number for number, outcome in outcomes.items() if outcome == UNCERTAIN}
            assert certain <= set(found) <= possible, f"{name}: {certain ^ set(found)}"


def numbers_of(values: list[str], name: str) -> list[int]:
    return [int(number) for who, number in map(str.split, values) if who == name]


def read_committed(client: RawClient, topic: Topic, partition: int) -> list[str]:
    """All committed records of a partition. An open transaction at its end is an error: nobody would get past it."""
    found: list[str] = []
    passed_over: set[int] = set()
    offset = 0
    while True:
        answer = client.fetch(topic, offset, partition=partition, isolation_level=1, max_wait_ms=0)
        assert not answer.error_code, answer
        assert answer.last_stable_offset == answer.high_watermark, "a transaction is open"
        aborted = sorted((one.first_offset, one.producer_id) for one in answer.aborted_transactions or ())
        read = batches(answer)
        if not read:
            return found
        for batch in read:
            while aborted and aborted[0][0] <= batch.last_offset:
                passed_over.add(aborted.pop(0)[1])
            if batch.is_control:
                passed_over.discard(batch.producer_id)
            elif batch.producer_id not in passed_over:
                found += [bytes(record.value or b"").decode() for record in batch.records() if record.offset >= offset]
        offset = read[-1].last_offset + 1
