"""The listening sockets of a node, bound before anything else so that a port in use does no harm."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ottla.broker.config.node_config import ListenerConfig, NodeConfig, StartError
from ottla.broker.network.listener import bind

if TYPE_CHECKING:
    from ottla.broker.network.web_server import WebServer

__all__ = ["Bind", "Sockets", "open_web_server"]


Bind = Callable[[str, int, int], socket.socket]
"""Host, port and backlog -> a listening socket. Raises OSError."""


class Sockets:
    """One socket for each listener of the configuration."""

    def __init__(self, config: NodeConfig, bind: Bind = bind) -> None:
        """Raises StartError; then none is open."""
        self._config = config
        self._make = bind
        self.by_listener: dict[str, socket.socket] = {}
        for listener in config.listeners:
            self.by_listener[listener.name] = self._bind(listener)

    def _bind(self, listener: ListenerConfig) -> socket.socket:
        config, backlog = self._config, self._config["socket.listen.backlog.size"]
        try:
            return self._make(listener.host, listener.port, backlog)
        except OSError as error:
            if config.may_move_controller and listener.name == config.controller_listener:
                return self._make(listener.host, 0, backlog)  # nobody asked for this very port
            self.close()
            raise StartError(str(error.strerror or error)) from None

    def advertised(self) -> Mapping[str, ListenerConfig]:
        """What clients are told, by listener: with the port that was taken, unless another one is advertised."""
        found: dict[str, ListenerConfig] = {}
        for listener in self._config.listeners:
            advertised = self._config.advertised[listener.name]
            is_own = advertised.port == listener.port  # and not that of something in between
            port = self.by_listener[listener.name].getsockname()[1]
            found[listener.name] = advertised._replace(port=port) if is_own else advertised
        return found

    def close(self) -> None:
        for sock in self.by_listener.values():
            sock.close()


async def open_web_server(server: WebServer, host: str, port: int, name: str) -> int:
    """Let a server listen; gives the port."""
    try:
        return await server.start(host, port)
    except OSError as error:
        raise StartError(f"the {name} cannot listen on {host or '*'}:{port}: {error.strerror}") from None
