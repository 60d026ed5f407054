"""EndTxn (26): commit or abort a transaction.

Versions 0 to 5. Up to 4 the producer keeps its epoch; with 5 (transaction version 2) the response has the producer id
and epoch of its next transaction. Before version 2 a fenced producer gets INVALID_PRODUCER_EPOCH, later
PRODUCER_FENCED. If this node leads all partitions of the transaction, the response comes after the markers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.network.request import Answer, Request
from ottla.core.metadata.fault import Reject
from ottla.core.txn.answers import refusal
from ottla.wire.access import Operation, ResourceType
from ottla.wire.errors import ErrorCode
from ottla.wire.types.end_txn import EndTxnResponse

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Transactions

API_KEY: Final = 26
VERSIONS: Final = (0, 5)


def handle(node: Transactions, request: Request) -> Answer:
    transactional_id = request.body.transactional_id
    if not node.authorize(request, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id):
        raise Reject(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    return node.transactions.answer(request, transactional_id, refuse=refuse)


def refuse(request: Request, code: int, message: str | None) -> EndTxnResponse:
    answer = refusal(request.body, code, request.version)
    assert isinstance(answer, EndTxnResponse)
    return answer
