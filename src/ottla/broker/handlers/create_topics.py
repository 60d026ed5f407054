"""CreateTopics (19): new topics, by the controller.

Versions 2 to 7: from 4 on -1 stands for the defaults, from 5 on the answer has the number of partitions, replicas and
all settings, from 7 on the topic's id. Policies (create.topic.policy.class.name) are not called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.network.request import Later, Request
from ottla.wire.types.create_topics import CreateTopicsResponse

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Controller

API_KEY: Final = 19
VERSIONS: Final = (2, 7)


def handle(node: Controller, request: Request) -> Later:
    return node.submit(request)


def refuse(request: Request, code: int, message: str | None) -> CreateTopicsResponse:
    kind = CreateTopicsResponse
    names = dict.fromkeys(topic.name for topic in request.body.topics)
    return kind(topics=tuple(kind.CreatableTopicResult(name, error_code=code, error_message=message) for name in names))
