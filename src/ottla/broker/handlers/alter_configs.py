"""AlterConfigs (33): replaces all settings of resources, through the controller.

Versions 0 to 2, which differ in their encoding. A resource is changed completely or not at all. Policies
(alter.config.policy.class.name) are not called; loggers are not supported, as in Kafka.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.handlers.altered_resources import alter_resources
from ottla.broker.network.request import Answer, Request
from ottla.wire.types.alter_configs import (
    AlterConfigsRequestAlterConfigsResource,
    AlterConfigsResponse,
    AlterConfigsResponseAlterConfigsResourceResponse,
)

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Configs

API_KEY: Final = 33
VERSIONS: Final = (0, 2)

_Resource = AlterConfigsRequestAlterConfigsResource
_Verdict = AlterConfigsResponseAlterConfigsResourceResponse


def handle(node: Configs, request: Request) -> Answer:
    return alter_resources(node, request, AlterConfigsResponse, _verdict)


def refuse(request: Request, code: int, message: str | None) -> AlterConfigsResponse:
    return AlterConfigsResponse(responses=tuple(_verdict(each, code, message) for each in request.body.resources))


def _verdict(resource: _Resource, code: int, message: str | None) -> _Verdict:
    return _Verdict(code, message, resource.resource_type, resource.resource_name)
