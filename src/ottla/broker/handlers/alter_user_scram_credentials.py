"""AlterUserScramCredentials (51): SCRAM credentials are made, replaced and removed, by the controller. Version 0.

They are kept and shown on any node; a login that uses them is not there yet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.network.request import Later, Request
from ottla.core.metadata.scram import refuse_alter_user_scram_credentials
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject
from ottla.wire.types.alter_user_scram_credentials import AlterUserScramCredentialsResponse

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Controller

API_KEY: Final = 51
VERSIONS: Final = (0, 0)


def handle(node: Controller, request: Request) -> Later:
    return node.submit(request)


def refuse(request: Request, code: int, message: str | None) -> AlterUserScramCredentialsResponse:
    return refuse_alter_user_scram_credentials(request.body, Reject(ErrorCode(code), message))
