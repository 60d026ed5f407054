"""DeleteShareGroupOffsets (92): an empty share group forgets topics, and begins anew with them (KIP-932).

Version 0. The asker must be allowed to delete the group and to read the topics. It is answered when the share
coordinators have forgotten them and leaders have dropped what they held.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.handlers.share_offsets import change_offsets
from ottla.broker.network.request import Later, Request
from ottla.wire.access import Operation
from ottla.wire.errors import ErrorCode
from ottla.wire.types.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequestDeleteShareGroupOffsetsRequestTopic as _AskedTopic,
)
from ottla.wire.types.delete_share_group_offsets import DeleteShareGroupOffsetsResponse
from ottla.wire.types.delete_share_group_offsets import (
    DeleteShareGroupOffsetsResponseDeleteShareGroupOffsetsResponseTopic as _Topic,
)

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import ShareGroups

API_KEY: Final = 92
VERSIONS: Final = (0, 0)


def handle(node: ShareGroups, request: Request) -> Later:
    def deny(asked: _AskedTopic) -> _Topic:
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return _Topic(asked.topic_name, bytes(16), code, code.meaning)

    return change_offsets(node, request, Operation.DELETE, deny, refuse)


def refuse(request: Request, code: int, message: str | None) -> DeleteShareGroupOffsetsResponse:
    return DeleteShareGroupOffsetsResponse(error_code=code, error_message=message or ErrorCode(code).meaning)
