"""DescribeQuorum (55): the leader, voters and observers of the metadata log, and their end offsets.

Versions 0 to 2: from 1 on with times of fetches, from 2 on with directories, messages and the voters' listeners.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.network.authorization import check_cluster
from ottla.broker.network.request import DelayedResponse, Request
from ottla.wire.access import Operation
from ottla.wire.types.describe_quorum import DescribeQuorumResponse

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Quorum

API_KEY: Final = 55
VERSIONS: Final = (0, 2)


def handle(node: Quorum, request: Request) -> DelayedResponse:
    check_cluster(node, request, Operation.DESCRIBE)
    return node.submit(request)


def refuse(request: Request, code: int, message: str | None) -> DescribeQuorumResponse:
    return DescribeQuorumResponse(error_code=code, error_message=message)
