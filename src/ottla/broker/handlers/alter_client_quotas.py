"""AlterClientQuotas (49): limits are set and removed, by the controller. They hold at once.

Versions 0 and 1, which differ in form only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.network.request import Later, Request
from ottla.core.metadata.client_quotas import refuse_alter_client_quotas
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject
from ottla.wire.types.alter_client_quotas import AlterClientQuotasResponse

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Controller

API_KEY: Final = 49
VERSIONS: Final = (0, 1)


def handle(node: Controller, request: Request) -> Later:
    return node.submit(request)


def refuse(request: Request, code: int, message: str | None) -> AlterClientQuotasResponse:
    return refuse_alter_client_quotas(request.body, Reject(ErrorCode(code), message))
