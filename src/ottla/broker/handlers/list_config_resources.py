"""ListConfigResources (74): the names of resources with settings.

All topics and brokers are listed; groups and client metrics subscriptions only if something was set for them. Version 0
lists only client metrics; version 1 has a list of types, which is empty for all types.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.handlers.describe_configs import BROKER_LOGGER
from ottla.broker.network.authorization import check_cluster
from ottla.broker.network.request import Request
from ottla.core.metadata.image import BROKER, CLIENT_METRICS, GROUP, TOPIC
from ottla.wire.access import Operation
from ottla.wire.errors import ErrorCode
from ottla.wire.types.list_config_resources import (
    ListConfigResourcesResponse,
    ListConfigResourcesResponseConfigResource,
)

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Configs

API_KEY: Final = 74
VERSIONS: Final = (0, 1)

_TYPES: Final = (TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP)
_TYPES_FROM: Final = 1


def handle(node: Configs, request: Request) -> ListConfigResourcesResponse:
    check_cluster(node, request, Operation.DESCRIBE_CONFIGS)
    asked = request.body.resource_types or _TYPES if request.version >= _TYPES_FROM else (CLIENT_METRICS,)
    if not set(asked) <= set(_TYPES):
        return refuse(request, ErrorCode.UNSUPPORTED_VERSION, None)
    kind = ListConfigResourcesResponseConfigResource
    found = (kind(name, each) for each in dict.fromkeys(asked) for name in _names(node, request, each))
    return ListConfigResourcesResponse(config_resources=tuple(found))


def refuse(request: Request, code: int, message: str | None) -> ListConfigResourcesResponse:
    return ListConfigResourcesResponse(error_code=code)


def _names(node: Configs, request: Request, resource_type: int) -> list[str]:
    if resource_type == TOPIC:
        return list(node.image.topics_by_name)
    if resource_type in (BROKER, BROKER_LOGGER):
        listener = request.connection.peer.listener
        brokers = node.image.brokers.values()
        return [str(each.broker_id) for each in brokers if not each.fenced and each.endpoint(listener) is not None]
    return node.image.config_resources(resource_type)
