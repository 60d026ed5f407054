"""PushTelemetry (72): metrics of a client, in OpenTelemetry's format, optionally compressed (KIP-714). Version 0.

Always answered; advertised to clients only with `ottla.client.telemetry.enable`. Without it nothing is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.network.request import Request
from ottla.wire.types.push_telemetry import PushTelemetryResponse

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import ClientTelemetry

API_KEY: Final = 72
VERSIONS: Final = (0, 0)


def handle(node: ClientTelemetry, request: Request) -> PushTelemetryResponse:
    node.telemetry.push(request)
    return PushTelemetryResponse()


def refuse(request: Request, code: int, message: str | None) -> PushTelemetryResponse:
    return PushTelemetryResponse(error_code=code)
