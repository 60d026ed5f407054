"""UnregisterController (94): a controller that will not come back is forgotten (KIP-1312). Version 0.

The record for it belongs to a metadata.version that is not stable yet: no controller can be forgotten so far.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.network.request import Later, Request
from ottla.wire.types.unregister_controller import UnregisterControllerResponse

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Controller

API_KEY: Final = 94
VERSIONS: Final = (0, 0)


def handle(node: Controller, request: Request) -> Later:
    return node.submit(request)


def refuse(request: Request, code: int, message: str | None) -> UnregisterControllerResponse:
    return UnregisterControllerResponse(error_code=code, error_message=message)
