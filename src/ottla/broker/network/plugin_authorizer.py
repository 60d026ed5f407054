"""Decides by a class that the settings name (`ottla.security.authorizer`)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from ottla.broker.config.plugins import PluginError, plugin_class, told
from ottla.broker.network.request import Denial
from ottla.security.authorizer import Action, Authorizer

if TYPE_CHECKING:
    from ottla.broker.config.node_config import NodeConfig
    from ottla.broker.network.request import Request
    from ottla.wire.access import Operation, ResourceType

__all__ = ["PluginAuthorizer"]

log = logging.getLogger(__name__)


class PluginAuthorizer:
    def __init__(self, setting: str, name: str, config: NodeConfig) -> None:
        kind = plugin_class(setting, name, Authorizer)  # type: ignore[type-abstract]
        try:
            self._plugin = kind(dict(config.static))
        except Exception as error:
            raise PluginError(f"{setting}: {name} cannot be created: {told(error)}") from error

    def __call__(self, request: Request, operation: Operation, resource_type: ResourceType, name: str) -> bool:
        peer = request.connection.peer
        action = Action(request.principal, peer.host, peer.listener, operation, resource_type, name)
        try:
            if self._plugin.authorize(action):
                return True
        except Exception:
            log.exception("the authorizer has failed; the request is denied")
        request.deny(Denial(operation, resource_type, name, type(self._plugin).__name__))
        return False
