"""The network of a simulated cluster: machines, the links between them, and connections as TCP makes them.

A link is one way. What is sent on a connection arrives in order, after the link's delay. While a link is cut nothing
arrives: it is kept, as TCP keeps it, and arrives some time after the link is healed; a connection that is begun stays
in progress. Only a machine on which nobody listens refuses a connection. A machine without power is cut off, and
forgets its connections without a word; whoever goes on to talk to it is told so (a reset) when it is back.
"""

from __future__ import annotations

import contextvars
import errno
import os
import socket
from collections import deque
from collections.abc import Iterable
from itertools import count
from random import Random
from typing import Any, Final, NamedTuple

from simulation.cluster.loop import ClusterLoop
from simulation.cluster.processes import CURRENT, Process

__all__ = ["NOBODY", "Link", "Network", "Socket"]

_CLOSED: Final = -1
_BUFFER_BYTES: Final = 1 << 20
_RETRANSMIT_S: Final = 0.2
"""How long it takes at most until TCP notices that a link works again."""


class Link(NamedTuple):
    """The way from one host to another."""

    source: str
    target: str


class _Signal:
    """What a segment without data says."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


_CONNECT, _CONNECTED, _END, _RESET = map(_Signal, ("connect", "connected", "end", "reset"))
NOBODY: Final = contextvars.Context()
"""The context of what belongs to no process."""


class Network:
    """All hosts, links, and connections."""

    def __init__(self, loop: ClusterLoop, random: Random) -> None:
        self.loop = loop
        loop.network = self
        self.random = random
        self.delay_ms = (0.1, 1.0)
        self.slow_ms: dict[Link, float] = {}
        """Links that take this much longer."""
        self._cut: dict[Link, None] = {}
        self._down: dict[str, None] = {}
        """Hosts without power."""
        self._held: list[_Stream] = []
        self._listening: dict[int, Socket] = {}
        self._addresses: dict[str, str] = {}
        """What listeners are told of those who connect."""
        self.sockets: dict[int, Socket] = {}
        self._numbers = count(1000)
        self.hosts: dict[int, str] = {}
        """Whose port it is, whether or not anybody listens there."""

    # --- faults -------------------------------------------------------------------------------------------------------

    def cut(self, links: Iterable[Link]) -> None:
        self._cut.update(dict.fromkeys(links))

    def heal(self) -> None:
        """Mend all links."""
        self._cut.clear()
        self.slow_ms.clear()
        self._let_go()

    def power_off(self, host: str) -> None:
        """Nothing comes from a host or to it any more, and it has no connections."""
        self._down[host] = None
        for sock in [each for each in self.sockets.values() if each.host == host]:
            sock.vanish()

    def power_on(self, host: str) -> None:
        self._down.pop(host, None)
        self._let_go()

    def end_process(self, process: Process) -> None:
        """Close the sockets of a process, as the kernel does."""
        for sock in [each for each in self.sockets.values() if each.owner is process]:
            sock.close()

    def reset_some(self, link: Link) -> int:
        """Break the connections between two hosts; returns how many."""
        found = [each for each in self.sockets.values() if each.other is not None and each.link == link]
        for sock in found:
            other = sock.other
            assert other is not None
            sock.receive(_RESET)
            other.receive(_RESET)
        return len(found)

    def _let_go(self) -> None:
        held, self._held = self._held, []
        for stream in held:
            stream.retransmit()

    def carries(self, link: Link) -> bool:
        return link not in self._cut and link.source not in self._down and link.target not in self._down

    def delay_s(self, link: Link) -> float:
        return (self.random.uniform(*self.delay_ms) + self.slow_ms.get(link, 0)) / 1000

    def hold(self, stream: _Stream) -> None:
        self._held.append(stream)

    # --- sockets ------------------------------------------------------------------------------------------------------

    def bind(self, host: str, port: int, backlog: int = 0) -> Any:  # noqa: ANN401 - stands for a socket
        """A listening socket of the process that runs."""
        process = CURRENT.get()
        assert process is not None
        if port in self._listening:
            raise OSError(errno.EADDRINUSE, f"cannot listen on {host}:{port}: Address already in use")
        sock = self._listening[port] = self._new_socket((host, port), process)
        return sock

    def dial(self, address: tuple[str, int]) -> Any:  # noqa: ANN401 - stands for a socket
        """Begin a connection of the process that runs."""
        process = CURRENT.get()
        assert process is not None
        host = self._addresses.setdefault(process.host, f"10.0.1.{len(self._addresses) + 1}")
        sock = self._new_socket((host, next(self._numbers)), process)
        sock.is_connecting = True
        sock.port = address[1]
        sock.out = _Stream(self, Link(process.host, self.hosts[address[1]]), sock)
        sock.out.put(_CONNECT)
        return sock

    def arrive(self, sender: Socket, stream: _Stream, item: bytes | _Signal) -> None:
        """A segment has reached the other end."""
        if item is _CONNECT:
            self._accept(sender, stream.link)
            return
        target = sender.other
        if target is None or target.fileno() == _CLOSED:
            if item is not _RESET and sender.fileno() != _CLOSED:
                back = _Stream(self, Link(stream.link.target, stream.link.source), None, to=sender)
                back.put(_RESET)
            return
        target.receive(item)

    def _accept(self, client: Socket, link: Link) -> None:
        listening = self._listening.get(client.port)
        back = Link(link.target, link.source)
        if listening is None:
            _Stream(self, back, None, to=client).put(_RESET)
            return
        server = self._new_socket(listening.address, listening.owner)
        server.other, client.other = client, server
        server.out = _Stream(self, back, server)
        server.out.put(_CONNECTED)
        listening.incoming.append(server)
        listening.note_readable()

    def _new_socket(self, address: tuple[str, int], owner: Process) -> Socket:
        number = next(self._numbers)
        sock = self.sockets[number] = Socket(self, number, address, owner)
        return sock

    def forget(self, sock: Socket) -> None:
        """A socket was closed."""
        self.sockets.pop(sock.fileno(), None)
        self.loop.forget_socket(sock.fileno())
        if self._listening.get(sock.address[1]) is sock:
            del self._listening[sock.address[1]]


class _Stream:
    """What one end of a connection sends, on its way."""

    __slots__ = ("_last_at_s", "_network", "_queue", "_sender", "_target", "link", "unread_bytes")

    def __init__(self, network: Network, link: Link, sender: Socket | None, to: Socket | None = None) -> None:
        self._network = network
        self.link = link
        self._sender = sender
        self._target = to
        """Whom it is for if nobody has sent it: the other end has no connection any more."""
        self._queue: deque[tuple[float, bytes | _Signal]] = deque()
        self._last_at_s = 0.0
        self.unread_bytes = 0
        """Sent, and not received by the other end's program."""

    def put(self, item: bytes | _Signal) -> None:
        network = self._network
        at_s = max(self._last_at_s, network.loop.time() + network.delay_s(self.link))
        self._last_at_s = at_s
        self._queue.append((at_s, item))
        if not isinstance(item, _Signal):
            self.unread_bytes += len(item)
        if len(self._queue) == 1:
            self._expect()

    def _expect(self) -> None:
        self._network.loop.call_at(self._queue[0][0], self._arrive, context=NOBODY)

    def _arrive(self) -> None:
        network, queue = self._network, self._queue
        if not network.carries(self.link):
            network.hold(self)
            return
        now_s = network.loop.time()
        while queue and queue[0][0] <= now_s:
            _, item = queue.popleft()
            if self._sender is not None:
                network.arrive(self._sender, self, item)
            elif self._target is not None:
                self._target.receive(item)
        if queue:
            self._expect()

    def clear(self) -> None:
        self._queue.clear()

    def abort(self) -> None:
        """What could not be sent is not sent any more. What is on its way arrives."""
        if not self._network.carries(self.link):
            self._queue.clear()

    def stall(self, seconds: float) -> None:
        """What is sent from now on arrives later, as after lost segments."""
        self._last_at_s = max(self._last_at_s, self._network.loop.time() + seconds)

    def retransmit(self) -> None:
        """The link may work again."""
        network = self._network
        if not self._queue:
            return
        now_s = network.loop.time()
        at_s = now_s + network.delay_s(self.link) + network.random.uniform(0, _RETRANSMIT_S)
        self._queue = deque((max(at_s, due_s), item) for due_s, item in self._queue)
        self._last_at_s = max(self._last_at_s, at_s)
        self._expect()


class Socket:
    """One end of a connection, or a listening socket; has what the broker calls of a socket."""

    def __init__(self, network: Network, number: int, address: tuple[str, int], owner: Process) -> None:
        self._network = network
        self._number = number
        self.address = address
        self.owner = owner
        self.host = owner.host
        self.port = 0
        """Where it connects to."""
        self.out: _Stream | None = None
        self.other: Socket | None = None
        self.incoming: deque[Socket] = deque()
        self.is_connecting = False
        self._aborts = False
        self._received = bytearray()
        self._has_ended = False
        self.error = 0

    @property
    def link(self) -> Link:
        assert self.out is not None
        return self.out.link

    # --- the network's side -------------------------------------------------------------------------------------------

    def receive(self, item: bytes | _Signal) -> None:
        if self._number == _CLOSED:
            return
        if item is _CONNECTED:
            self.is_connecting = False
        elif item is _END:
            self._has_ended = True
        elif item is _RESET:
            self.error = errno.ECONNREFUSED if self.is_connecting else errno.ECONNRESET
            self.is_connecting = False
            self._has_ended = True
            self._received.clear()
        else:
            assert not isinstance(item, _Signal)
            self._received += item
        self.note_readable()

    def note_readable(self) -> None:
        readable = self._network.loop.readable
        if self.is_readable:
            readable[self._number] = self
        else:
            readable.pop(self._number, None)

    def stall(self, seconds: float) -> None:
        assert self.out is not None
        self.out.stall(seconds)

    def vanish(self) -> None:
        """Its machine has lost power; what it has sent and not yet arrived is lost."""
        if self.out is not None:
            self.out.clear()
        self._network.forget(self)
        self._number = _CLOSED

    # --- the program's side -------------------------------------------------------------------------------------------

    @property
    def is_readable(self) -> bool:
        return bool(self._received or self.incoming or (self._has_ended and not self.is_connecting))

    @property
    def is_writable(self) -> bool:
        if self.is_connecting:
            return False
        return bool(self.error) or self.out is None or self.out.unread_bytes < _BUFFER_BYTES

    def fileno(self) -> int:
        return self._number

    def getsockname(self) -> tuple[str, int]:
        return self.address

    def getsockopt(self, *_: int) -> int:
        """The error of connecting; nothing else is asked for."""
        return self.error

    def setblocking(self, flag: bool) -> None:
        """It never blocks."""

    def setsockopt(self, level: int, option: int, value: Any) -> None:  # noqa: ANN401
        """Of all options only that to abort has an effect."""
        self._aborts = self._aborts or option == socket.SO_LINGER

    def accept(self) -> tuple[Socket, tuple[str, int]]:
        if not self.incoming:
            raise BlockingIOError
        sock = self.incoming.popleft()
        self.note_readable()
        assert sock.other is not None
        return sock, sock.other.address

    def recv(self, size: int) -> bytes:
        if not self._received:
            if self.error:
                raise OSError(self.error, os.strerror(self.error))
            if self._has_ended:
                return b""
            raise BlockingIOError
        data = bytes(self._received[:size])
        del self._received[:size]
        if self.other is not None and self.other.out is not None:
            self.other.out.unread_bytes -= len(data)
        if not self._received:
            self.note_readable()
        return data

    def recv_into(self, buffer: memoryview) -> int:
        data = self.recv(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def send(self, data: bytes | bytearray | memoryview, flags: int = 0) -> int:
        if self._number == _CLOSED:
            raise OSError(errno.EBADF, "the socket is closed")
        if self.error:
            raise OSError(self.error, os.strerror(self.error))
        if not self.is_writable:
            raise BlockingIOError
        assert self.out is not None
        self.out.put(bytes(data))
        return len(data)

    def close(self) -> None:
        if self._number == _CLOSED:
            return
        self._network.forget(self)
        self._number = _CLOSED
        for sock in self.incoming:
            sock.close()
        if self.out is not None and not self.error:
            if self._aborts:
                self.out.abort()
            self.out.put(_RESET if self._received or self._aborts else _END)
