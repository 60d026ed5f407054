"""AlterConfigs (33): gives resources the settings named and no others, by the controller.

Versions 0 to 2, which differ in their encoding. A resource is changed completely or not at all. Brokers act on what
changes as soon as it is committed. Policies (alter.config.policy.class.name) are not called; loggers have no settings
here, as in Kafka.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.network.request import Later, Request
from ottla.wire.types.alter_configs import AlterConfigsResponse

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Controller

API_KEY: Final = 33
VERSIONS: Final = (0, 2)


def handle(node: Controller, request: Request) -> Later:
    return node.submit(request)


def refuse(request: Request, code: int, message: str | None) -> AlterConfigsResponse:
    kind = AlterConfigsResponse
    return kind(
        responses=tuple(
            kind.AlterConfigsResourceResponse(code, message, each.resource_type, each.resource_name)
            for each in request.body.resources
        )
    )
