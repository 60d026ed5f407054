"""FindCoordinator (10): the node that coordinates a group, a transactional id or a share partition.

Versions 0 to 6. Up to 3 there is one key, from 4 on many; share partitions, as `group:topic id:partition`, are allowed
from 6 on. If the coordinators' internal topic does not exist, it is created before the response; Apache Kafka answers
COORDINATOR_NOT_AVAILABLE first and creates it in the meantime. If no controller is found within a second, that is the
answer here, too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ottla.broker.coordinators.internal_topics import GROUPS, SHARE_STATE, TRANSACTIONS, InternalTopic
from ottla.broker.handlers.metadata import leader_of
from ottla.broker.network.authorization import check_cluster
from ottla.broker.network.request import Answer, DelayedResponse, Request
from ottla.core.coordinator.partitioner import partition_for
from ottla.core.metadata.fault import Reject
from ottla.wire.access import Operation, ResourceType
from ottla.wire.errors import ErrorCode
from ottla.wire.types.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    FindCoordinatorResponseCoordinator,
)

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Cluster

API_KEY: Final = 10
VERSIONS: Final = (0, 6)

_MANY_FROM: Final = 4
_SHARE_FROM: Final = 6
_MESSAGE_FROM: Final = 1
_GROUP: Final = 0
_TRANSACTION: Final = 1
_SHARE: Final = 2
_TOPICS: Final = {_GROUP: GROUPS, _TRANSACTION: TRANSACTIONS, _SHARE: SHARE_STATE}
_SHARE_KEY: Final = re.compile(r".+:[A-Za-z0-9_-]{22}:\d+", re.DOTALL)
"""Group, which may contain colons, topic id in base64 without padding, partition."""

_Coordinator = FindCoordinatorResponseCoordinator


def handle(node: Cluster, request: Request) -> Answer:
    body: FindCoordinatorRequest = request.body
    keys = body.coordinator_keys if request.version >= _MANY_FROM else (body.key,)
    topic = _TOPICS.get(body.key_type)
    if topic is None:
        raise Reject(ErrorCode.INVALID_REQUEST, f"Unknown coordinator type {body.key_type}.")
    refusals = {key: code for key in keys if (code := _judge(node, request, body.key_type, key))}
    if len(refusals) == len(set(keys)) or node.image.topic(topic.name) is not None:
        return _answer(node, request, keys, topic, refusals)
    later = DelayedResponse()
    node.internal_topics.ensure(topic, lambda _: later.complete(_answer(node, request, keys, topic, refusals)))
    return later


def refuse(request: Request, code: int, message: str | None) -> FindCoordinatorResponse:
    keys = request.body.coordinator_keys if request.version >= _MANY_FROM else (request.body.key,)
    return _response(request, [_failed(key, ErrorCode(code), message) for key in keys])


def _judge(node: Cluster, request: Request, key_type: int, key: str) -> ErrorCode:
    """The error of an invalid or unauthorized key, or NONE."""
    if key_type == _SHARE and request.version < _SHARE_FROM:
        return ErrorCode.INVALID_REQUEST
    if key_type == _GROUP and not node.authorize(request, Operation.DESCRIBE, ResourceType.GROUP, key):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    if key_type == _TRANSACTION and not node.authorize(request, Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, key):
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if key_type == _SHARE:
        check_cluster(node, request, Operation.CLUSTER_ACTION)
        if _SHARE_KEY.fullmatch(key) is None:
            return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE


def _answer(
    node: Cluster,
    request: Request,
    keys: Sequence[str],
    topic: InternalTopic,
    refusals: dict[str, ErrorCode],
) -> FindCoordinatorResponse:
    return _response(
        request,
        [_failed(key, refusals[key]) if key in refusals else _find(node, request, topic, key) for key in keys],
    )


def _find(node: Cluster, request: Request, topic: InternalTopic, key: str) -> _Coordinator:
    found = node.image.topic(topic.name)
    if found is None or not found.partitions:
        return _failed(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    listener = request.connection.peer.listener
    leader_id, code = leader_of(node, found.partitions[partition_for(key, len(found.partitions))], listener)
    if code:
        return _failed(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    endpoint = node.image.brokers[leader_id].endpoint(listener)
    assert endpoint is not None
    return _Coordinator(key, leader_id, endpoint.host, endpoint.port, ErrorCode.NONE)


def _failed(key: str, code: ErrorCode, message: str | None = None) -> _Coordinator:
    return _Coordinator(key, -1, "", -1, code, message or "")


def _response(request: Request, found: list[_Coordinator]) -> FindCoordinatorResponse:
    if request.version >= _MANY_FROM:
        return FindCoordinatorResponse(coordinators=tuple(found))
    (one,) = found
    return FindCoordinatorResponse(
        error_code=one.error_code,
        error_message=_message(one) if request.version >= _MESSAGE_FROM else "",
        node_id=one.node_id,
        host=one.host,
        port=one.port,
    )


def _message(one: _Coordinator) -> str:
    if not one.error_code:
        return "NONE"  # Java's name of no error, as Apache Kafka sends it
    return one.error_message or ErrorCode(one.error_code).meaning
