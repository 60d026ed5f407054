"""AlterShareGroupOffsets (91): from which offsets an empty share group goes on, or a new one begins (KIP-932).

Version 0. The asker must be allowed to read the group and the topics. It is answered when the share coordinators have
it and leaders have dropped what they held.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.handlers.share_offsets import change_offsets
from ottla.broker.network.request import Later, Request
from ottla.wire.access import Operation
from ottla.wire.errors import ErrorCode
from ottla.wire.types.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequestAlterShareGroupOffsetsRequestTopic as _AskedTopic,
)
from ottla.wire.types.alter_share_group_offsets import AlterShareGroupOffsetsResponse
from ottla.wire.types.alter_share_group_offsets import (
    AlterShareGroupOffsetsResponseAlterShareGroupOffsetsResponsePartition as _Partition,
)
from ottla.wire.types.alter_share_group_offsets import (
    AlterShareGroupOffsetsResponseAlterShareGroupOffsetsResponseTopic as _Topic,
)

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import ShareGroups

API_KEY: Final = 91
VERSIONS: Final = (0, 0)


def handle(node: ShareGroups, request: Request) -> Later:
    def deny(asked: _AskedTopic) -> _Topic:
        code, topic = ErrorCode.TOPIC_AUTHORIZATION_FAILED, node.image.topic(asked.topic_name)
        partitions = tuple(_Partition(each.partition_index, code, code.meaning) for each in asked.partitions)
        return _Topic(asked.topic_name, bytes(16) if topic is None else topic.topic_id, partitions)

    return change_offsets(node, request, Operation.READ, deny, refuse)


def refuse(request: Request, code: int, message: str | None) -> AlterShareGroupOffsetsResponse:
    return AlterShareGroupOffsetsResponse(error_code=code, error_message=message or ErrorCode(code).meaning)
