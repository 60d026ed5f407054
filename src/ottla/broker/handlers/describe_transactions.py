"""DescribeTransactions (65): the state of transactional ids.

Version 0. The response has only partitions of topics that the client may describe.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from ottla.broker.network.request import DelayedResponse, Request
from ottla.core.metadata.topic_image import partitions_by_topic
from ottla.core.txn.messages import DescribeTransaction
from ottla.core.txn.transaction import Transaction
from ottla.wire.access import Operation, ResourceType
from ottla.wire.errors import ErrorCode
from ottla.wire.types.describe_transactions import (
    DescribeTransactionsResponse,
    DescribeTransactionsResponseTopicData,
    DescribeTransactionsResponseTransactionState,
)

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Transactions

API_KEY: Final = 65
VERSIONS: Final = (0, 0)

_State = DescribeTransactionsResponseTransactionState


def handle(node: Transactions, request: Request) -> DelayedResponse:
    later = DelayedResponse()
    wanted: tuple[str, ...] = request.body.transactional_ids
    found: dict[int, _State] = {}

    def take(index: int, state: _State) -> None:
        found[index] = state
        if len(found) == len(wanted):
            later.complete(
                DescribeTransactionsResponse(transaction_states=tuple(found[at] for at in range(len(wanted))))
            )

    if not wanted:
        later.complete(DescribeTransactionsResponse())
    for index, transactional_id in enumerate(wanted):
        _describe(node, request, transactional_id, partial(take, index))
    return later


def refuse(request: Request, code: int, message: str | None) -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(
        transaction_states=tuple(_State(code, each) for each in request.body.transactional_ids)
    )


def _describe(node: Transactions, request: Request, transactional_id: str, take: Callable[[_State], None]) -> None:
    if not node.authorize(request, Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, transactional_id):
        take(_State(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, transactional_id))
        return

    def answered(answer: Transaction | ErrorCode) -> None:
        if isinstance(answer, ErrorCode):
            take(_State(answer, transactional_id))
        else:
            take(_state(node, request, answer))

    node.transactions.ask(
        request,
        transactional_id,
        DescribeTransaction(transactional_id),
        answered,
        refuse=lambda code, message: code,
    )


def _state(node: Transactions, request: Request, transaction: Transaction) -> _State:
    topics = {
        name: found
        for name, found in partitions_by_topic(sorted(transaction.partitions)).items()
        if node.authorize(request, Operation.DESCRIBE, ResourceType.TOPIC, name)
    }
    return _State(
        transactional_id=transaction.transactional_id,
        transaction_state=transaction.state.shown,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_start_time_ms=transaction.started_at_ms,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        topics=tuple(DescribeTransactionsResponseTopicData(name, tuple(found)) for name, found in topics.items()),
    )
