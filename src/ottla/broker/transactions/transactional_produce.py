"""The transactional side of Produce: which partitions the coordinator must be asked about, and how its errors are told.

Most requests need nothing: their producer has an open transaction in each partition. Where it has none the coordinator
is asked before anything of the request is staged. If the answer is there at once, all goes on as for other requests;
if the coordinator had to write first, the batches are staged and written at the end of its turn.

Clients that do not know a coordinator's errors in this place get NOT_ENOUGH_REPLICAS, upon which they just send again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple, Protocol

from ottla.broker.network.request import AfterWrite, Answer, Close, DelayedResponse, Request
from ottla.broker.replicas.lookup import topic_name
from ottla.broker.transactions import ports
from ottla.broker.transactions.verification import UNDECIDED, TransactionSupport, ask_coordinator
from ottla.core.metadata.fault import Reject
from ottla.core.txn.transaction import Partition
from ottla.log.producer_state import ProducerState, Verification
from ottla.wire.batch_view import HEADER, HEADER_BYTES, TRANSACTIONAL_BIT, BatchView
from ottla.wire.errors import ErrorCode
from ottla.wire.types.produce import ProduceRequest

__all__ = ["verify_produce"]

_IDS_FROM: Final = 13

Verified = Mapping[Any, Verification | Reject]
"""Topic and partition -> what the log is given with the batch, or why it is refused."""


class Produce(Protocol):
    """The request as its handler has it."""

    verified: Verified

    def stage_all(self) -> None: ...
    def finish(self) -> Answer: ...


class _FirstBatch(NamedTuple):
    """The first transactional batch of a partition in the request."""

    partition: Partition
    producer: tuple[int, int]


def verify_produce(node: ports.VerificationPorts, request: Request, produce: Produce) -> Answer:
    """The answer to a request with transactional batches."""
    batches = list(_transactional(node, request))
    producers = {each.producer for each in batches}
    if len(producers) > 1:
        raise Reject(ErrorCode.INVALID_PRODUCER_ID_MAPPING, "The batches of the request have more than one producer.")
    support = TransactionSupport.of_produce(request.version)
    version = 2 if support is TransactionSupport.ADDS else 0
    verified = {each.partition: _unasked(node, each, version) for each in batches}
    asked = frozenset(
        each for each, known in verified.items() if isinstance(known, Verification) and known.guard is not None
    )
    if not asked or not (
        support is TransactionSupport.ADDS or node.settings["transaction.partition.verification.enable"]
    ):
        return _stage(produce, verified)
    waiting = _VerifiedProduce(node, request, produce, support, verified)
    ask_coordinator(node, request.body.transactional_id, batches[0].producer, asked, support, waiting.answered)
    return waiting.answer()


def _stage(produce: Produce, verified: Verified) -> AfterWrite:
    produce.verified = verified
    produce.stage_all()
    return AfterWrite(produce.finish)


class _VerifiedProduce:
    """A request that waits for the answer of its transaction coordinator."""

    def __init__(
        self,
        node: ports.VerificationPorts,
        request: Request,
        produce: Produce,
        support: TransactionSupport,
        verified: Verified,
    ) -> None:
        self._node = node
        self._request = request
        self._produce = produce
        self._support = support
        self._verified = verified
        self._later: DelayedResponse | None = None
        self._staged: AfterWrite | None = None

    def answered(self, codes: Mapping[Partition, ErrorCode]) -> None:
        verified = {**self._verified}
        verified.update({each: _reject(code, self._support) for each, code in codes.items() if code})
        self._staged = _stage(self._produce, verified)
        if self._later is not None:
            self._node.unit_of_work.after_write(self._finish)

    def answer(self) -> AfterWrite | DelayedResponse:
        if self._staged is not None:
            return self._staged
        self._later = DelayedResponse()
        return self._later

    def _finish(self) -> None:
        assert self._later is not None
        try:
            answer = self._produce.finish()
        except Close as reason:
            self._request.connection.close(reason)
            return
        if isinstance(answer, DelayedResponse):
            answer.deliver_to(self._later.complete)
        else:
            self._later.complete(answer)


def _transactional(node: ports.VerificationPorts, request: Request) -> Iterator[_FirstBatch]:
    body: ProduceRequest = request.body
    for topic in body.topic_data:
        try:
            name = topic_name(node.image, topic.name, topic.topic_id, by_id=request.version >= _IDS_FROM)
        except Reject:
            continue  # the handler refuses it
        for partition in topic.partition_data:
            records = partition.records
            if records is None or len(records) < HEADER_BYTES:
                continue
            batch = BatchView(memoryview(records), 0, *HEADER.unpack_from(records))
            if batch.attributes & TRANSACTIONAL_BIT and batch.producer_id >= 0:
                yield _FirstBatch(Partition(name, partition.index), (batch.producer_id, batch.producer_epoch))


def _unasked(node: ports.VerificationPorts, first: _FirstBatch, version: int) -> Verification | Reject:
    """What is known of a partition before the coordinator is asked: with a guard, if it must be."""
    replica = node.replicas.get(*first.partition)
    if replica is None or not replica.is_leader or replica.is_offline:
        # The handler says why, unless this node leads it by the time that the coordinator has answered for others.
        return Reject(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    if not replica.has_log:
        return Verification(0, version)
    producers: ProducerState = replica.log.producers
    is_open = producers.has_ongoing_transaction(*first.producer)
    return Verification(None if is_open else producers.verification_guard(first.producer[0]), version)


def _reject(code: ErrorCode, support: TransactionSupport) -> Reject:
    is_old_concurrent = code is ErrorCode.CONCURRENT_TRANSACTIONS and support is not TransactionSupport.ADDS
    if code in UNDECIDED or is_old_concurrent:
        return Reject(
            ErrorCode.NOT_ENOUGH_REPLICAS,
            f"Unknown whether the partition was added to the transaction: {code.name}.",
        )
    if code is ErrorCode.INVALID_TXN_STATE:
        return Reject(code, "The partition was not added to the transaction.")
    return Reject(code)
