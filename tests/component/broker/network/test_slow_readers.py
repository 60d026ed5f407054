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


def resident_bytes(pid: int) -> int:
    line = next(each for each in Path(f"/proc/{pid}/status").read_text().splitlines() if each.startswith("VmRSS"))
    return int(line.split()[1]) * 1024


def test_memory_does_not_grow_with_what_nobody_reads(filled: Broker, protocol: str):
    with ExitStack() as stack:
        readers = [stack.enter_context(connect(filled, protocol)) for _ in range(READERS)]
        before = resident_bytes(filled.pid)
        for reader in readers:
            reader.sendall(fetch_all())
        sizes = [int.from_bytes(reader.recv(4), "big") for reader in readers]
        assert min(sizes) > (TOPIC_MIB - 2) * MIB
        grown = resident_bytes(filled.pid) - before
        assert grown < READERS * READER_MAX_BYTES, f"{grown:,} bytes more for {READERS} readers of {TOPIC_MIB} MiB each"

        left = sizes[0]
        while left:  # a slow reader still gets all of it
            left -= len(readers[0].recv(min(left, 256 * 1024)))
        readers[0].sendall(frames.write_request(ApiVersionsRequest(), 0, correlation_id=2))
        assert readers[0].recv(4)
