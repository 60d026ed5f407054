"""Clients that behave badly, each for as long as its `with` block lasts. All are bounded in number and in time."""

from __future__ import annotations

import select
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import cycle

from ottla.wire import frames
from tests.component.broker.raw_client import RawClient, Topic, batch, fetch_partition, fetch_request
from tests.hostile.weapons import weapons

ANSWER_S = 0.002
"""How long an answer is waited for; a request that parks gets none so soon."""
CONNECT_S = 10
BATCH_BYTES = 900_000
SLOW_READ_BYTES = 64 * 1024
SLOW_PAUSE_S = 0.1
TORSOS = (
    b"\x00\x00\x00",
    b"\x00\x00\x01\x00\x00\x03",
    b"\x00\x00\x01\x00\x00\x03\x00\x0c\x00\x00\x00\x01",
    b"\x06\x00\x00\x00\x00\x00\x00\x0d",
)
"""Beginnings of requests that never go on; the last one says that it has 100 MB."""


def dial(address: tuple[str, int]) -> socket.socket:
    return socket.create_connection(address, CONNECT_S)


@contextmanager
def dialled(address: tuple[str, int], count: int) -> Iterator[list[socket.socket]]:
    with ExitStack() as stack:
        yield [stack.enter_context(dial(address)) for _ in range(count)]


def shoot(
    address: tuple[str, int], seed: int, count: int, connections: int = 32, spared: int | None = None
) -> Counter[tuple[str, str]]:
    """Send frames that no honest client sends, over some connections in turn; says what became of each kind.

    None asks for the API with the spared key.
    """
    outcomes: Counter[tuple[str, str]] = Counter()
    open_connections = [dial(address) for _ in range(connections)]
    try:
        for place, weapon in zip(cycle(range(connections)), weapons(seed, count, spared), strict=False):
            outcome = _fire(open_connections[place], weapon.data)
            outcomes[weapon.kind, outcome] += 1
            if outcome != "answered":
                open_connections[place].close()
                open_connections[place] = dial(address)
    finally:
        for connection in open_connections:
            connection.close()
    return outcomes


def _fire(connection: socket.socket, data: bytes) -> str:
    try:
        connection.sendall(data)
        if not select.select([connection], [], [], ANSWER_S)[0]:
            return "silent"
        return "answered" if connection.recv(1 << 16) else "closed"
    except OSError:
        return "closed"


@contextmanager
def half_open(address: tuple[str, int], count: int) -> Iterator[None]:
    """Requests that begin and do not go on."""
    with dialled(address, count) as connections:
        for connection, torso in zip(connections, cycle(TORSOS), strict=False):
            connection.sendall(torso)
        yield


@contextmanager
def idle(address: tuple[str, int], count: int) -> Iterator[None]:
    """Connections that say nothing."""
    with dialled(address, count):
        yield


def large_topic(bootstrap_servers: str, size_bytes: int) -> Topic:
    """A topic with so many bytes in it."""
    client = RawClient.at(bootstrap_servers)
    topic = client.topic(max_message_bytes=2 * BATCH_BYTES)
    for _ in range(-(-size_bytes // BATCH_BYTES)):
        assert client.produce(topic, batch(bytes(BATCH_BYTES))).error_code == 0
    client.close_all()
    return topic


def _fetch_frame(topic: Topic, max_bytes: int) -> bytes:
    wanted = fetch_partition(0, 0, partition_max_bytes=max_bytes)
    request = fetch_request(topic, wanted, max_bytes=max_bytes, session_epoch=-1)
    return frames.write_request(request, 17, correlation_id=1, client_id="greedy")


@contextmanager
def never_reading(address: tuple[str, int], topic: Topic, count: int, max_bytes: int) -> Iterator[None]:
    """Each asks for large answers again and again and takes none."""
    asked = _fetch_frame(topic, max_bytes) * 50
    with dialled(address, count) as connections:
        for connection in connections:
            connection.setblocking(False)
            connection.send(asked)
        yield


@contextmanager
def slow_readers(address: tuple[str, int], topic: Topic, count: int, max_bytes: int) -> Iterator[list[int]]:
    """Each asks for one large answer and takes it in small pieces; gives how many bytes each has taken."""
    taken = [0] * count
    is_over = threading.Event()
    with dialled(address, count) as connections:
        for connection in connections:
            connection.sendall(_fetch_frame(topic, max_bytes))

        def read() -> None:
            while not is_over.wait(SLOW_PAUSE_S):
                for number, connection in enumerate(connections):
                    taken[number] += len(connection.recv(SLOW_READ_BYTES))

        thread = threading.Thread(target=read, name="slow readers")
        thread.start()
        try:
            yield taken
        finally:
            is_over.set()
            thread.join()
