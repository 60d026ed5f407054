"""GetTelemetrySubscriptions (71): which metrics a client pushes, and how often (KIP-714). Version 0.

Always answered; advertised to clients only with `ottla.client.telemetry.enable`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.network.request import Request
from ottla.wire.types.get_telemetry_subscriptions import GetTelemetrySubscriptionsResponse

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import ClientTelemetry

API_KEY: Final = 71
VERSIONS: Final = (0, 0)


def handle(node: ClientTelemetry, request: Request) -> GetTelemetrySubscriptionsResponse:
    return node.telemetry.get_subscriptions(request)


def refuse(request: Request, code: int, message: str | None) -> GetTelemetrySubscriptionsResponse:
    return GetTelemetrySubscriptionsResponse(error_code=code)
