"""AddOffsetsToTxn (25): allow a transaction to commit offsets of a group.

Versions 0 to 4. Adds the group's partition of `__consumer_offsets` to the transaction. Before version 2 a fenced
producer gets INVALID_PRODUCER_EPOCH, later PRODUCER_FENCED. Producers of transaction version 2 do not send it: their
first TxnOffsetCommit adds the partition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.coordinators.internal_topics import GROUPS
from ottla.broker.network.request import Answer, DelayedResponse, Request
from ottla.core.coordinator.partitioner import partition_for
from ottla.core.metadata.fault import Reject
from ottla.core.txn.answers import fenced_error
from ottla.core.txn.messages import AddPartitions
from ottla.core.txn.transaction import Partition
from ottla.wire.access import Operation, ResourceType
from ottla.wire.errors import ErrorCode
from ottla.wire.types.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Transactions

API_KEY: Final = 25
VERSIONS: Final = (0, 4)

_FENCED_FROM: Final = 2


def handle(node: Transactions, request: Request) -> Answer:
    body: AddOffsetsToTxnRequest = request.body
    if not node.authorize(request, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, body.transactional_id):
        raise Reject(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not node.authorize(request, Operation.READ, ResourceType.GROUP, body.group_id):
        raise Reject(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    later = DelayedResponse()

    def ask(code: ErrorCode) -> None:
        if code:
            later.complete(refuse(request, code, None))
        else:
            _ask(node, request, later)

    node.groups.ensure_topic(ask)
    return later


def _ask(node: Transactions, request: Request, later: DelayedResponse) -> None:
    body: AddOffsetsToTxnRequest = request.body
    partition = Partition(GROUPS.name, partition_for(body.group_id, node.groups.partition_count))
    asked = AddPartitions(body.transactional_id, body.producer_id, body.producer_epoch, frozenset({partition}), 0)
    node.transactions.ask(
        request,
        body.transactional_id,
        asked,
        lambda code: later.complete(refuse(request, code, None)),
        refuse=lambda code, message: code,
    )


def refuse(request: Request, code: int, message: str | None) -> AddOffsetsToTxnResponse:
    return AddOffsetsToTxnResponse(error_code=fenced_error(code, request.version, _FENCED_FROM))
