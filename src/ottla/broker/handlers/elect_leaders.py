"""ElectLeaders (43): partitions get their preferred leader, or any that lives, by the controller.

Versions 0 to 2. Version 0 knows preferred elections only; an error of the whole request has a place from 1 on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from ottla.broker.network.request import Later, Request
from ottla.core.metadata.leaders import refuse_elect_leaders
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject
from ottla.wire.types.elect_leaders import ElectLeadersResponse

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Controller

API_KEY: Final = 43
VERSIONS: Final = (0, 2)


_ERROR_FROM: Final = 1


def handle(node: Controller, request: Request) -> Later:
    later = Later()
    node.submit(request).deliver_to(lambda reply: later.complete(_in_version(request.version, reply)))
    return later


def refuse(request: Request, code: int, message: str | None) -> ElectLeadersResponse:
    return _in_version(request.version, refuse_elect_leaders(request.body, Reject(ErrorCode(code), message)))


def _in_version(version: int, reply: ElectLeadersResponse) -> ElectLeadersResponse:
    return reply if version >= _ERROR_FROM else msgspec.structs.replace(reply, error_code=ErrorCode.NONE)
