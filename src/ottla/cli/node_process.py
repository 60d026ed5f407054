"""Runs a node as a process: logging, signals, the line that says that it is ready, and temporary data."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from importlib import import_module
from typing import Any, Final, Protocol, TextIO

from ottla.broker.config.node_config import ConfigError, ListenerConfig, NodeConfig
from ottla.broker.controller.metadata_replay import MetadataLogError
from ottla.broker.network.file_limit import raise_limit
from ottla.broker.node import Node, StartError
from ottla.broker.peers.peer_connection import Dial, dial
from ottla.broker.replicas.storage import StorageProblem
from ottla.broker.telemetry.log_deduplication import DeduplicationFilter
from ottla.broker.telemetry.loggers import AUDIT, REQUESTS
from ottla.cli.printable import printable
from ottla.core.quorum.errors import QuorumError
from ottla.core.quorum.stored import StoredStateError
from ottla.log.disk import Disk, OsDisk
from ottla.log.errors import StorageError

__all__ = ["WITH_CONSOLE", "CannotServe", "LineFormatter", "new_loop", "run", "run_node"]

log = logging.getLogger(__name__)

_EXIT_FAILED = 1
WITH_CONSOLE: Final = {"ottla.inspect.listeners": "http://127.0.0.1:0", "ottla.inspect.traffic.enable": "true"}
"""Settings of a node with a console, where they are not set otherwise: the console shows what only the node knows."""


class CannotServe(Exception):
    """The node could not start; the text is for users."""


class Companion(Protocol):
    """What runs beside a node and ends with it."""

    def close(self) -> None: ...


Beside = Callable[[str], Companion]
"""Starts a companion when the node serves; it is given the address for clients that need no login."""


def run(
    places: Sequence[Mapping[str, str]],
    *,
    port: int,
    is_ephemeral: bool,
    verbosity: int,
    out: TextIO,
    beside: Beside | None = None,
) -> int:
    """Run a node until a signal ends it; returns the exit code."""
    began = time.monotonic()
    has_dirs = any(name in place for place in places for name in ("log.dirs", "log.dir"))
    if has_dirs and not is_ephemeral:
        return run_node(NodeConfig(*places, port=port), verbosity=verbosity, out=out, began=began, beside=beside)
    import shutil
    import tempfile

    path = tempfile.mkdtemp(prefix="ottla-")
    try:
        config = NodeConfig(*places, {"log.dirs": path}, port=port)
        disk = OsDisk(durable=False)
        return run_node(config, disk=disk, verbosity=verbosity, out=out, began=began, beside=beside)
    finally:
        shutil.rmtree(path, ignore_errors=True)


def run_node(
    config: NodeConfig,
    *,
    verbosity: int,
    out: TextIO,
    began: float,
    disk: Disk | None = None,
    dial: Dial = dial,
    beside: Beside | None = None,
) -> int:
    """Run a node with all of its settings. `dial` connects to other nodes; tests have another."""
    _set_up_logging(verbosity)
    for warning in config.warnings():
        log.warning("%s", warning)
    raise_limit()
    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(_serve(config, disk, dial, out, began, beside))


def new_loop() -> asyncio.AbstractEventLoop:
    """uvloop's event loop, which needs a fifth less time for a request; where there is none, as on Windows, one of
    Python's that can watch sockets."""
    try:
        uvloop = import_module("uvloop")
    except ImportError:
        return asyncio.SelectorEventLoop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


async def _serve(
    config: NodeConfig, disk: Disk | None, dial: Dial, out: TextIO, began: float, beside: Beside | None
) -> int:
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[int] = loop.create_future()

    def end(code: int) -> None:
        if not ended.done():
            ended.set_result(code)

    listener = "" if beside is None else _open_listener(config)
    for number in (signal.SIGTERM, signal.SIGINT):
        _on_signal(loop, number, lambda: end(0))
    gc.disable()  # what a start leaves is small, and looking for it takes long where there are many partitions
    try:
        node = await _start(Node.start(config, disk=disk, dial=dial, on_fatal=lambda _: end(_EXIT_FAILED)), ended)
        gc.freeze()
    finally:
        gc.enable()
    if node is None:
        return 0
    _say_ready(node, out, began)
    companion = None if beside is None else beside(_address(node.advertised[listener]))
    code = await ended
    if companion is not None:
        companion.close()
    if code == 0:
        await node.stop()
    else:
        await node.kill()  # nothing can be written any more; threads that wait for the disk end before the loop
    return code


async def _start(start: Coroutine[Any, Any, Node], ended: asyncio.Future[int]) -> Node | None:
    """Start, unless a signal comes first; returns the node if it serves."""
    starting = asyncio.ensure_future(start)
    either: list[asyncio.Future[Any]] = [starting, ended]
    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    if not starting.done():
        starting.cancel()
    try:
        return await starting
    except asyncio.CancelledError:
        return None
    except (StartError, StorageProblem, MetadataLogError, QuorumError, StoredStateError, ConfigError) as error:
        raise CannotServe(str(error)) from None
    except StorageError as error:
        raise CannotServe(f"the disk failed: {error}") from None


def _on_signal(loop: asyncio.AbstractEventLoop, number: int, step: Callable[[], None]) -> None:
    try:
        loop.add_signal_handler(number, step)
    except NotImplementedError:  # Windows
        signal.signal(number, lambda *_: loop.call_soon_threadsafe(step))


def _say_ready(node: Node, out: TextIO, began: float) -> None:
    listeners = " ".join(str(each) for each in node.advertised.values())
    ports = {"metrics": node.metrics_port, "inspect": node.inspect_port}
    pages = "".join(f" {name}={port}" for name, port in ports.items() if port is not None)
    took_ms = (time.monotonic() - began) * 1000
    out.write(
        f"ottla ready {listeners} node={node.node_id} cluster={node.cluster_id} "
        f"data={','.join(node.config.log_dirs)}{pages} ms={took_ms:.0f}\n"
    )
    out.flush()


def _address(listener: ListenerConfig) -> str:
    return str(listener).partition("://")[2]


def _open_listener(config: NodeConfig) -> str:
    """The listener where a client on this machine gets in without TLS and without a login."""
    for each in config.client_listeners:
        if not each.has_tls and not each.has_sasl:
            return each.name
    raise CannotServe("the console of a node needs a PLAINTEXT listener; run 'ottla console --command-config FILE'")


class LineFormatter(logging.Formatter):
    """Each message on one line: clients choose the names in some of them."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s.%(msecs)03d %(levelname)s %(name)s %(message)s", "%H:%M:%S")

    def formatMessage(self, record: logging.LogRecord) -> str:
        record.message = printable(record.message)
        return super().formatMessage(record)


def _set_up_logging(verbosity: int) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter())
    handler.addFilter(DeduplicationFilter(exempt=frozenset({REQUESTS})))
    root = logging.getLogger("ottla")
    root.addHandler(handler)
    root.setLevel(logging.DEBUG if verbosity > 1 else logging.INFO)
    logging.getLogger(REQUESTS).setLevel(logging.INFO if verbosity else logging.WARNING)
    logging.getLogger(AUDIT).setLevel(logging.INFO)
