"""Clients that request much and read nothing: what waits for them stays in the log's files, not in memory."""

from __future__ import annotations

import socket
import ssl
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from ottla.client import Producer, ProducerRecord, topics
from ottla.client.blocking import BlockingClient
from ottla.client.client import Client
from ottla.client.properties import settings_of
from ottla.testing import Broker, broker
from ottla.wire import frames
from ottla.wire.types import ApiVersionsRequest, FetchRequest

MIB = 1 << 20
TOPIC_MIB = 32
READERS = 20
READER_MAX_BYTES = 2 * MIB
"""A piece of a file, its encrypted form, and what OpenSSL and the connection hold."""
RESPONSES = 3
PEAK_MAX_BYTES = 8 * MIB
"""Far less than a response has; the first one also loads code."""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads the memory of a process from /proc")


@pytest.fixture(params=["plaintext", "ssl"])
def protocol(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def filled(protocol: str) -> Iterator[Broker]:
    with broker(process=True, security=protocol) as made:
        properties = {} if protocol == "plaintext" else made.security.client_properties()

        async def fill(client: Client) -> None:
            await topics.create(client, topics.NewTopic("large", partitions=1))
            await Producer(client).send_all(ProducerRecord("large", bytes(MIB - 1024)) for _ in range(TOPIC_MIB))

        with BlockingClient(made.bootstrap_servers, **settings_of(properties)) as client:  # type: ignore[arg-type]
            client.call(fill)
        yield made


def connect(made: Broker, protocol: str) -> socket.socket:
    plain = socket.create_connection(("127.0.0.1", made.port), 20)
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * 1024)
    if protocol == "plaintext":
        return plain
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(made.security.ca_file)
    return context.wrap_socket(plain, server_hostname="localhost")


def fetch_all() -> bytes:
    partition = FetchRequest.FetchPartition(0, partition_max_bytes=TOPIC_MIB * MIB)
    topic = FetchRequest.FetchTopic(topic="large", partitions=(partition,))
    request = FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=TOPIC_MIB * MIB, topics=(topic,))
    return frames.write_request(request, 12, correlation_id=1)


def memory_bytes(pid: int, of: str = "VmRSS") -> int:
    line = next(each for each in Path(f"/proc/{pid}/status").read_text().splitlines() if each.startswith(of))
    return int(line.split()[1]) * 1024


def begin_peak(pid: int) -> None:
    """From now on VmHWM is the most that the process has had since."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def receive(reader: socket.socket, size: int, step: int = 256 * 1024) -> None:
    while size:
        received = len(reader.recv(min(size, step)))
        assert received, "the connection was closed"
        size -= received


def test_memory_does_not_grow_with_what_nobody_reads(filled: Broker, protocol: str):
    with ExitStack() as stack:
        readers = [stack.enter_context(connect(filled, protocol)) for _ in range(READERS)]
        before = memory_bytes(filled.pid)
        for reader in readers:
            reader.sendall(fetch_all())
        sizes = [int.from_bytes(reader.recv(4), "big") for reader in readers]
        assert min(sizes) > (TOPIC_MIB - 2) * MIB
        grown = memory_bytes(filled.pid) - before
        assert grown < READERS * READER_MAX_BYTES, f"{grown:,} bytes more for {READERS} readers of {TOPIC_MIB} MiB each"

        receive(readers[0], sizes[0])  # a slow reader still gets all of it
        readers[0].sendall(frames.write_request(ApiVersionsRequest(), 0, correlation_id=2))
        assert readers[0].recv(4)


def test_memory_does_not_grow_while_a_reader_takes_responses_little_by_little(filled: Broker, protocol: str):
    """The requests for the next responses are there, so nothing but the reader's pace holds the broker back."""
    with connect(filled, protocol) as reader:
        begin_peak(filled.pid)
        before = memory_bytes(filled.pid)
        reader.sendall(fetch_all() * RESPONSES)
        for _ in range(RESPONSES):
            receive(reader, int.from_bytes(b"".join(reader.recv(1) for _ in range(4)), "big"), step=16 * 1024)
        grown = memory_bytes(filled.pid, "VmHWM") - before
        assert grown < PEAK_MAX_BYTES, f"{grown:,} bytes more for {RESPONSES} responses of {TOPIC_MIB} MiB each"
