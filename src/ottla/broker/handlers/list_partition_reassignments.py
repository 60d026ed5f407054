"""ListPartitionReassignments (46): partitions on their way to other brokers, as the controller has them.

Version 0. On one node there are none; kafka-topics asks before it describes a topic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.network.request import Later, Request
from ottla.wire.types.list_partition_reassignments import ListPartitionReassignmentsResponse

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Controller

API_KEY: Final = 46
VERSIONS: Final = (0, 0)


def handle(node: Controller, request: Request) -> Later:
    return node.submit(request)


def refuse(request: Request, code: int, message: str | None) -> ListPartitionReassignmentsResponse:
    return ListPartitionReassignmentsResponse(error_code=code, error_message=message)
