"""The links between the nodes of a cluster: a relay between each two of them, which can be cut.

Each node reaches each other one by a port of its own, so the relay knows who speaks to whom. What it does is what a
network does:

* Bytes pass as they come. When one end closes a connection, so does the relay at the other end.
* A port refuses connections as long as the node behind it does: the relay listens only while the node listens. It
  finds out when a connection is lost or cannot be made, and then asks every few milliseconds until the node is back.
* What a cut direction carries stays on its way, the news that a connection has ended included: TCP would send it again
  and again. Connections come about, as seen from the node that wants one, but nothing is ever heard on them. When the
  link is healed everything arrives.

A direction is a pair of node ids, sender first. The relay is a process of its own (`python -m
ottla.testing.clusters.relay`), since a test that computes would hold up nodes that must answer in time.
"""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Iterable
from typing import Final

from ottla.testing.children import answer, orders
from ottla.testing.ports import LOOPBACK, PortReservation

__all__ = ["Direction", "Relay", "RelayLink"]

PROBE_SECONDS: Final = 0.02
_PIECE_BYTES: Final = 1 << 16
_BACKLOG: Final = 128

Address = tuple[str, int]
Direction = tuple[int, int]


class _Target:
    """The listener of a node: does it take connections?"""

    def __init__(self, address: Address) -> None:
        self.address = address
        self.is_up = False
        self.links: list[RelayLink] = []
        self._probing: asyncio.Task[None] | None = None

    async def connect(self) -> socket.socket | None:
        """A connection to the node; None if it refuses, and then so do the links to it."""
        loop = asyncio.get_running_loop()
        sock = _new_socket()
        try:
            await loop.sock_connect(sock, self.address)
        except OSError:
            sock.close()
            self.now_down()
            return None
        except BaseException:
            sock.close()
            raise
        return sock

    async def check(self) -> None:
        """Find out whether the node has ended."""
        sock = await self.connect()
        if sock is not None:
            sock.close()

    def now_down(self) -> None:
        self.is_up = False
        for link in self.links:
            link.follow()
        if self._probing is None:
            self._probing = asyncio.get_running_loop().create_task(self._probe())

    async def _probe(self) -> None:
        while (sock := await self.connect()) is None:  # noqa: ASYNC110 - nobody tells us
            await asyncio.sleep(PROBE_SECONDS)
        sock.close()
        self._probing = None
        self.is_up = True
        for link in self.links:
            link.follow()


class _Gates:
    """Which directions are open."""

    def __init__(self) -> None:
        self.cut: frozenset[Direction] = frozenset()
        self._changed = asyncio.Event()

    def set(self, cut: Iterable[Direction]) -> None:
        self.cut = frozenset(cut)
        self._changed.set()
        self._changed = asyncio.Event()

    async def passed(self, *directions: Direction) -> None:
        """Wait until all of these are open."""
        while not self.cut.isdisjoint(directions):
            await self._changed.wait()


class RelayLink:
    """The way of one node to one listener of another."""

    def __init__(self, source: int, target: int, to: _Target, gates: _Gates, place: PortReservation) -> None:
        self.there: Direction = (source, target)
        self.back: Direction = (target, source)
        self._to = to
        self._gates = gates
        self._place = place
        self.port = place.port
        self._accepting: asyncio.Task[None] | None = None
        self._connections: set[asyncio.Task[None]] = set()
        to.links.append(self)

    def follow(self) -> None:
        """Listen if the node behind does, or if nobody can know that it does not."""
        is_cut = bool(self._gates.cut & {self.there, self.back})
        if is_cut or self._to.is_up:
            if self._accepting is None:
                self._listen()
        elif self._accepting is not None:
            self._accepting.cancel()
            self._accepting = None
            self._place.renew()

    def _listen(self) -> None:
        self._place.release()
        listener = _new_socket()
        listener.bind((self._place.host, self.port))
        listener.listen(_BACKLOG)
        self._accepting = asyncio.get_running_loop().create_task(self._accept(listener))

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        with listener:
            while True:
                sock, _ = await loop.sock_accept(listener)
                task = loop.create_task(self._carry(sock))
                self._connections.add(task)
                task.add_done_callback(self._connections.discard)

    async def _carry(self, near: socket.socket) -> None:
        with near:
            near.setblocking(False)
            near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await self._gates.passed(self.there, self.back)
            far = await self._to.connect()
            if far is None:
                return
            with far:
                far.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                there = asyncio.ensure_future(self._pass_on(near, far, self.there, self.back))
                back = asyncio.ensure_future(self._pass_on(far, near, self.back, self.there))
                try:
                    await asyncio.wait((there, back), return_when=asyncio.FIRST_COMPLETED)
                    if back.done():  # refuse the next connection before this one is closed, as a dead node does
                        await self._to.check()
                finally:
                    for task in (there, back):
                        task.cancel()
                    await asyncio.gather(there, back, return_exceptions=True)

    async def _pass_on(self, one: socket.socket, other: socket.socket, way: Direction, reverse: Direction) -> None:
        """Carry bytes in one direction until the connection ends, as far as the other end can know."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                piece = await loop.sock_recv(one, _PIECE_BYTES)
            except OSError:
                piece = b""
            await self._gates.passed(way)
            if not piece:
                return
            try:
                await loop.sock_sendall(other, piece)
            except OSError:  # the receiver is gone, which it could only say in the other direction
                await self._gates.passed(reverse)
                return


class Relay:
    """All links of a cluster."""

    def __init__(self) -> None:
        self._gates = _Gates()
        self._targets: dict[Address, _Target] = {}
        self._links: list[RelayLink] = []

    def add(self, source: int, target: int, address: Address, begin: Address = (LOOPBACK, 0)) -> int:
        """A way from one node to a listener of another; gives the port where it begins, a free one if that is 0."""
        to = self._targets.setdefault(address, _Target(address))
        host, port = begin
        link = RelayLink(source, target, to, self._gates, PortReservation(port, host))
        self._links.append(link)
        to.now_down()  # until it is found to listen
        return link.port

    def set_cut(self, cut: Iterable[Direction]) -> None:
        """These directions are cut from now on, and no others."""
        self._gates.set(cut)
        for link in self._links:
            link.follow()


def _new_socket() -> socket.socket:
    sock = socket.socket()
    sock.setblocking(False)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return sock


async def serve() -> None:
    """Take orders: `{"links": [[source, target, [host, port]], …]}` gives their ports, `{"cut": [[1, 2], …]}` cuts.

    A link may have a fourth entry, the host and the port where it begins.
    """
    relay = Relay()
    async for order in orders():
        if "links" in order:
            ports = [relay.add(one, other, *map(tuple, ends)) for one, other, *ends in order["links"]]
            answer(value=ports)
        else:
            relay.set_cut((one, other) for one, other in order["cut"])
            answer(value=None)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for who started us: the nodes stop in order, and need us
    asyncio.run(serve())
