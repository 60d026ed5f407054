"""ApiVersions (18): the APIs of this listener, and the features of the cluster.

Versions 0 to 5. A later one is answered in version 0 with UNSUPPORTED_VERSION and only this API's own range, so that
clients fall back. Version 3 hides features that may be off, because its readers treat a minimum level of 0 as an error.
With version 5 (KIP-1242) a client learns that it has reached another cluster or node than intended.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Final

from ottla.broker.handlers import SERVED
from ottla.broker.network.request import Request
from ottla.broker.telemetry.clients import SETTING as TELEMETRY_SETTING
from ottla.core.metadata.features import KRAFT_VERSION, OTTLA_VERSION, supported
from ottla.wire.errors import ErrorCode
from ottla.wire.types.api_versions import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    ApiVersionsResponseApiVersion,
    ApiVersionsResponseFinalizedFeatureKey,
    ApiVersionsResponseSupportedFeatureKey,
)

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Cluster

API_KEY: Final = 18
VERSIONS: Final = (0, 5)

_SOFTWARE_FROM: Final = 3
_ALL_FEATURES_FROM: Final = 4
_IDENTITY_FROM: Final = 5
_SOFTWARE: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?")
_NO_NODE: Final = -1
_TELEMETRY_KEYS: Final = frozenset((71, 72))
_DESCRIPTION_KEY: Final = 93
_HIGHEST_OF_4_3: Final = {88: 0, 89: 0}
"""StreamsGroupHeartbeat and StreamsGroupDescribe."""


def handle(node: Cluster, request: Request) -> ApiVersionsResponse:
    if request.body is None:
        return ApiVersionsResponse(ErrorCode.UNSUPPORTED_VERSION, (_served(node, API_KEY),))
    code = _judge(node, request, request.body)
    if code:
        return refuse(request, code, None)
    return ApiVersionsResponse(
        api_keys=tuple(_served(node, key) for key in sorted(_shown(node, request.connection.offered_apis))),
        supported_features=_supported(node, request.version),
        finalized_features_epoch=node.image.last_offset,
        finalized_features=_finalized(node),
    )


def refuse(request: Request, code: int, message: str | None) -> ApiVersionsResponse:
    return ApiVersionsResponse(code)


def _judge(node: Cluster, request: Request, body: ApiVersionsRequest) -> ErrorCode:
    if request.version >= _SOFTWARE_FROM:
        software = (body.client_software_name, body.client_software_version)
        if not all(map(_SOFTWARE.fullmatch, software)):
            return ErrorCode.INVALID_REQUEST
        request.connection.client_software = software
    if request.version >= _IDENTITY_FROM:
        return _judge_identity(node, body)
    return ErrorCode.NONE


def _judge_identity(node: Cluster, body: ApiVersionsRequest) -> ErrorCode:
    if (body.cluster_id is None) != (body.node_id == _NO_NODE):
        return ErrorCode.INVALID_REQUEST
    if body.cluster_id is not None and (body.cluster_id, body.node_id) != (node.cluster_id, node.node_id):
        return ErrorCode.REBOOTSTRAP_REQUIRED
    return ErrorCode.NONE


def _shown(node: Cluster, offered: Collection[int]) -> Iterator[int]:
    """The APIs to advertise, without telemetry unless it is enabled: clients that see it ask for subscriptions."""
    hidden = set() if node.config[TELEMETRY_SETTING] else set(_TELEMETRY_KEYS)
    if not _serves_newest(node):
        hidden.add(_DESCRIPTION_KEY)
    return (key for key in offered if key not in hidden)


def _serves_newest(node: Cluster) -> bool:
    """Whether all brokers serve what Kafka 4.4 has beyond 4.3: coordinators move between them."""
    return node.image.all_support(OTTLA_VERSION, 1)


def _served(node: Cluster, key: int) -> ApiVersionsResponseApiVersion:
    served = SERVED[key]
    low = served.low if served.advertised_low is None else served.advertised_low
    high = served.high_of(is_unstable=node.config["unstable.api.versions.enable"])
    if key in _HIGHEST_OF_4_3 and not _serves_newest(node):
        high = _HIGHEST_OF_4_3[key]
    return ApiVersionsResponseApiVersion(key, low, high)


def _supported(node: Cluster, version: int) -> tuple[ApiVersionsResponseSupportedFeatureKey, ...]:
    kind = ApiVersionsResponseSupportedFeatureKey
    levels = supported(is_unstable=node.config["unstable.feature.versions.enable"])
    return tuple(kind(name, low, high) for name, (low, high) in levels.items() if low or version >= _ALL_FEATURES_FROM)


def _finalized(node: Cluster) -> tuple[ApiVersionsResponseFinalizedFeatureKey, ...]:
    kind = ApiVersionsResponseFinalizedFeatureKey
    levels = {**node.image.features, KRAFT_VERSION: node.raft.quorum.control.kraft_version}
    return tuple(kind(name, level, level) for name, level in levels.items() if level)
