"""DescribeDelegationToken (41): there are no tokens to show; see `delegation_tokens`.

Versions 1 to 3. Apache Kafka lists the API on a controller's listener and fails there with UNKNOWN_SERVER_ERROR; so it
is here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.handlers.delegation_tokens import token_refusal
from ottla.broker.network.request import Request
from ottla.wire.errors import ErrorCode
from ottla.wire.types.describe_delegation_token import DescribeDelegationTokenResponse

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Cluster

API_KEY: Final = 41
VERSIONS: Final = (1, 3)


def handle(node: Cluster, request: Request) -> DescribeDelegationTokenResponse:
    if request.connection.peer.listener in node.config["controller.listener.names"]:
        return refuse(request, ErrorCode.UNKNOWN_SERVER_ERROR, None)
    return refuse(request, token_refusal(request), None)


def refuse(request: Request, code: int, message: str | None) -> DescribeDelegationTokenResponse:
    return DescribeDelegationTokenResponse(code)
