"""Produce (0): append batches to partitions that this node leads.

Versions 3 to 13; 0 to 2 are advertised and refused, as by Apache Kafka, because old versions of librdkafka check the
lowest one. From 10 on the error "not the leader" comes with the leader; from 13 on topics are named by id.

Each partition is handled separately. acks=0 gets no response, and any error closes the connection; acks=1 gets one
after the write, acks=all when the high watermark has passed the batch or the timeout is over. The log validates
batches (`ottla.log.append`).

The first batch of a transaction in a partition is accepted only after the transaction's coordinator was asked
(`ottla.broker.transactions.verification`). Up to version 10 a partition that was not added gets INVALID_TXN_STATE, in
11 TRANSACTION_ABORTABLE; from 12 on it is added with the first batch.

What an idempotent producer has sent behind a batch that was refused for now gets the same error
(`ottla.broker.network.refused_batches`). In the first seconds after a node has taken a partition over, a batch that
comes too early gets NOT_LEADER_OR_FOLLOWER: the batches before it may still be on their way from the former leader.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from ottla.broker.loop.delayed_operations import DelayedOperation
from ottla.broker.network.refused_batches import RefusedBatches
from ottla.broker.network.request import AfterWrite, Answer, Close, CloseCause, DelayedResponse, Request
from ottla.broker.replicas.acknowledged_writes import ALL, check_isr, write_result
from ottla.broker.replicas.lookup import endpoints_of, leader_of, permitted_topic, topic_name
from ottla.broker.replicas.replicas import Replica
from ottla.core.metadata.fault import Reject
from ottla.core.metadata.topic_names import INTERNAL_TOPICS
from ottla.log.append import NOT_VERIFIED, AppendInfo
from ottla.log.errors import LogError, OutOfOrderSequenceError
from ottla.log.producer_state import Verification
from ottla.wire.access import Operation, ResourceType
from ottla.wire.batch import Compression
from ottla.wire.batch_view import HEADER, HEADER_BYTES, BatchView
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import message_of
from ottla.wire.types.produce import (
    ProduceRequest,
    ProduceRequestPartitionProduceData,
    ProduceRequestTopicProduceData,
    ProduceResponse,
    ProduceResponseBatchIndexAndErrorMessage,
    ProduceResponseLeaderIdAndEpoch,
    ProduceResponseNodeEndpoint,
    ProduceResponsePartitionProduceResponse,
    ProduceResponseTopicProduceResponse,
)

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Records

API_KEY: Final = 0
VERSIONS: Final = (3, 13)
ADVERTISED_LOW: Final = 0

_ACKS: Final = (-1, 0, 1)
_ZSTD_FROM: Final = 7
_LEADER_FROM: Final = 10
_IDS_FROM: Final = 13
_ADMIN_CLIENT: Final = "__admin_client"
_ATTRIBUTES_LOW_BYTE: Final = 22
_CODEC_BITS: Final = 7
_TRANSACTIONAL_BIT: Final = 16
_MAGIC: Final = 16

_REFUSED_FOR_NOW: Final = frozenset(
    (
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    )
)
"""A moment later the same batch may be accepted."""

_NOTHING_VERIFIED: Final[Mapping[Any, Verification | Reject]] = {}

_Partition = ProduceResponsePartitionProduceResponse
_Topic = ProduceResponseTopicProduceResponse


class _Staged:
    """A batch that waits to be written and acknowledged, and the position of its result."""

    __slots__ = ("index", "info", "leader_epoch", "replica")

    def __init__(self, index: int, replica: Replica, info: AppendInfo) -> None:
        self.index = index
        self.replica = replica
        self.info = info
        self.leader_epoch = replica.leader_epoch


class _Produce:
    """The state of one request: staged batches, and the results so far, in the order of the request."""

    def __init__(self, node: Records, request: Request) -> None:
        self.node = node
        self.request = request
        self.acks: int = request.body.acks
        self.answers: list[_Partition] = []
        self.leaders: set[int] = set()
        self.staged: list[_Staged] = []
        self.later: DelayedResponse | None = None
        self.verified = _NOTHING_VERIFIED
        """The coordinator's result for each partition with transactional batches."""

    def stage_all(self) -> None:
        for topic in self.request.body.topic_data:
            for partition in topic.partition_data:
                try:
                    self._stage(topic, partition)
                except (Reject, LogError) as error:
                    if error.code in _REFUSED_FOR_NOW:
                        self._note_refused(topic, partition, ErrorCode(error.code))
                    self.answers.append(self._failure(topic, partition.index, error))

    def _stage(self, topic: ProduceRequestTopicProduceData, partition: ProduceRequestPartitionProduceData) -> None:
        node, request = self.node, self.request
        topic_id = topic.topic_id if request.version >= _IDS_FROM else None
        name = permitted_topic(node, request, Operation.WRITE, topic.name, topic_id)
        records = partition.records
        _check_records(records, request.version)
        if self.acks not in _ACKS:
            raise Reject(ErrorCode.INVALID_REQUIRED_ACKS)
        if name in INTERNAL_TOPICS and request.client_id != _ADMIN_CLIENT:
            raise Reject(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{name} is written by brokers only.")
        replica = node.replicas.leader(name, partition.index)
        if self.acks == ALL:
            check_isr(replica)
        if request.connection.refused_batches:
            self._check_refused(request.connection.refused_batches, topic, partition, replica)
        verification = self.verified.get((name, partition.index), NOT_VERIFIED)
        if isinstance(verification, Reject):
            raise verification
        try:
            info = replica.stage(records or b"", verification=verification)
        except OutOfOrderSequenceError:
            if replica.is_taken_over:
                raise Reject(ErrorCode.NOT_LEADER_OR_FOLLOWER) from None
            raise
        self.staged.append(_Staged(len(self.answers), replica, info))
        self.answers.append(
            _Partition(
                index=partition.index,
                base_offset=info.base_offset,
                log_append_time_ms=info.log_append_time_ms,
                log_start_offset=info.log_start_offset,
            )
        )

    def _note_refused(
        self, topic: ProduceRequestTopicProduceData, partition: ProduceRequestPartitionProduceData, code: ErrorCode
    ) -> None:
        batch = _idempotent_batch(partition.records)
        if batch is not None:
            connection = self.request.connection
            if connection.refused_batches is None:
                connection.refused_batches = RefusedBatches()
            connection.refused_batches.refuse(self._key(topic, partition), batch, code)

    def _check_refused(
        self,
        refused: RefusedBatches,
        topic: ProduceRequestTopicProduceData,
        partition: ProduceRequestPartitionProduceData,
        replica: Replica,
    ) -> None:
        """Refuse a batch whose predecessor was refused a moment ago, with the same error."""
        batch = _idempotent_batch(partition.records)
        if batch is None:
            return
        key = self._key(topic, partition)
        code = refused.code_for(key, batch)
        if code is not None and not replica.log.producers.does_expect(batch):
            raise Reject(code)
        refused.forget(key, batch)

    def _key(
        self, topic: ProduceRequestTopicProduceData, partition: ProduceRequestPartitionProduceData
    ) -> tuple[str | bytes, int]:
        return topic.topic_id if self.request.version >= _IDS_FROM else topic.name, partition.index

    def _failure(self, topic: ProduceRequestTopicProduceData, index: int, error: Reject | LogError) -> _Partition:
        records = getattr(error, "record_errors", ())
        leader = ProduceResponseLeaderIdAndEpoch()
        if error.code == ErrorCode.NOT_LEADER_OR_FOLLOWER and self.request.version >= _LEADER_FROM:
            by_id = self.request.version >= _IDS_FROM
            leader_id, epoch = leader_of(
                self.node.image, topic_name(self.node.image, topic.name, topic.topic_id, by_id=by_id), index
            )
            leader = ProduceResponseLeaderIdAndEpoch(leader_id, epoch)
            self.leaders.add(leader_id)
        return _Partition(
            index=index,
            error_code=error.code,
            base_offset=-1,
            record_errors=tuple(ProduceResponseBatchIndexAndErrorMessage(*one) for one in records),
            error_message=message_of(error),
            current_leader=leader,
        )

    # --- after the write ----------------------------------------------------------------------------------------------

    def finish(self) -> Answer:
        """The answer, now or when all batches are acknowledged."""
        if self.acks == 0:
            self._settle(expired=False)
            for answer in self.answers:
                if answer.error_code:
                    raise _unacknowledged(ErrorCode(answer.error_code).name)
            return None
        if self._settle(expired=False):
            return self.response()
        return self._wait()

    def _settle(self, *, expired: bool) -> bool:
        """Take the acknowledged batches; returns whether none is left to wait for."""
        waiting: list[_Staged] = []
        for one in self.staged:
            try:
                code = write_result(one.replica, one.leader_epoch, one.info.last_offset + 1, self.acks)
                if code is None and not expired:
                    waiting.append(one)
                elif code is not ErrorCode.NONE:
                    self._fail(one, code or ErrorCode.REQUEST_TIMED_OUT, None)
            except LogError as error:
                self._fail(one, error.code, str(error))
        self.staged = waiting
        return not waiting

    def _fail(self, one: _Staged, code: ErrorCode, message: str | None) -> None:
        index = self.answers[one.index].index
        self.answers[one.index] = _Partition(index=index, error_code=code, base_offset=-1, error_message=message)

    def _wait(self) -> DelayedResponse:
        self.later = DelayedResponse()
        keys = {one.replica.topic_partition for one in self.staged}
        deadline = self.node.clock.monotonic_ms() + max(self.request.body.timeout_ms, 0)
        delayed = DelayedOperation(self._attempt, keys, deadline)
        if not self.node.purgatory.park(delayed):
            self._attempt(True)
        return self.later

    def _attempt(self, expired: bool) -> bool:
        if not self._settle(expired=expired):
            return False
        assert self.later is not None
        self.later.complete(self.response())
        return True

    def response(self) -> ProduceResponse:
        answers = iter(self.answers)
        topics = tuple(
            _Topic(topic.name, topic.topic_id, tuple(next(answers) for _ in topic.partition_data))
            for topic in self.request.body.topic_data
        )
        endpoints = endpoints_of(self.node.image, self.request, self.leaders) if self.leaders else ()
        return ProduceResponse(
            responses=topics, node_endpoints=tuple(ProduceResponseNodeEndpoint(*one) for one in endpoints)
        )


def handle(node: Records, request: Request) -> Answer:
    produce = _Produce(node, request)
    if _has_transactional(request.body):
        _check_transactional(node, request)
        from ottla.broker.transactions.transactional_produce import verify_produce

        return verify_produce(node, request, produce)
    produce.stage_all()
    return AfterWrite(produce.finish)


def _check_transactional(node: Records, request: Request) -> None:
    name = request.body.transactional_id
    if name is None or not node.authorize(request, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, name):
        raise Reject(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)


def _unacknowledged(error: str) -> Close:
    return Close(f"produce with acks=0 failed: {error}", CloseCause.FAILED_PRODUCE)


def refuse(request: Request, code: int, message: str | None) -> ProduceResponse:
    body: ProduceRequest = request.body
    if body.acks == 0:
        raise _unacknowledged(message or str(code))
    return ProduceResponse(
        responses=tuple(
            _Topic(
                topic.name,
                topic.topic_id,
                tuple(
                    _Partition(index=partition.index, error_code=code, base_offset=-1, error_message=message)
                    for partition in topic.partition_data
                ),
            )
            for topic in body.topic_data
        )
    )


def _idempotent_batch(records: bytes | memoryview | None) -> BatchView | None:
    """The header of a batch with sequence numbers; None if there are none."""
    if records is None or len(records) < HEADER_BYTES or records[_MAGIC] != 2:
        return None
    batch = BatchView(memoryview(records), 0, *HEADER.unpack_from(records))
    return batch if batch.producer_id >= 0 else None


def _has_transactional(body: ProduceRequest) -> bool:
    """Whether any batch belongs to a transaction."""
    return any(
        partition.records
        and len(partition.records) > _ATTRIBUTES_LOW_BYTE
        and partition.records[_MAGIC] >= 2
        and partition.records[_ATTRIBUTES_LOW_BYTE] & _TRANSACTIONAL_BIT
        for topic in body.topic_data
        for partition in topic.partition_data
    )


def _check_records(records: bytes | memoryview | None, version: int) -> None:
    """Check the form of the records, before everything else."""
    if not records:
        raise Reject(ErrorCode.INVALID_RECORD, "A produce request must contain exactly one batch per partition.")
    if version >= _ZSTD_FROM or len(records) <= _ATTRIBUTES_LOW_BYTE:
        return
    if records[_ATTRIBUTES_LOW_BYTE] & _CODEC_BITS == Compression.ZSTD:
        raise Reject(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"Version {version} does not support zstd.")
