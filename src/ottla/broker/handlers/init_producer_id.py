"""InitProducerId (22): the id and epoch of an idempotent or transactional producer.

Versions 0 to 6; 6 (KIP-939, two-phase commit) only with `unstable.api.versions.enable`. Without a transactional id each
call gets a fresh id with epoch 0; the id and epoch it may name from version 3 on are ignored, as by Apache Kafka.
With one, its coordinator responds. Before version 4 a fenced producer gets INVALID_PRODUCER_EPOCH, later
PRODUCER_FENCED. Keeping a prepared transaction (version 6) gets UNSUPPORTED_VERSION, as from Apache Kafka.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.network.request import Answer, DelayedResponse, Request
from ottla.core.txn.answers import refusal
from ottla.wire.access import CLUSTER_NAME, Operation, ResourceType
from ottla.wire.errors import ErrorCode
from ottla.wire.types.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Transactions

API_KEY: Final = 22
VERSIONS: Final = (0, 5)
UNSTABLE_HIGH: Final = 6


def handle(node: Transactions, request: Request) -> Answer:
    body: InitProducerIdRequest = request.body
    code = _judge(node, request, body)
    if code:
        return refuse(request, code, None)
    if body.transactional_id is not None:
        return node.transactions.answer(request, body.transactional_id, refuse=refuse)
    return _give_id(node, request)


def _give_id(node: Transactions, request: Request) -> DelayedResponse:
    later = DelayedResponse()

    def taken(outcome: int | ErrorCode) -> None:
        if isinstance(outcome, ErrorCode):
            later.complete(refuse(request, outcome, None))
        else:
            later.complete(InitProducerIdResponse(producer_id=outcome, producer_epoch=0))

    node.producer_ids.take(taken)
    return later


def refuse(request: Request, code: int, message: str | None) -> InitProducerIdResponse:
    answer = refusal(request.body, code, request.version)
    assert isinstance(answer, InitProducerIdResponse)
    return answer


def _judge(node: Transactions, request: Request, body: InitProducerIdRequest) -> ErrorCode:
    if body.transactional_id is None:
        if not _may_produce(node, request):
            return ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    elif not _may_write(node, request, body.transactional_id):
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if body.transactional_id == "" or (body.producer_id == -1) != (body.producer_epoch == -1):
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE


def _may_write(node: Transactions, request: Request, transactional_id: str) -> bool:
    kind = ResourceType.TRANSACTIONAL_ID
    if not node.authorize(request, Operation.WRITE, kind, transactional_id):
        return False
    return not request.body.enable2_pc or node.authorize(request, Operation.TWO_PHASE_COMMIT, kind, transactional_id)


def _may_produce(node: Transactions, request: Request) -> bool:
    """Whether the principal may produce idempotently, or write to any topic at all."""
    if node.authorize(request, Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER, CLUSTER_NAME):
        return True
    return node.authorize_any(request, Operation.WRITE, ResourceType.TOPIC)
