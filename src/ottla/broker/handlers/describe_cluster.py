"""DescribeCluster (60): the nodes of the cluster, with their addresses for the request's listener.

Versions 0 to 2: from 1 on a client requests brokers (1) or controllers (2), and gets MISMATCHED_ENDPOINT_TYPE on a
listener of the other kind; from 2 on it can request fenced brokers. Everybody may see the brokers; who asks for the
controllers needs the right to alter the cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.network.authorization import NOT_ASKED, check_cluster, cluster_operations
from ottla.broker.network.request import Request
from ottla.wire.access import Operation
from ottla.wire.errors import ErrorCode
from ottla.wire.types.describe_cluster import (
    DescribeClusterResponse,
    DescribeClusterResponseDescribeClusterBroker,
)

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Cluster

API_KEY: Final = 60
VERSIONS: Final = (0, 2)

_BROKERS: Final = 1
_CONTROLLERS: Final = 2
_TYPES_FROM: Final = 1

_Entry = DescribeClusterResponseDescribeClusterBroker


def handle(node: Cluster, request: Request) -> DescribeClusterResponse:
    listener = request.connection.peer.listener
    is_controller = listener in node.config["controller.listener.names"]
    if is_controller:
        check_cluster(node, request, Operation.ALTER)
    code, message = _judge(request, _CONTROLLERS if is_controller else _BROKERS)
    if code:
        return refuse(request, code, message)
    nodes = _controllers(node, listener) if is_controller else _brokers(node, request, listener)
    return DescribeClusterResponse(
        error_message=None,
        endpoint_type=request.body.endpoint_type,
        cluster_id=node.cluster_id,
        controller_id=node.raft.quorum.leader_id if is_controller else _any_alive(node, nodes),
        brokers=tuple(nodes),
        cluster_authorized_operations=_operations(node, request),
    )


def refuse(request: Request, code: int, message: str | None) -> DescribeClusterResponse:
    return DescribeClusterResponse(error_code=code, error_message=message)


def _judge(request: Request, expected: int) -> tuple[ErrorCode, str | None]:
    asked = request.body.endpoint_type
    if asked == expected:
        return ErrorCode.NONE, None
    if request.version < _TYPES_FROM:
        return ErrorCode.INVALID_REQUEST, "This is a controller listener, which version 0 does not support."
    if asked not in (_BROKERS, _CONTROLLERS):
        return ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"Unknown endpoint type {asked}."
    return ErrorCode.MISMATCHED_ENDPOINT_TYPE, f"This listener has the endpoint type {expected}, not {asked}."


def _brokers(node: Cluster, request: Request, listener: str) -> list[_Entry]:
    entries = []
    for broker in node.image.brokers.values():
        endpoint = broker.endpoint(listener)
        if endpoint is not None and (not broker.fenced or request.body.include_fenced_brokers):
            entries.append(_Entry(broker.broker_id, endpoint.host, endpoint.port, broker.rack, broker.fenced))
    return entries


def _any_alive(node: Cluster, brokers: list[_Entry]) -> int:
    """Brokers pass requests on, so any of them will do for a client that looks for the controller."""
    alive = [each.broker_id for each in brokers if not each.is_fenced]
    return node.node_id if node.node_id in alive else next(iter(alive), -1)


def _controllers(node: Cluster, listener: str) -> list[_Entry]:
    entries = []
    for controller in node.image.controllers.values():
        endpoint = controller.endpoint(listener)
        if endpoint is not None:
            entries.append(_Entry(controller.controller_id, endpoint.host, endpoint.port))
    return entries


def _operations(node: Cluster, request: Request) -> int:
    if not request.body.include_cluster_authorized_operations:
        return NOT_ASKED
    return cluster_operations(node, request)
