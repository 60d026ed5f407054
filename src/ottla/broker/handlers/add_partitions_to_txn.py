"""AddPartitionsToTxn (24): add partitions to a transaction, or verify that they were added.

Versions 0 to 3 come from producers, for one transaction. If a partition does not exist or may not be written, it gets
its error, all others OPERATION_NOT_ATTEMPTED, and none is added. Before version 2 a fenced producer gets
INVALID_PRODUCER_EPOCH, later PRODUCER_FENCED. Versions 4 and 5 come from brokers (KIP-890): many transactions, each to
be added or only verified.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from ottla.broker.network.authorization import check_cluster
from ottla.broker.network.request import DelayedResponse, Request
from ottla.core.metadata.topic_names import INTERNAL_TOPICS
from ottla.core.txn.answers import fenced_error
from ottla.core.txn.messages import AddPartitions, VerifyPartitions
from ottla.core.txn.transaction import Partition
from ottla.wire.access import Operation, ResourceType
from ottla.wire.errors import ErrorCode
from ottla.wire.types.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnRequestAddPartitionsToTxnTopic,
    AddPartitionsToTxnRequestAddPartitionsToTxnTransaction,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResponseAddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponseAddPartitionsToTxnResult,
    AddPartitionsToTxnResponseAddPartitionsToTxnTopicResult,
)

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Transactions

API_KEY: Final = 24
VERSIONS: Final = (0, 5)

_FENCED_FROM: Final = 2
_BROKERS_FROM: Final = 4

_Asked = AddPartitionsToTxnRequestAddPartitionsToTxnTransaction
_Topics = Sequence[AddPartitionsToTxnRequestAddPartitionsToTxnTopic]
_Transaction = AddPartitionsToTxnResponseAddPartitionsToTxnResult
_Topic = AddPartitionsToTxnResponseAddPartitionsToTxnTopicResult
_Partition = AddPartitionsToTxnResponseAddPartitionsToTxnPartitionResult
_Codes = Mapping[Partition, ErrorCode]


def handle(node: Transactions, request: Request) -> DelayedResponse | AddPartitionsToTxnResponse:
    if request.version >= _BROKERS_FROM:
        check_cluster(node, request, Operation.CLUSTER_ACTION)
    later = DelayedResponse()
    asked = _transactions(request)
    found: dict[int, _Codes] = {}

    def take(index: int, codes: _Codes) -> None:
        found[index] = codes
        if len(found) == len(asked):
            later.complete(_response(request, asked, [found[at] for at in range(len(asked))]))

    if not asked:
        return _response(request, asked, [])
    for index, transaction in enumerate(asked):
        _ask(node, request, transaction, partial(take, index))
    return later


def refuse(request: Request, code: int, message: str | None) -> AddPartitionsToTxnResponse:
    if request.version >= _BROKERS_FROM:
        return AddPartitionsToTxnResponse(error_code=code)
    asked = _transactions(request)
    return _response(request, asked, [_same(each, ErrorCode(code)) for each in asked])


def _transactions(request: Request) -> tuple[_Asked, ...]:
    body: AddPartitionsToTxnRequest = request.body
    if request.version >= _BROKERS_FROM:
        return body.transactions
    return (
        _Asked(
            body.v3_and_below_transactional_id,
            body.v3_and_below_producer_id,
            body.v3_and_below_producer_epoch,
            topics=body.v3_and_below_topics,
        ),
    )


def _ask(node: Transactions, request: Request, asked: _Asked, take: Callable[[_Codes], None]) -> None:
    refused = _refused(node, request, asked)
    if refused is not None:
        take(refused)
        return

    def answered(answer: ErrorCode | _Codes) -> None:
        take(_same(asked, answer) if isinstance(answer, ErrorCode) else answer)

    partitions = frozenset(_partitions(asked.topics))
    body: AddPartitions | VerifyPartitions
    if asked.verify_only:
        body = VerifyPartitions(asked.transactional_id, asked.producer_id, asked.producer_epoch, partitions)
    else:
        version = 2 if request.version >= _BROKERS_FROM else 0
        body = AddPartitions(asked.transactional_id, asked.producer_id, asked.producer_epoch, partitions, version)
    node.transactions.ask(request, asked.transactional_id, body, answered, refuse=lambda code, message: code)


def _refused(node: Transactions, request: Request, asked: _Asked) -> _Codes | None:
    """The error codes of a transaction to which nothing can be added; None if its coordinator is to be asked."""
    is_client = request.version < _BROKERS_FROM
    name = asked.transactional_id
    if is_client and not node.authorize(request, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, name):
        return _same(asked, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    codes = {each: _judge(node, request, each, is_client=is_client) for each in _partitions(asked.topics)}
    if not any(codes.values()):
        return None
    return {each: code or ErrorCode.OPERATION_NOT_ATTEMPTED for each, code in codes.items()}


def _judge(node: Transactions, request: Request, partition: Partition, *, is_client: bool) -> ErrorCode:
    topic = partition.topic
    if is_client and (
        topic in INTERNAL_TOPICS or not node.authorize(request, Operation.WRITE, ResourceType.TOPIC, topic)
    ):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if node.image.partition(*partition) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE


def _partitions(topics: _Topics) -> list[Partition]:
    return [Partition(topic.name, index) for topic in topics for index in topic.partitions]


def _same(asked: _Asked, code: ErrorCode) -> _Codes:
    return dict.fromkeys(_partitions(asked.topics), code)


def _response(request: Request, asked: Sequence[_Asked], codes: Sequence[_Codes]) -> AddPartitionsToTxnResponse:
    results = [_topics(request, each.topics, answer) for each, answer in zip(asked, codes, strict=True)]
    if request.version < _BROKERS_FROM:
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results[0])
    return AddPartitionsToTxnResponse(
        results_by_transaction=tuple(
            _Transaction(each.transactional_id, topics) for each, topics in zip(asked, results, strict=True)
        )
    )


def _topics(request: Request, topics: _Topics, codes: _Codes) -> tuple[_Topic, ...]:
    def code(topic: str, index: int) -> int:
        return fenced_error(codes[Partition(topic, index)], request.version, _FENCED_FROM)

    return tuple(
        _Topic(topic.name, tuple(_Partition(index, code(topic.name, index)) for index in topic.partitions))
        for topic in topics
    )
