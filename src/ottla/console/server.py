"""Runs the console: uvicorn on a port of this machine."""

from __future__ import annotations

import contextlib
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import uvicorn

from ottla.console.access import Access, hosts_of
from ottla.console.app import make_app

__all__ = ["Certificate", "ConsoleServer"]

STOP_S = 2


class Certificate(NamedTuple):
    """Files in PEM."""

    chain: Path
    key: Path


class ConsoleServer:
    """Listens from its construction on, and answers while `run` runs. OSError if the port cannot be had."""

    def __init__(
        self,
        access: Access,
        *,
        host: str,
        port: int,
        allowed_hosts: tuple[str, ...] = (),
        certificate: Certificate | None = None,
    ) -> None:
        is_ipv6 = ":" in host
        self._sock = socket.create_server((host, port), family=socket.AF_INET6 if is_ipv6 else socket.AF_INET)
        name, bound = f"[{host}]" if is_ipv6 else host, self._sock.getsockname()[1]
        self.address = f"{'http' if certificate is None else 'https'}://{name}:{bound}/"
        """Where a browser finds it."""
        app = make_app(access, hosts_of(name, bound, allowed_hosts), is_secure=certificate is not None)
        self._uvicorn = _Server(
            uvicorn.Config(
                app,
                log_level="warning",
                access_log=False,
                timeout_graceful_shutdown=STOP_S,
                ws="none",
                ssl_certfile=None if certificate is None else certificate.chain,
                ssl_keyfile=None if certificate is None else certificate.key,
            )
        )
        self._uvicorn.on_shutdown = access.end_events

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
    """A server that says when it serves and when it stops: streams have to end by themselves.

    A signal is its normal end; uvicorn's own would die of it afterwards.
    """

    on_ready: Callable[[], object]
    on_shutdown: Callable[[], object]

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.on_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.on_shutdown()
        await super().shutdown(sockets)
