"""The relay between nodes: it passes bytes, refuses when the node does, and holds back what a cut link carries."""

import socket
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from ottla.testing.children import ChildProcess
from ottla.testing.ports import LOOPBACK, PortReservation

TIMEOUT_S = 20
SILENCE_S = 0.2


class Network:
    """The relay with a link from node 1 to node 2, and all sockets that a test opens."""

    def __init__(self, stack: ExitStack, host: str) -> None:
        self.host = host
        self._stack = stack
        self._relay = ChildProcess("ottla.testing.clusters.relay", "the relay")
        stack.callback(self._relay.kill)
        self.target = PortReservation()
        stack.callback(self.target.close)
        [self.port] = self._relay.ask({"links": [[1, 2, [LOOPBACK, self.target.port], [host, 0]]]})

    def cut(self, *directions: tuple[int, int]) -> None:
        self._relay.ask({"cut": directions})

    def listen(self) -> socket.socket:
        """Let node 2 listen."""
        self.target.release()
        listener = self._stack.enter_context(socket.create_server((LOOPBACK, self.target.port)))
        listener.settimeout(TIMEOUT_S)
        return listener

    def connect(self) -> socket.socket:
        """Let node 1 connect, as soon as it is not refused."""
        until = time.monotonic() + TIMEOUT_S
        while True:
            try:
                sock = socket.create_connection((self.host, self.port), TIMEOUT_S)
            except ConnectionRefusedError:
                assert time.monotonic() < until
            else:
                return self._stack.enter_context(sock)

    def accept(self, listener: socket.socket, first: bytes) -> socket.socket:
        """The connection that begins with some bytes; others are the relay's own, to see whether somebody is there."""
        while True:
            sock = self._stack.enter_context(listener.accept()[0])
            sock.settimeout(TIMEOUT_S)
            if sock.recv(len(first)) == first:
                return sock

    def open(self) -> tuple[socket.socket, socket.socket, socket.socket]:
        """The listener of node 2, and both ends of a connection to it."""
        listener = self.listen()
        near = self.connect()
        near.sendall(b"first")
        return listener, near, self.accept(listener, b"first")

    def wait_until_refused(self) -> None:
        until = time.monotonic() + TIMEOUT_S
        while time.monotonic() < until:
            try:
                socket.create_connection((self.host, self.port), TIMEOUT_S).close()
            except ConnectionRefusedError:
                return
        raise AssertionError("connections are never refused")


@pytest.fixture(params=[LOOPBACK, "127.0.1.2"])
def network(request: pytest.FixtureRequest) -> Iterator[Network]:
    """On Linux all of 127.0.0.0/8 is this machine; a link may begin at any address of it."""
    if request.param != LOOPBACK and sys.platform != "linux":
        pytest.skip("there is one loopback address")
    with ExitStack() as stack:
        yield Network(stack, request.param)


def is_silent(sock: socket.socket) -> bool:
    """Whether nothing comes, though there is time for it."""
    sock.settimeout(SILENCE_S)
    try:
        sock.recv(1)
    except TimeoutError:
        return True
    finally:
        sock.settimeout(TIMEOUT_S)
    return False


def test_bytes_pass_both_ways(network: Network):
    _, near, far = network.open()
    far.sendall(b"answer")
    assert near.recv(6, socket.MSG_WAITALL) == b"answer"
    near.close()
    assert far.recv(1) == b""


def test_a_node_that_is_not_there_refuses_until_it_is(network: Network):
    network.wait_until_refused()
    listener = network.listen()
    near = network.connect()
    near.sendall(b"hello")
    network.accept(listener, b"hello")


def test_a_dead_node_closes_its_connections_and_refuses_the_next(network: Network):
    listener, near, far = network.open()
    listener.close()
    far.close()
    assert near.recv(1) == b""
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((network.host, network.port), TIMEOUT_S).close()


def test_a_cut_link_is_silent_and_loses_nothing(network: Network):
    listener, near, far = network.open()
    network.cut((1, 2), (2, 1))
    near.sendall(b"request")
    far.sendall(b"answer")
    new = network.connect()
    new.sendall(b"hello")
    assert is_silent(near)
    assert is_silent(far)
    assert is_silent(new)
    network.cut()
    assert near.recv(6, socket.MSG_WAITALL) == b"answer"
    assert far.recv(7, socket.MSG_WAITALL) == b"request"
    network.accept(listener, b"hello")


def test_one_direction_can_be_cut_alone(network: Network):
    _, near, far = network.open()
    network.cut((2, 1))
    near.sendall(b"request")
    assert far.recv(7, socket.MSG_WAITALL) == b"request"
    far.sendall(b"answer")
    assert is_silent(near)
    network.cut((1, 2))
    assert near.recv(6, socket.MSG_WAITALL) == b"answer"
    near.sendall(b"next")
    assert is_silent(far)


def test_a_death_behind_a_cut_link_is_not_heard_of_before_it_is_healed(network: Network):
    listener, near, far = network.open()
    network.cut((1, 2), (2, 1))
    listener.close()
    far.close()
    near.sendall(b"request")
    new = network.connect()
    assert is_silent(near)
    assert is_silent(new)
    network.cut()
    assert near.recv(1) == b""
    assert new.recv(1) == b""
    network.wait_until_refused()
