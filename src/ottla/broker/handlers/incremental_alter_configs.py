"""IncrementalAlterConfigs (44): sets or removes single settings, or entries of lists, by the controller.

Versions 0 and 1, which differ in their encoding. A resource is changed completely or not at all. Brokers act on what
changes as soon as it is committed. Policies (alter.config.policy.class.name) are not called; the levels of loggers
cannot be changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.request import Later, Request
from ottla.wire.types.incremental_alter_configs import IncrementalAlterConfigsResponse

if TYPE_CHECKING:
    from ottla.broker.node import Node

API_KEY: Final = 44
VERSIONS: Final = (0, 1)


def handle(node: Node, request: Request) -> Later:
    return node.submit(request)


def refuse(request: Request, code: int, message: str | None) -> IncrementalAlterConfigsResponse:
    kind = IncrementalAlterConfigsResponse
    return kind(
        responses=tuple(
            kind.AlterConfigsResourceResponse(code, message, each.resource_type, each.resource_name)
            for each in request.body.resources
        )
    )
