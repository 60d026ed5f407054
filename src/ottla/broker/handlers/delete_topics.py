"""DeleteTopics (20): topics and their records go, by the controller.

Versions 1 to 6: from 5 on with messages, from 6 on also by id. The partitions' directories are renamed at once and
removed from the disk by and by.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.network.request import Later, Request
from ottla.core.metadata.topics import asked_topics
from ottla.wire.types.delete_topics import DeleteTopicsResponse

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Controller

API_KEY: Final = 20
VERSIONS: Final = (1, 6)


def handle(node: Controller, request: Request) -> Later:
    return node.submit(request)


def refuse(request: Request, code: int, message: str | None) -> DeleteTopicsResponse:
    kind = DeleteTopicsResponse
    asked = dict.fromkeys(asked_topics(request.body))
    return kind(responses=tuple(kind.DeletableTopicResult(name, topic_id, code, message) for name, topic_id in asked))
