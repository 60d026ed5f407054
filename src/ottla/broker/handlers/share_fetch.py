"""ShareFetch (78): acknowledge records of a share group, and acquire others.

Versions 1 and 2. From 2 on with acquire modes and renewals. `ottla.broker.share.delayed_share_fetch` describes it. The
bytes count towards the fetch quota. Tiered storage is not supported yet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.network.request import Answer, Request
from ottla.broker.share.delayed_share_fetch import fetch
from ottla.wire.types.share_fetch import ShareFetchResponse

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import ShareGroups

API_KEY: Final = 78
VERSIONS: Final = (1, 2)


def handle(node: ShareGroups, request: Request) -> Answer:
    return node.share.serve(fetch, request)


def refuse(request: Request, code: int, message: str | None) -> ShareFetchResponse:
    return ShareFetchResponse(error_code=code)
