"""A transactional producer frame by frame, for any broker.

While Apache Kafka ends a transaction it answers CONCURRENT_TRANSACTIONS; `again` asks until it does not, as clients do.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count
from typing import Any

from ottla.wire.batch import BatchView, ControlRecordType, read_control_type
from ottla.wire.errors import ErrorCode
from ottla.wire.types import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    DescribeTransactionsRequest,
    EndTxnRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
)
from tests.component.broker.raw_client import RawClient, Topic, batch, batches, produce_request

ATTEMPTS = 500
PAUSE_S = 0.01
_RETRIABLE = {
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_ENOUGH_REPLICAS,
}
_serial = count()


def again(call: Callable[[], Any], code: Callable[[Any], int]) -> Any:
    """The first answer that stands."""
    for _ in range(ATTEMPTS):
        answer = call()
        if code(answer) not in _RETRIABLE:
            return answer
        time.sleep(PAUSE_S)
    raise AssertionError(f"still {ErrorCode(code(answer)).name}")


def error(answer: Any) -> ErrorCode:
    return ErrorCode(answer.error_code)


class Producer:
    """A producer with a transactional id of its own. EndTxn 5 and Produce 12 are those of transaction version 2."""

    def __init__(
        self, client: RawClient, *, name: str | None = None, end_version: int = 5, produce_version: int = 13
    ) -> None:
        self.client = client
        self.name = name or f"txn-{time.time_ns()}-{next(_serial)}"
        self.end_version = end_version
        self.produce_version = produce_version
        self.producer_id = -1
        self.epoch = -1
        self.sequences: dict[tuple[str, int], int] = {}
        find = FindCoordinatorRequest(key_type=1, coordinator_keys=(self.name,))
        again(lambda: client.ask(find, 6).coordinators[0], lambda one: one.error_code)

    @classmethod
    def of_version_1(cls, client: RawClient, *, produce_version: int = 11, **given: Any) -> Producer:
        return cls(client, end_version=4, produce_version=produce_version, **given)

    def init(self, *, version: int = 5, timeout_ms: int = 60_000, **given: Any) -> Any:
        request = InitProducerIdRequest(self.name, timeout_ms, **given)
        answer = again(lambda: self.client.ask(request, version), lambda one: one.error_code)
        if not answer.error_code:
            self.take(answer)
        return answer

    def begun(self, **given: Any) -> Producer:
        assert error(self.init(**given)) is ErrorCode.NONE
        return self

    def take(self, answer: Any) -> None:
        if (self.producer_id, self.epoch) != (answer.producer_id, answer.producer_epoch):
            self.sequences.clear()
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch

    def add_request(self, topic: str, *partitions: int) -> AddPartitionsToTxnRequest:
        named = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(topic, partitions or (0,))
        return AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=(named,),
        )

    def add(self, topic: str, *partitions: int, version: int = 3) -> list[ErrorCode]:
        """The code of each partition, in their order: Apache Kafka answers in that of a hash."""
        request = self.add_request(topic, *partitions)

        def codes() -> list[int]:
            (answer,) = self.client.ask(request, version).results_by_topic_v3_and_below
            results = sorted(answer.results_by_partition, key=lambda one: one.partition_index)
            return [one.partition_error_code for one in results]

        return [ErrorCode(code) for code in again(codes, lambda found: found[0])]

    def add_offsets(self, group_id: str, *, version: int = 3) -> ErrorCode:
        request = AddOffsetsToTxnRequest(self.name, self.producer_id, self.epoch, group_id)
        return error(again(lambda: self.client.ask(request, version), lambda one: one.error_code))

    def batch(self, topic: Topic, *values: bytes, partition: int = 0, **header: Any) -> bytes:
        key = (topic.name, partition)
        header.setdefault("producer_id", self.producer_id)
        header.setdefault("producer_epoch", self.epoch)
        header.setdefault("base_sequence", self.sequences.get(key, 0))
        header.setdefault("is_transactional", True)
        header.setdefault("timestamp", time.time_ns() // 1_000_000)  # markers are of today: one segment for both
        self.sequences[key] = header["base_sequence"] + len(values)
        return batch(*values, **header)

    def produce(
        self, topic: Topic, *values: bytes, partition: int = 0, version: int | None = None, **header: Any
    ) -> Any:
        """The answer for the one partition that is written."""
        records = self.batch(topic, *values, partition=partition, **header)
        return self.send(topic, {partition: records}, version=version)[0]

    def send(self, topic: Topic, records: dict[int, bytes | None], *, version: int | None = None) -> Any:
        version = self.produce_version if version is None else version
        request = produce_request(topic, records, transactional_id=self.name)

        def answers() -> Any:
            return self.client.ask(request, version).responses[0].partition_responses

        return again(answers, lambda found: found[0].error_code)

    def end(
        self, committed: bool, *, version: int | None = None, epoch: int | None = None, producer_id: int = -1
    ) -> Any:
        """The answer, which is taken over if it brings a new epoch."""
        version = self.end_version if version is None else version
        request = EndTxnRequest(
            self.name,
            self.producer_id if producer_id < 0 else producer_id,
            self.epoch if epoch is None else epoch,
            committed,
        )
        answer = again(lambda: self.client.ask(request, version), lambda one: one.error_code)
        if not answer.error_code and version >= 5:
            self.take(answer)
        return answer

    def commit(self) -> None:
        assert error(self.end(True)) is ErrorCode.NONE

    def abort(self) -> None:
        assert error(self.end(False)) is ErrorCode.NONE

    def describe(self) -> Any:
        return self.client.ask(DescribeTransactionsRequest((self.name,)), 0).transaction_states[0]

    def settled(self) -> Any:
        """What is known of the id once no transaction of it is ending."""
        for _ in range(ATTEMPTS):
            state = self.describe()
            if not state.transaction_state.startswith("Prepare"):
                return state
            time.sleep(PAUSE_S)
        raise AssertionError(state)


READ_COMMITTED = 1


def committed(client: RawClient, topic: Topic, partition: int = 0) -> list[bytes]:
    """What a reader of committed records sees."""
    answer = client.fetch(topic, partition=partition, isolation_level=READ_COMMITTED, max_wait_ms=0)
    aborted = sorted((one.first_offset, one.producer_id) for one in answer.aborted_transactions or ())
    passed_over: set[int] = set()
    seen: list[bytes] = []
    for one in batches(answer):
        assert isinstance(one, BatchView)
        while aborted and aborted[0][0] <= one.last_offset:
            passed_over.add(aborted.pop(0)[1])
        if one.is_control:
            passed_over.discard(one.producer_id)
        elif one.producer_id not in passed_over:
            seen += [bytes(record.value or b"") for record in one.records()]
    return seen


def markers(client: RawClient, topic: Topic, partition: int = 0) -> list[tuple[str, int]]:
    """Kind and producer epoch of the markers in a partition."""
    found = []
    for one in batches(client.fetch(topic, partition=partition, max_wait_ms=0)):
        assert isinstance(one, BatchView)
        if one.is_control:
            kind = read_control_type(one.records()[0].key)
            found.append(("commit" if kind == ControlRecordType.COMMIT else "abort", one.producer_epoch))
    return found
