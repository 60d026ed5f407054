"""Authorization: the bit sets of allowed operations in some responses, and checks."""

from __future__ import annotations

from typing import Final, Protocol

from ottla.broker.network.request import Request
from ottla.core.coordinator.contract import Authorize
from ottla.wire.access import CLUSTER_NAME, Operation, ResourceType
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject

NOT_ASKED: Final = -(2**31)
"""The value of the bit set in a response whose request did not ask for it."""

_TOPIC: Final = (
    Operation.READ,
    Operation.WRITE,
    Operation.CREATE,
    Operation.DELETE,
    Operation.ALTER,
    Operation.DESCRIBE,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
)
_GROUP: Final = (
    Operation.READ,
    Operation.DELETE,
    Operation.DESCRIBE,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
)
_CLUSTER: Final = (
    Operation.CREATE,
    Operation.ALTER,
    Operation.DESCRIBE,
    Operation.CLUSTER_ACTION,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
    Operation.IDEMPOTENT_WRITE,
)


class Access(Protocol):
    """Decides whether a request is authorized."""

    def authorize(
        self, request: Request, operation: Operation, resource_type: ResourceType, resource_name: str
    ) -> bool: ...
    def authorizer_of(self, request: Request) -> Authorize:
        """The same for one request: what its principal may do. Costs less where everybody may do everything."""
        ...


def topic_operations(node: Access, request: Request, name: str) -> int:
    return _bits(node, request, ResourceType.TOPIC, name, _TOPIC)


def group_operations(node: Access, request: Request, group_id: str) -> int:
    return _bits(node, request, ResourceType.GROUP, group_id, _GROUP)


def cluster_operations(node: Access, request: Request) -> int:
    """None of them is shown to those who may not describe the cluster."""
    if not node.authorize(request, Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME):
        return 0
    return _bits(node, request, ResourceType.CLUSTER, CLUSTER_NAME, _CLUSTER)


def _bits(
    node: Access, request: Request, resource_type: ResourceType, name: str, operations: tuple[Operation, ...]
) -> int:
    return sum(1 << each for each in operations if node.authorize(request, each, resource_type, name))


def check_group(node: Access, request: Request, operation: Operation, group_id: str) -> None:
    """Reject a request that may not do this to a group."""
    if not node.authorize(request, operation, ResourceType.GROUP, group_id):
        raise Reject(ErrorCode.GROUP_AUTHORIZATION_FAILED)


def check_cluster(node: Access, request: Request, operation: Operation) -> None:
    """Reject a request that may not do this to the cluster."""
    if not node.authorize(request, operation, ResourceType.CLUSTER, CLUSTER_NAME):
        raise Reject(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
