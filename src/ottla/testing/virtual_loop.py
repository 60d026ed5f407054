"""An event loop on virtual time, with sockets in memory: a whole node runs in it without threads or a network.

When nothing is ready the clock jumps to the next timer, so an hour passes at once and a run can be repeated. Work in
threads is done at once (`InlineOffload`), and its callback runs in the next turn of the loop.
"""

from __future__ import annotations

import asyncio
import errno
from collections import deque
from collections.abc import Callable
from itertools import count
from typing import Any, Final

from ottla.testing.clock import WALL_START_MS

__all__ = ["InlineOffload", "LoopClock", "VirtualLoop", "VirtualSocket", "watch_socket"]

_CLOSED: Final = -1
_BUFFER_BYTES: Final = 1 << 20


class LoopClock:
    """The clocks of a node in a virtual loop."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop

    def monotonic_ms(self) -> int:
        return int(self._loop.time() * 1000)

    def wall_ms(self) -> int:
        return WALL_START_MS + self.monotonic_ms()

    def precise_ns(self) -> int:
        return int(self._loop.time() * 1e9)

    def precise_s(self) -> float:
        return self._loop.time()


class VirtualLoop(asyncio.BaseEventLoop):
    """An event loop whose time is virtual, and a network in memory."""

    def __init__(self) -> None:
        super().__init__()
        self._selector = self
        self._now_s = 0.0
        self._clock_resolution = 1e-6
        self._sockets: dict[int, VirtualSocket] = {}
        self._listening: dict[int, VirtualSocket] = {}
        self._readers: dict[int, asyncio.Handle] = {}
        self._writers: dict[int, asyncio.Handle] = {}
        self._numbers = count(1000)
        self.clock = LoopClock(self)

    # --- time ---------------------------------------------------------------------------------------------------------

    def time(self) -> float:
        return self._now_s

    def stand_still(self, seconds: float) -> None:
        """Time passes, and nothing runs meanwhile: the machine was too busy."""
        self._now_s += seconds

    def select(self, timeout: float | None) -> list[asyncio.Handle]:
        """What is ready; if nothing is, time passes until the next timer."""
        ready = [handle for number, handle in self._readers.items() if self._sockets[number].is_readable]
        ready += [handle for number, handle in self._writers.items() if self._sockets[number].is_writable]
        if not ready:
            if timeout is None:
                raise RuntimeError("everything waits, and nothing will happen any more")
            self._now_s += timeout
        return ready

    def _process_events(self, events: list[asyncio.Handle]) -> None:
        for handle in events:
            self._ready.append(handle)  # type: ignore[attr-defined]

    def _write_to_self(self) -> None:
        """There are no threads to be woken by."""

    # --- sockets ------------------------------------------------------------------------------------------------------

    def add_reader(self, fd: int, callback: Callable[..., Any], *args: object) -> None:  # type: ignore[override]
        watch_socket(self._readers, fd, asyncio.Handle(callback, args, self))

    def remove_reader(self, fd: int) -> bool:  # type: ignore[override]
        return watch_socket(self._readers, fd, None)

    def add_writer(self, fd: int, callback: Callable[..., Any], *args: object) -> None:  # type: ignore[override]
        watch_socket(self._writers, fd, asyncio.Handle(callback, args, self))

    def remove_writer(self, fd: int) -> bool:  # type: ignore[override]
        return watch_socket(self._writers, fd, None)

    def bind(self, host: str, port: int, backlog: int = 0) -> Any:  # noqa: ANN401 - stands for a socket
        """A listening socket, as `ottla.broker.network.listener.bind` gives one."""
        port = port or next(number for number in self._numbers if number not in self._listening)
        if port in self._listening:
            raise OSError(98, f"cannot listen on {host}:{port}: Address already in use")
        sock = self._listening[port] = self._new_socket((host, port))
        return sock

    def connect(self, port: int) -> VirtualSocket:
        """A client's end of a new connection. ConnectionRefusedError if nobody listens."""
        if port not in self._listening:
            raise ConnectionRefusedError(f"nobody listens on port {port}")
        client, server = (self._new_socket(("127.0.0.1", next(self._numbers))) for _ in range(2))
        client.other, server.other = server, client
        self._listening[port].incoming.append(server)
        return client

    def dial(self, address: tuple[str, int]) -> Any:  # noqa: ANN401 - stands for a socket
        """Begin a connection to a listening socket, as `ottla.broker.peers.peer_connection.dial` does."""
        try:
            return self.connect(address[1])
        except ConnectionRefusedError:
            refused = self._new_socket(address)
            refused.error = errno.ECONNREFUSED
            return refused

    def _new_socket(self, address: tuple[str, int]) -> VirtualSocket:
        number = next(self._numbers)
        self._sockets[number] = VirtualSocket(self, number, address)
        return self._sockets[number]

    def forget(self, sock: VirtualSocket) -> None:
        """A socket was closed."""
        self._sockets.pop(sock.fileno(), None)
        if self._listening.get(sock.address[1]) is sock:
            del self._listening[sock.address[1]]


def watch_socket(handles: dict[int, asyncio.Handle], fd: int, handle: asyncio.Handle | None) -> bool:
    """Watch a socket with another handle, or none; the former one does not run any more, even if it is due."""
    former = handles.pop(fd, None)
    if former is not None:
        former.cancel()
    if handle is not None:
        handles[fd] = handle
    return former is not None


class VirtualSocket:
    """One end of a connection in memory, or a listening socket; has what the broker calls of a socket."""

    def __init__(self, loop: VirtualLoop, number: int, address: tuple[str, int]) -> None:
        self._loop = loop
        self._number = number
        self.address = address
        self.other: VirtualSocket | None = None
        self.incoming: deque[VirtualSocket] = deque()
        self._received = bytearray()
        self._is_ended = False
        self.is_cut = False
        """What is sent vanishes, in both directions if both ends are cut."""
        self.error = 0

    @property
    def is_readable(self) -> bool:
        return bool(self._received or self.incoming or self._is_ended)

    @property
    def is_writable(self) -> bool:
        return self.other is None or len(self.other._received) < _BUFFER_BYTES

    def fileno(self) -> int:
        return self._number

    def getsockname(self) -> tuple[str, int]:
        return self.address

    def getsockopt(self, *option: int) -> int:
        """The error of connecting; nothing else is asked for."""
        return self.error

    def setblocking(self, flag: bool) -> None:
        """It never blocks."""

    def setsockopt(self, *option: Any) -> None:  # noqa: ANN401
        """It has no options."""

    def accept(self) -> tuple[VirtualSocket, tuple[str, int]]:
        if not self.incoming:
            raise BlockingIOError
        sock = self.incoming.popleft()
        assert sock.other is not None
        return sock, sock.other.address

    def recv(self, size: int) -> bytes:
        if not self._received:
            if self._is_ended:
                return b""
            raise BlockingIOError
        data = bytes(self._received[:size])
        del self._received[:size]
        return data

    def recv_into(self, buffer: memoryview) -> int:
        data = self.recv(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def send(self, data: bytes | bytearray | memoryview, flags: int = 0) -> int:
        if self.other is None or self._is_ended:
            raise BrokenPipeError("the other end is closed")
        if not self.is_writable:
            raise BlockingIOError
        if not self.is_cut:
            self.other._received += data
        return len(data)

    def close(self) -> None:
        if self._number == _CLOSED:
            return
        self._loop.forget(self)
        self._number = _CLOSED
        if self.other is not None:
            self.other._is_ended = True
        for each in self.incoming:  # nobody will accept them
            each.close()


class _DoneJob:
    """Work that is done; its callback comes with the next turn, or when somebody waits for it."""

    def __init__(self, then: Callable[[], None]) -> None:
        self._then: Callable[[], None] | None = then

    @property
    def is_finished(self) -> bool:
        return self._then is None

    def finish(self) -> None:
        then, self._then = self._then, None
        if then is not None:
            then()


class InlineOffload:
    """Does at once what a node gives to threads."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._jobs: deque[_DoneJob] = deque()

    def __len__(self) -> int:
        return sum(not job.is_finished for job in self._jobs)

    def __call__(self, work: Callable[[], None], then: Callable[[], None]) -> Any:  # noqa: ANN401 - stands for a Job
        work()
        job = _DoneJob(then)
        self._jobs.append(job)
        self._loop.call_soon(self._finish_next)
        return job

    def _finish_next(self) -> None:
        if self._jobs:
            self._jobs.popleft().finish()

    def finish_all(self) -> None:
        while self._jobs:
            self._finish_next()

    def close(self) -> None:
        self.finish_all()
