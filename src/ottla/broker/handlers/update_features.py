"""UpdateFeatures (57): levels of features go up or down, by the controller.

Versions 0 to 2. In 0 a downgrade is a flag; from 1 on it is safe or unsafe, and a change can be tried only.
From 2 on the answer has one error for everything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.network.request import Later, Request
from ottla.wire.types.update_features import UpdateFeaturesResponse

if TYPE_CHECKING:
    from ottla.broker.handlers.ports import Controller

API_KEY: Final = 57
VERSIONS: Final = (0, 2)


def handle(node: Controller, request: Request) -> Later:
    return node.submit(request)


def refuse(request: Request, code: int, message: str | None) -> UpdateFeaturesResponse:
    return UpdateFeaturesResponse(error_code=code, error_message=message)
