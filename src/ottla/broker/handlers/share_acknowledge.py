"""ShareAcknowledge (79): acknowledge records of a share group.

Versions 1 and 2. From 2 on with renewals, and the response has the lock duration.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.network.request import Answer, Request
from ottla.broker.share.acknowledgements import acknowledge
from ottla.wire.types.share_acknowledge import ShareAcknowledgeResponse

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import ShareGroups

API_KEY: Final = 79
VERSIONS: Final = (1, 2)


def handle(node: ShareGroups, request: Request) -> Answer:
    return node.share.serve(acknowledge, request)


def refuse(request: Request, code: int, message: str | None) -> ShareAcknowledgeResponse:
    return ShareAcknowledgeResponse(error_code=code)
