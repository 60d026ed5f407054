"""AlterPartitionReassignments (45): partitions are sent to other brokers, or called back, by the controller.

Versions 0 and 1; from 1 on the number of replicas can be held fixed (KIP-860).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.network.request import Later, Request
from ottla.wire.types.alter_partition_reassignments import AlterPartitionReassignmentsResponse

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Controller

API_KEY: Final = 45
VERSIONS: Final = (0, 1)


def handle(node: Controller, request: Request) -> Later:
    return node.submit(request)


def refuse(request: Request, code: int, message: str | None) -> AlterPartitionReassignmentsResponse:
    return AlterPartitionReassignmentsResponse(error_code=code, error_message=message)
