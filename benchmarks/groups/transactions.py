"""Transactions: by librdkafka, and by raw frames as the newest clients send them."""

import time
from typing import Any

from confluent_kafka import Producer

from benchmarks.groups.connections import Connection
from ottla.wire.batch import Record, build_batch
from ottla.wire.errors import ErrorCode
from ottla.wire.types import EndTxnRequest, FindCoordinatorRequest, InitProducerIdRequest, ProduceRequest

PRODUCE_VERSION = 12
TIMEOUT_S = 60.0
BACK_OFF_S = 0.001
RETRY = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
}


def with_librdkafka(port: int, topic: str, transactions: int, records: int) -> float:
    """Seconds for so many transactions of so many records of 100 bytes."""
    producer = Producer(
        {
            "bootstrap.servers": f"127.0.0.1:{port}",
            "transactional.id": f"librdkafka-{transactions}-{records}",
            "linger.ms": 0,
        }
    )
    producer.init_transactions(TIMEOUT_S)
    start = time.perf_counter()
    for _ in range(transactions):
        producer.begin_transaction()
        for _ in range(records):
            producer.produce(topic, b"x" * 100, partition=0)
        producer.commit_transaction(TIMEOUT_S)
    return time.perf_counter() - start


class RawProducer:
    """One batch and one commit at a time; a transaction begins with its first batch (KIP-890)."""

    def __init__(self, port: int, topic: str, name: str) -> None:
        self._connection = Connection(port)
        self._topic = topic
        self._name = name
        self._connection.call(FindCoordinatorRequest(key_type=1, coordinator_keys=(name,)), 6)
        answer = self._patiently(InitProducerIdRequest(name, 60_000), 5)
        self._id, self._epoch, self._sequence = answer.producer_id, answer.producer_epoch, 0

    def transact(self, records: int) -> None:
        batch = build_batch(
            [Record(number, 1_000, None, b"x" * 100) for number in range(records)],
            producer_id=self._id,
            producer_epoch=self._epoch,
            base_sequence=0,  # each transaction has an epoch of its own
            is_transactional=True,
        )
        kind = ProduceRequest
        data = kind.PartitionProduceData(0, batch)
        request = kind(self._name, -1, 10_000, (kind.TopicProduceData(self._topic, partition_data=(data,)),))
        while True:
            answer = self._connection.call(request, PRODUCE_VERSION).responses[0].partition_responses[0]
            if answer.error_code not in RETRY:
                break
            time.sleep(BACK_OFF_S)
        assert answer.error_code == ErrorCode.NONE, answer
        ended = self._patiently(EndTxnRequest(self._name, self._id, self._epoch, True), 5)
        self._id, self._epoch = ended.producer_id, ended.producer_epoch

    def close(self) -> None:
        self._connection.close()

    def _patiently(self, request: object, version: int) -> Any:  # noqa: ANN401
        while True:
            answer = self._connection.call(request, version)
            if answer.error_code not in RETRY:
                assert answer.error_code == ErrorCode.NONE, answer
                return answer
            time.sleep(BACK_OFF_S)


def with_raw_frames(port: int, topic: str, transactions: int, records: int) -> float:
    producer = RawProducer(port, topic, f"raw-{transactions}-{records}")
    producer.transact(records)
    start = time.perf_counter()
    for _ in range(transactions):
        producer.transact(records)
    seconds = time.perf_counter() - start
    producer.close()
    return seconds
