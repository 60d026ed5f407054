"""The network and the processes of simulated clusters: what TCP does, and what a kill and a pause do."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

import pytest

from ottla.testing.trace import Violation
from simulation.cluster.loop import ClusterLoop
from simulation.cluster.network import Link, Network, Socket
from simulation.cluster.processes import Process, ProcessState

PORT = 9012


class Two:
    """A server and a client, each on a host of its own, and a connection between them."""

    def __init__(self) -> None:
        self.loop = ClusterLoop()
        self.network = Network(self.loop, Random(1))
        self.network.hosts[PORT] = "a"
        self.server, self.client = Process("server", "a"), Process("client", "b")
        self.listening: Socket
        self.sock: Socket
        self.accepted: Socket

    def run(self, scenario: Callable[[Two], Coroutine[Any, Any, None]]) -> None:
        try:
            self.loop.run_until_complete(scenario(self))
        finally:
            self.loop.close()

    async def do(self, process: Process, action: Callable[[], Any]) -> Any:
        """Run something in a process."""

        async def main() -> None:
            found.append(action())

        found: list[Any] = []
        await process.run(self.loop, main())
        return found[0]

    async def connect(self) -> None:
        self.listening = await self.do(self.server, lambda: self.network.bind("10.0.0.1", PORT))
        self.sock = await self.do(self.client, lambda: self.network.dial(("10.0.0.1", PORT)))
        await asyncio.sleep(0.1)
        self.accepted, _ = self.listening.accept()


def simulated(scenario: Callable[[Two], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    def test() -> None:
        Two().run(scenario)

    test.__doc__ = scenario.__doc__
    return test


@simulated
async def test_bytes_arrive_in_order(two: Two) -> None:
    await two.connect()
    for number in range(20):
        two.sock.send(bytes([number]))
    with pytest.raises(BlockingIOError):
        two.accepted.recv(100)
    await asyncio.sleep(0.1)
    assert two.accepted.recv(100) == bytes(range(20))


@simulated
async def test_a_cut_link_keeps_what_was_sent(two: Two) -> None:
    await two.connect()
    two.network.cut([Link("b", "a")])
    two.sock.send(b"question")
    two.accepted.send(b"the other way")
    await asyncio.sleep(60)
    assert not two.accepted.is_readable
    assert two.sock.recv(100) == b"the other way"
    two.network.heal()
    await asyncio.sleep(1)
    assert two.accepted.recv(100) == b"question"


@simulated
async def test_a_connection_over_a_cut_link_stays_in_progress(two: Two) -> None:
    two.network.cut([Link("b", "a")])
    sock = await two.do(two.client, lambda: two.network.dial(("10.0.0.1", PORT)))
    await asyncio.sleep(60)
    assert not sock.is_writable
    two.network.heal()
    await asyncio.sleep(1)
    assert sock.getsockopt() == errno.ECONNREFUSED, "nobody listens"


@simulated
async def test_a_killed_process_says_farewell_and_refuses(two: Two) -> None:
    await two.connect()
    two.accepted.send(b"last words")
    two.server.end()
    two.network.end_process(two.server)
    await asyncio.sleep(0.1)
    assert two.sock.recv(100) == b"last words"
    assert two.sock.recv(100) == b""
    two.sock.send(b"anybody?")
    await asyncio.sleep(0.1)
    with pytest.raises(ConnectionResetError):
        two.sock.send(b"anybody?")
    again = await two.do(two.client, lambda: two.network.dial(("10.0.0.1", PORT)))
    await asyncio.sleep(0.1)
    assert again.getsockopt() == errno.ECONNREFUSED


@simulated
async def test_a_machine_without_power_is_silent_and_resets_when_it_is_back(two: Two) -> None:
    await two.connect()
    two.accepted.send(b"never arrives")
    two.server.end()
    two.network.power_off("a")
    two.sock.send(b"anybody?")
    await asyncio.sleep(60)
    assert not two.sock.is_readable
    two.network.power_on("a")
    await asyncio.sleep(1)
    with pytest.raises(ConnectionResetError):
        two.sock.recv(100)


@simulated
async def test_connections_can_be_reset(two: Two) -> None:
    await two.connect()
    assert two.network.reset_some(Link("b", "a")) == 1
    for sock in (two.sock, two.accepted):
        with pytest.raises(ConnectionResetError):
            sock.recv(100)


@simulated
async def test_a_full_connection_blocks(two: Two) -> None:
    await two.connect()
    two.sock.send(bytes(1 << 20))
    with pytest.raises(BlockingIOError):
        two.sock.send(b"more")
    await asyncio.sleep(0.1)
    two.accepted.recv(1 << 19)
    assert two.sock.send(b"more") == 4


@simulated
async def test_nothing_of_a_dead_process_runs(two: Two) -> None:
    ran: list[str] = []

    async def main() -> None:
        two.loop.call_later(1, ran.append, "timer")
        try:
            await asyncio.sleep(1)
        finally:
            ran.append("task")

    two.client.run(two.loop, main())
    await asyncio.sleep(0.5)
    two.client.end()
    await asyncio.sleep(10)
    assert ran == []


@simulated
async def test_a_paused_process_goes_on_where_it_was(two: Two) -> None:
    await two.connect()
    ran: list[tuple[str, float]] = []
    loop = two.loop

    def prepare() -> None:
        loop.call_later(2, lambda: ran.append(("second", loop.time())))
        loop.call_later(1, lambda: ran.append(("first", loop.time())))
        loop.add_reader(two.accepted.fileno(), lambda: ran.append((str(two.accepted.recv(9)), loop.time())))

    await two.do(two.server, prepare)
    two.server.state = ProcessState.PAUSED
    two.sock.send(b"hello")
    another = await two.do(two.client, lambda: two.network.dial(("10.0.0.1", PORT)))
    await asyncio.sleep(10)
    assert ran == []
    assert another.is_writable, "the kernel accepts for it"
    now = loop.time()
    loop.resume(two.server)
    await asyncio.sleep(1)
    assert ran == [("first", now), ("second", now), ("b'hello'", now)]


def test_what_nobody_handles_ends_the_world() -> None:
    async def scenario(two: Two) -> None:
        two.loop.call_soon(lambda: 1 / 0)
        await asyncio.sleep(1)

    with pytest.raises(Violation, match="ZeroDivisionError"):
        Two().run(scenario)


@simulated
async def test_a_connection_that_stalls(two: Two) -> None:
    """What is sent arrives late and in order; other connections are as fast as ever."""
    await two.connect()
    two.sock.send(b"first, ")
    two.sock.stall(2.0)
    two.sock.send(b"second")
    await asyncio.sleep(1.0)
    assert two.accepted.recv(100) == b"first, "
    await asyncio.sleep(1.1)
    assert two.accepted.recv(100) == b"second"
