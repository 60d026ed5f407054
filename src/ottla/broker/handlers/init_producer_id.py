"""InitProducerId (22): an id under which a producer numbers its batches.

Versions 0 to 5. Without a transactional id each call gets a fresh id with epoch 0; the id and epoch it may name from
version 3 on are overlooked, as by Apache Kafka. There are no transactions yet: a transactional id is answered with
UNSUPPORTED_VERSION.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.request import Answer, Later, Request
from ottla.wire.access import CLUSTER_NAME, Operation, ResourceType
from ottla.wire.errors import ErrorCode
from ottla.wire.types.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

if TYPE_CHECKING:
    from ottla.broker.node import Node

API_KEY: Final = 22
VERSIONS: Final = (0, 5)


def handle(node: Node, request: Request) -> Answer:
    body: InitProducerIdRequest = request.body
    code = _judge(node, request, body)
    if code:
        return refuse(request, code, None)
    later = Later()

    def taken(outcome: int | ErrorCode) -> None:
        if isinstance(outcome, ErrorCode):
            later.complete(refuse(request, outcome, None))
        else:
            later.complete(InitProducerIdResponse(producer_id=outcome, producer_epoch=0))

    node.producer_ids.take(taken)
    return later


def refuse(request: Request, code: int, message: str | None) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)


def _judge(node: Node, request: Request, body: InitProducerIdRequest) -> ErrorCode:
    if body.transactional_id == "" or (body.producer_id == -1) != (body.producer_epoch == -1):
        return ErrorCode.INVALID_REQUEST
    if body.transactional_id is not None:
        return ErrorCode.UNSUPPORTED_VERSION
    if not _may_produce(node, request):
        return ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    return ErrorCode.NONE


def _may_produce(node: Node, request: Request) -> bool:
    """Whether the principal may produce idempotently, or write to any topic at all."""
    if node.authorize(request, Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER, CLUSTER_NAME):
        return True
    return any(node.authorize(request, Operation.WRITE, ResourceType.TOPIC, name) for name in node.image.topics_by_name)
