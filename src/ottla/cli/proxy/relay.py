"""The proxy's sockets: each client connection gets one to the broker, and bytes are relayed with backpressure.

Each direction is one task that reads a piece, writes it to the other side and waits until that side has taken most of
it. Meanwhile nothing is read, so the kernel's buffers fill and the sender slows down: each direction has at most two
pieces, the other side's write buffer and the session's `hold_bytes` in memory.
"""

import asyncio
import errno
import os
import time
from collections.abc import Coroutine, Iterable
from itertools import count
from typing import Any, NamedTuple, Protocol

from ottla.cli.proxy.address import Address
from ottla.cli.proxy.fronts import Front, Fronts
from ottla.cli.proxy.session import Session
from ottla.explain.exchanges import Exchange, Side

PIECE_BYTES = 256 * 1024
CONNECT_TIMEOUT_S = 10
LINGER_S = 10
"""How long the broker may send responses after the client has closed its side."""


Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Link(NamedTuple):
    """A proxied connection, for watchers."""

    number: int
    client: Address
    broker: Address
    """The real address of the broker."""
    upstream: Address
    """The broker's address that the cluster advertises."""
    node_id: int | None


class Watcher(Protocol):
    """Observes the traffic. Every call is made on the event loop and must be quick."""

    def front_opened(self, front: Front) -> None: ...

    def front_missing(self, upstream: Address) -> None:
        """There are too many fronts: clients will bypass the proxy for this address."""

    def connected(self, link: Link, at_ns: int) -> None: ...

    def moved(self, link: Link, sender: Side, data: bytes, at_ns: int) -> None:
        """Bytes as their sender sent them."""

    def exchanged(self, link: Link, exchanges: Iterable[Exchange]) -> None: ...

    def turned_foreign(self, link: Link, sender: Side, why: str) -> None: ...

    def closed(self, link: Link, at_ns: int) -> None: ...

    def refused(self, front: Front, why: str) -> None:
        """A client has connected, but the broker could not be reached."""


class Relay:
    """All connections of the proxy. Must be created inside a running event loop."""

    def __init__(self, listen: Address, upstream: Address, watcher: Watcher, *, hold_bytes: int) -> None:
        self._watcher = watcher
        self._hold_bytes = hold_bytes
        self._tasks: set[asyncio.Task[None]] = set()
        self._numbers = count(1)
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Gets the exception of a task that failed because of a bug, not because of the network or a peer."""
        self.fronts = Fronts(listen, upstream, self._opened, watcher.front_missing)

    @property
    def at(self) -> Address:
        """The address for clients."""
        return self.fronts.first.at

    async def close(self) -> None:
        """Close all connections and ports."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.fronts.close()

    def _opened(self, front: Front) -> None:
        self._watcher.front_opened(front)
        self._run(self._accept(front))

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None and not self.failed.done():
            self.failed.set_exception(error)

    async def _accept(self, front: Front) -> None:
        async def come(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self._run(self._serve(front, reader, writer))

        server = await asyncio.start_server(come, sock=front.listener, limit=PIECE_BYTES)
        await server.serve_forever()

    async def _serve(self, front: Front, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            broker = await _connect(front.upstream)
        except OSError as refusal:
            self._watcher.refused(front, str(refusal.strerror or refusal) or "no response")
            writer.transport.abort()
            return
        seen_as = writer.get_extra_info("sockname")[0]

        def mapping(host: str, port: int, node_id: int) -> tuple[str, int]:
            return self.fronts.front_of(host, port, node_id, seen_as)

        session = Session(mapping, hold_bytes=self._hold_bytes)
        link = Link(next(self._numbers), _peer(writer), _peer(broker[1]), front.upstream, front.node_id)
        await _Connection(link, session, self._watcher, (reader, writer), broker).run()


class _Connection:
    """The sockets of one link and the two tasks between them."""

    def __init__(self, link: Link, session: Session, watcher: Watcher, client: Stream, broker: Stream) -> None:
        self._link = link
        self._session = session
        self._watcher = watcher
        self._from_client, self._to_client = client
        self._from_broker, self._to_broker = broker
        self._reported: set[Side] = set()

    async def run(self) -> None:
        """Run until one side has closed and the other had time to finish. Raises exceptions that are bugs of ours."""
        self._watcher.connected(self._link, now_ns())
        up = asyncio.create_task(self._upward())
        down = asyncio.create_task(self._downward())
        try:
            await asyncio.wait({up, down}, return_when=asyncio.FIRST_COMPLETED)
            if not down.done() and up.exception() is None:
                await asyncio.wait({down}, timeout=LINGER_S)
        except asyncio.CancelledError:
            # The proxy ends: do not wait for peers that have not read everything.
            self._to_client.transport.abort()
            self._to_broker.transport.abort()
            raise
        finally:
            up.cancel()
            down.cancel()
            results = await asyncio.gather(up, down, return_exceptions=True)
            await self._end()
        for result in results:
            if isinstance(result, Exception) and not isinstance(result, OSError):
                raise result

    async def _end(self) -> None:
        writers = (self._to_client, self._to_broker)
        for writer in writers:
            writer.close()
        self._watcher.exchanged(self._link, self._session.close())
        self._watcher.closed(self._link, now_ns())
        await asyncio.gather(*map(_closed, writers))

    async def _upward(self) -> None:
        while data := await self._from_client.read(PIECE_BYTES):
            at_ns = now_ns()
            self._to_broker.write(data)  # forward it first, then decode it
            self._watcher.moved(self._link, Side.CLIENT, data, at_ns)
            self._watcher.exchanged(self._link, self._session.from_client(data, at_ns))
            self._report_foreign(Side.CLIENT)
            await self._to_broker.drain()
        self._to_broker.write_eof()

    async def _downward(self) -> None:
        while data := await self._from_broker.read(PIECE_BYTES):
            at_ns = now_ns()
            passed = self._session.from_broker(data, at_ns)
            self._to_client.writelines(passed.forward)
            self._watcher.moved(self._link, Side.BROKER, data, at_ns)
            self._watcher.exchanged(self._link, passed.exchanges)
            self._report_foreign(Side.BROKER)
            await self._to_client.drain()

    def _report_foreign(self, sender: Side) -> None:
        if sender in self._session.foreign and sender not in self._reported:
            self._reported.add(sender)
            self._watcher.turned_foreign(self._link, sender, self._session.foreign[sender])


async def _connect(address: Address) -> Stream:
    async with asyncio.timeout(CONNECT_TIMEOUT_S):
        reader, writer = await asyncio.open_connection(address.host, address.port, limit=PIECE_BYTES)
    if writer.get_extra_info("peername") is None:  # it has been reset already
        writer.transport.abort()
        raise ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))
    return reader, writer


async def _closed(writer: asyncio.StreamWriter) -> None:
    """Wait until the last bytes are sent, unless the other side does not read them."""
    try:
        async with asyncio.timeout(LINGER_S):
            await writer.wait_closed()
    except OSError:  # reset, or too slow
        writer.transport.abort()


def _peer(writer: asyncio.StreamWriter) -> Address:
    host, port, *_ = writer.get_extra_info("peername")
    return Address(host, port)


_WALL_NS = time.time_ns() - time.monotonic_ns()


def now_ns() -> int:
    """The time of day, which never goes back, because latencies are differences of it."""
    return _WALL_NS + time.monotonic_ns()
