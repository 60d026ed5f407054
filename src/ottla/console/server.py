"""Runs the console: uvicorn on a port of this machine."""

from __future__ import annotations

import socket
from collections.abc import Callable

import uvicorn

from ottla.console.access import Access, hosts_of
from ottla.console.app import make_app
from ottla.console.watcher import ClusterWatcher

__all__ = ["ConsoleServer"]

STOP_S = 2


class ConsoleServer:
    """Listens from its construction on, and answers while `run` runs. OSError if the port cannot be had."""

    def __init__(
        self,
        watcher: ClusterWatcher,
        *,
        host: str,
        port: int,
        allowed_hosts: tuple[str, ...] = (),
        token: str | None = None,
    ) -> None:
        is_ipv6 = ":" in host
        self._sock = socket.create_server((host, port), family=socket.AF_INET6 if is_ipv6 else socket.AF_INET)
        name, bound = f"[{host}]" if is_ipv6 else host, self._sock.getsockname()[1]
        access = Access(hosts_of(name, bound, allowed_hosts), token)
        self.origin = f"http://{name}:{bound}"
        self.address = f"{self.origin}/?token={access.token}"
        """What to open in a browser."""
        self._uvicorn = _Server(
            uvicorn.Config(
                make_app(watcher, access),
                log_level="warning",
                access_log=False,
                timeout_graceful_shutdown=STOP_S,
                ws="none",
            )
        )

    async def run(self, on_ready: Callable[[], object] = lambda: None) -> None:
        """Serve until `stop` is called or a signal comes."""
        self._uvicorn.on_ready = on_ready
        try:
            await self._uvicorn.serve(sockets=[self._sock])
        finally:
            self._sock.close()

    def stop(self) -> None:
        self._uvicorn.should_exit = True


class _Server(uvicorn.Server):
    """A server that says when it serves."""

    on_ready: Callable[[], object]

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.on_ready()
