"""CreatePartitions (37): more partitions for a topic, by the controller.

Versions 0 to 3, which differ in their encoding and in how a quota is answered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.network.request import Later, Request
from ottla.wire.types.create_partitions import CreatePartitionsResponse

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Controller

API_KEY: Final = 37
VERSIONS: Final = (0, 3)


def handle(node: Controller, request: Request) -> Later:
    return node.submit(request)


def refuse(request: Request, code: int, message: str | None) -> CreatePartitionsResponse:
    kind = CreatePartitionsResponse
    names = dict.fromkeys(topic.name for topic in request.body.topics)
    return kind(results=tuple(kind.CreatePartitionsTopicResult(name, code, message) for name in names))
