"""UnregisterBroker (64): a broker that will not come back is forgotten, by the controller. Version 0.

A broker that is still there registers again at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.network.request import Later, Request
from ottla.wire.types.unregister_broker import UnregisterBrokerResponse

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Controller

API_KEY: Final = 64
VERSIONS: Final = (0, 0)


def handle(node: Controller, request: Request) -> Later:
    return node.submit(request)


def refuse(request: Request, code: int, message: str | None) -> UnregisterBrokerResponse:
    return UnregisterBrokerResponse(error_code=code, error_message=message)
