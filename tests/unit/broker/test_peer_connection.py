"""Connections from node to node, on virtual time."""

from __future__ import annotations

import asyncio
import itertools
import socket
import struct
from collections.abc import Generator
from typing import Any

import pytest

from ottla.broker.loop.randomness import Randomness
from ottla.broker.peers.peer_connection import Address, Login, PeerConnection, PeerError, PeerEvent, no_login
from ottla.testing.disk import VirtualDisk
from ottla.testing.virtual_loop import VirtualLoop, VirtualSocket
from ottla.wire.errors import ErrorCode
from ottla.wire.types import DescribeClusterRequest, DescribeQuorumRequest, SaslHandshakeRequest, VoteRequest
from tests.unit.broker.virtual_node import run, running


class Peer:
    """A connection to a node, what came back on it, and what it has told."""

    def __init__(self, loop: VirtualLoop, port: int = 9093, timeout_s: float = 2.0, login: Login = no_login) -> None:
        self.events: list[PeerEvent] = []
        self.connection = PeerConnection(
            loop,
            Address("127.0.0.1", port),
            "node-2",
            randomness=Randomness(lambda size: bytes(size)),
            told=self.events.append,
            dial=loop.dial,
            login=login,
            timeout_s=timeout_s,
        )
        self._loop = loop

    async def ask(self, request: object, versions: tuple[int, int]) -> Any:
        answered: asyncio.Future[Any] = self._loop.create_future()
        self.connection.send(request, versions, answered.set_result)
        return await answered


def test_requests_go_in_the_highest_version_that_both_know() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        async with running(loop, VirtualDisk()):
            peer = Peer(loop)
            kind = DescribeQuorumRequest
            wanted = kind((kind.TopicData("__cluster_metadata", (kind.PartitionData(0),)),))
            answers = await asyncio.gather(*(peer.ask(wanted, (0, 99)) for _ in range(20)))
            assert {each.topics[0].partitions[0].leader_id for each in answers} == {1}
            assert answers[0].nodes, "version 2 has them"
            refused = await peer.ask(DescribeClusterRequest(), (50, 60))
            assert isinstance(refused, PeerError)
            assert "does not support DescribeCluster (50, 60)" in str(refused)
            assert peer.events == []
            peer.connection.close()

    run(scenario)


def test_a_node_that_stops_is_told_of_and_then_refuses() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        disk = VirtualDisk()
        peer = Peer(loop)
        async with running(loop, disk):
            assert (await peer.ask(DescribeClusterRequest(endpoint_type=2), (1, 2))).controller_id == 1
        await asyncio.sleep(0.01)
        assert peer.events == [PeerEvent.CLOSED]
        failed = await peer.ask(DescribeClusterRequest(endpoint_type=2), (1, 2))
        assert isinstance(failed, PeerError)
        assert peer.events[-1] is PeerEvent.REFUSED
        async with running(loop, disk):
            assert (await peer.ask(DescribeClusterRequest(endpoint_type=2), (1, 2))).controller_id == 1
        peer.connection.close()

    run(scenario)


def test_attempts_to_connect_become_rarer() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        peer = Peer(loop, port=1)
        times = []
        for _ in range(8):
            assert isinstance(await peer.ask(DescribeClusterRequest(), (0, 2)), PeerError)
            times.append(loop.time())
        pauses = [later - earlier for earlier, later in itertools.pairwise(times)]
        assert pauses == pytest.approx([0.04, 0.08, 0.16, 0.32, 0.4, 0.4, 0.4])
        peer.connection.close()

    run(scenario)


def silent_server(loop: VirtualLoop, port: int) -> list[VirtualSocket]:
    """Accepts connections, and says what it is told to say only."""
    listening = loop.bind("127.0.0.1", port)
    accepted: list[VirtualSocket] = []
    loop.add_reader(listening.fileno(), lambda: accepted.append(listening.accept()[0]))
    return accepted


def test_a_response_that_has_come_is_read_in_one_turn() -> None:
    """Deadlines are judged a turn after they have passed: after a stall, answers that wait in the socket count."""

    async def scenario(loop: VirtualLoop) -> None:
        async with running(loop, VirtualDisk()):
            peer = Peer(loop)
            turns = 0
            read = peer.connection._readable

            def count() -> None:
                nonlocal turns
                turns += 1
                read()

            peer.connection._readable = count
            await peer.ask(DescribeClusterRequest(endpoint_type=2), (1, 2))
            assert turns == 2, "one for the versions that it serves"
            peer.connection.close()

    run(scenario)


class NeverConnected(VirtualSocket):
    """The other end, or the network before it, does not react."""

    is_writable = False


def test_a_connection_that_does_not_come_about_is_given_up_and_tried_again() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        lost = NeverConnected(loop, 2001, ("127.0.0.1", 9093))
        loop._sockets[lost.fileno()] = lost
        sockets = iter([lost])
        peer = Peer(loop)
        peer.connection._dial = lambda address: next(sockets, None) or loop.dial(address)
        assert isinstance(await peer.ask(VoteRequest(), (0, 2)), PeerError)
        await asyncio.sleep(0.01)
        assert peer.events == [PeerEvent.SILENT]
        async with running(loop, VirtualDisk()):
            assert (await peer.ask(DescribeClusterRequest(endpoint_type=2), (1, 2))).controller_id == 1
        peer.connection.close()

    run(scenario)


def test_what_was_not_answered_does_not_arrive_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel is told to forget it: what is sent again must not be followed by the original."""
    aborted: list[bytes] = []

    def set_option(sock: VirtualSocket, level: int, option: int, value: Any) -> None:
        if (level, option) == (socket.SOL_SOCKET, socket.SO_LINGER):
            aborted.append(value)

    monkeypatch.setattr(VirtualSocket, "setsockopt", set_option)

    async def scenario(loop: VirtualLoop) -> None:
        async with running(loop, VirtualDisk()):
            peer = Peer(loop)
            await peer.ask(DescribeClusterRequest(endpoint_type=2), (1, 2))
            peer.connection.close()
            assert aborted == []
            other = Peer(loop)
            await other.ask(DescribeClusterRequest(endpoint_type=2), (1, 2))
            other.connection.send(DescribeClusterRequest(endpoint_type=2), (1, 2), lambda _: None)
            other.connection.close()
            assert aborted == [struct.pack("ii", 1, 0)]

    run(scenario)


def test_silence_ends_a_connection_with_all_that_waits_for_it() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        silent_server(loop, 9093)
        peer = Peer(loop)
        first, second = await asyncio.gather(*(peer.ask(VoteRequest(), (0, 2)) for _ in range(2)))
        assert isinstance(first, PeerError)
        assert isinstance(second, PeerError)
        assert loop.time() == pytest.approx(2.0)
        peer.connection.close()

    run(scenario)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"\0\0\0\x04\0\0\0\x63", id="an answer to nothing that was asked"),
        pytest.param(b"\xff\xff\xff\xff", id="a negative size"),
        pytest.param(b"\x7f\xff\xff\xff", id="more than a frame may have"),
        pytest.param(b"\0\0\0\x05\0\0\0\x01\0", id="cut off"),
    ],
)
def test_an_answer_that_cannot_be_read_ends_the_connection(answer: bytes) -> None:
    async def scenario(loop: VirtualLoop) -> None:
        accepted = silent_server(loop, 9093)
        peer = Peer(loop)
        asked = asyncio.ensure_future(peer.ask(VoteRequest(), (0, 2)))
        await asyncio.sleep(0.5)
        accepted[0].send(answer)
        assert isinstance(await asked, PeerError)
        assert peer.events == [PeerEvent.CLOSED]
        assert loop.time() < 1
        peer.connection.close()

    run(scenario)


def test_requests_wait_until_the_login_is_over() -> None:
    order: list[str] = []

    def login() -> Generator[tuple[object, tuple[int, int]], Any, None]:
        for step in range(2):
            response = yield DescribeClusterRequest(endpoint_type=2), (1, 2)
            order.append(f"login {step}: controller {response.controller_id}")

    async def scenario(loop: VirtualLoop) -> None:
        async with running(loop, VirtualDisk()):
            peer = Peer(loop, login=login)
            assert not peer.connection.is_ready
            assert (await peer.ask(DescribeClusterRequest(endpoint_type=2), (1, 2))).controller_id == 1
            order.append("request")
            assert peer.connection.is_ready
            peer.connection.close()

    run(scenario)
    assert order == ["login 0: controller 1", "login 1: controller 1", "request"]


@pytest.mark.parametrize(
    ("versions", "reason"),
    [
        pytest.param((0, 1), "the login is refused: ILLEGAL_SASL_STATE", id="refused"),
        pytest.param((7, 8), r"it does not support SaslHandshake \(7, 8\)", id="not known there"),
    ],
)
def test_a_login_that_fails_ends_the_connection(versions: tuple[int, int], reason: str) -> None:
    def login() -> Generator[tuple[object, tuple[int, int]], Any, None]:
        response = yield SaslHandshakeRequest("PLAIN"), versions
        if response.error_code:
            raise PeerError(f"the login is refused: {ErrorCode(response.error_code).name}")

    async def scenario(loop: VirtualLoop) -> None:
        async with running(loop, VirtualDisk()):
            peer = Peer(loop, login=login)
            times = []
            for _ in range(3):
                with pytest.raises(PeerError, match=reason):
                    raise await peer.ask(DescribeClusterRequest(), (0, 2))
                times.append(loop.time())
            pauses = [later - earlier for earlier, later in itertools.pairwise(times)]
            assert pauses == pytest.approx([0.04, 0.08], abs=0.01), "it is tried again, and ever more rarely"
            peer.connection.close()

    run(scenario)


def test_a_connection_whose_first_answer_does_not_come_is_given_up_with_the_first_request() -> None:
    """Else whatever is sent later would wait for it, too."""

    async def scenario(loop: VirtualLoop) -> None:
        loop.bind("127.0.0.1", 9093)  # listens, and nobody serves
        peer = Peer(loop, timeout_s=30.0)
        answered: asyncio.Future[Any] = loop.create_future()
        peer.connection.send(DescribeClusterRequest(), (0, 2), answered.set_result, timeout_s=1.0)
        assert "it has not answered in time" in str(await answered)
        assert loop.time() < 2
        assert peer.events == [PeerEvent.SILENT]
        peer.connection.close()

    run(scenario)


def test_a_node_that_is_known_to_be_there_is_connected_to_at_once() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        peer = Peer(loop)
        for _ in range(8):
            assert isinstance(await peer.ask(DescribeClusterRequest(), (0, 2)), PeerError)
        async with running(loop, VirtualDisk()):
            began = loop.time()
            asking = loop.create_task(peer.ask(DescribeClusterRequest(endpoint_type=2), (1, 2)))
            await asyncio.sleep(0)
            peer.connection.forget_failures()
            assert (await asking).error_code == 0
            assert loop.time() - began < 0.1
            peer.connection.close()

    run(scenario)
