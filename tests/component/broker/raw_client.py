"""A raw client: frames over a socket to any broker, and a node of ours to talk to.

Tests of APIs are written once against a `RawClient` and run twice: here against a node in this process, and in
tests/interop against Apache Kafka, which says whether an expectation is right.
"""

from __future__ import annotations

import asyncio
import select
import socket
import ssl
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from ottla.broker.config.node_config import NodeConfig
from ottla.broker.loop.clock import Clock, ManualClock
from ottla.broker.node import Authorizer, Node
from ottla.core.metadata.context import Result
from ottla.log.disk import OsDisk
from ottla.wire import frames
from ottla.wire.batch import AnyBatch, Record, build_batch, split_batches
from ottla.wire.keyed import Versioned
from ottla.wire.types import (
    CreateTopicsRequest,
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ProduceRequest,
)

TIMEOUT_S = 20
READY_ATTEMPTS = 10_000
_serial = count()


class Topic(NamedTuple):
    name: str
    topic_id: bytes


class Closed(Exception):
    """The broker ended the connection without an answer."""


class RawClient:
    """Connections to one broker. `ask` uses the first; `connect` opens others."""

    def __init__(self, host: str, port: int) -> None:
        self._address = (host, port)
        self._connection: Connection | None = None
        self._connections: list[Connection] = []

    @classmethod
    def at(cls, bootstrap_servers: str) -> RawClient:
        """`127.0.0.1:9092`."""
        host, _, port = bootstrap_servers.rpartition(":")
        return cls(host, int(port))

    @property
    def connection(self) -> Connection:
        if self._connection is None or self._connection.is_closed:
            self._connection = self.connect()
        return self._connection

    def connect(self, client_id: str = "test", timeout_s: float = TIMEOUT_S) -> Connection:
        connection = Connection(self._address, client_id, timeout_s)
        self._connections.append(connection)
        return connection

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def close_all(self) -> None:
        for connection in self._connections:
            connection.close()

    def ask(self, message: object, version: int) -> Any:
        return self.connection.ask(message, version)

    def topic(self, partitions: int = 1, **configs: object) -> Topic:
        """A new topic with settings, `_` for each dot."""
        configs.setdefault("retention_ms", -1)  # records of 1970 must outlive the test
        name = f"t{next(_serial)}"
        topic = CreateTopicsRequest.CreatableTopic(
            name,
            partitions,
            1,
            configs=tuple(
                CreateTopicsRequest.CreatableTopicConfig(key.replace("_", "."), str(value))
                for key, value in configs.items()
            ),
        )
        answer = self.ask(CreateTopicsRequest((topic,), TIMEOUT_S * 1000), 7).topics[0]
        assert answer.error_code == 0, answer
        self._wait_for(name, partitions)
        return Topic(name, answer.topic_id)

    def _wait_for(self, name: str, partitions: int) -> None:
        """Apache Kafka may say that a topic is there a little before its leader knows."""
        asked = tuple(ListOffsetsRequest.ListOffsetsPartition(index, -1, -2) for index in range(partitions))
        request = ListOffsetsRequest(-1, 0, (ListOffsetsRequest.ListOffsetsTopic(name, asked),))
        for _ in range(READY_ATTEMPTS):
            if not any(one.error_code for one in self.ask(request, 7).topics[0].partitions):
                return
        raise AssertionError(f"{name} does not become usable")

    def produce(
        self,
        topic: Topic,
        records: bytes | None,
        *,
        partition: int = 0,
        acks: int = -1,
        version: int = 13,
        connection: Connection | None = None,
    ) -> Any:
        """The answer for the one partition that is written."""
        request = produce_request(topic, {partition: records}, acks=acks)
        return (connection or self.connection).ask(request, version).responses[0].partition_responses[0]

    def fetch(self, topic: Topic, offset: int = 0, *, partition: int = 0, version: int = 17, **fields: Any) -> Any:
        """The answer for one partition, without a session."""
        fields.setdefault("session_epoch", -1)
        wanted = fetch_partition(partition, offset, **{key: fields.pop(key) for key in _OF_PARTITION & fields.keys()})
        answer = self.ask(fetch_request(topic, wanted, **fields), version)
        return answer.responses[0].partitions[0]


class Connection:
    """One connection."""

    def __init__(self, address: tuple[str, int], client_id: str, timeout_s: float = TIMEOUT_S) -> None:
        self.client_id = client_id
        self.is_closed = False
        self._sock = socket.create_connection(address, timeout_s)
        self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._correlation_ids = count()

    def secure(self, context: ssl.SSLContext, host: str) -> None:
        """Speak TLS from now on."""
        self._sock = context.wrap_socket(self._sock, server_hostname=host)

    def send(self, message: object, version: int) -> int:
        return self.send_together((message, version))[0]

    def send_together(self, *requests: tuple[object, int]) -> list[int]:
        """Send requests in one piece, so that the broker finds them together."""
        numbers = [next(self._correlation_ids) for _ in requests]
        self._sock.sendall(
            b"".join(
                frames.write_request(message, version, correlation_id=number, client_id=self.client_id)
                for number, (message, version) in zip(numbers, requests, strict=True)
            )
        )
        return numbers

    def send_bytes(self, data: bytes) -> None:
        """Send whatever it is."""
        self._sock.sendall(data)

    def receive_bytes(self) -> bytes:
        """The next answer, with its header."""
        return self._read(int.from_bytes(self._read(4), "big"))

    def receive(self, api_key: int, version: int, correlation_id: int) -> Any:
        answer = frames.read_response(self.receive_bytes(), api_key, version)
        assert answer.header.correlation_id == correlation_id
        return answer.body

    def ask(self, message: object, version: int) -> Any:
        correlation_id = self.send(message, version)
        return self.receive(key_of(message), version, correlation_id)

    def is_silent(self, seconds: float) -> bool:
        """Whether nothing comes for so long."""
        if isinstance(self._sock, ssl.SSLSocket) and self._sock.pending():
            return False
        readable, _, _ = select.select([self._sock], [], [], seconds)
        return not readable

    def _read(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            piece = self._sock.recv(size - len(data))
            if not piece:
                self.close()
                raise Closed
            data += piece
        return bytes(data)

    def close(self) -> None:
        self.is_closed = True
        self._sock.close()


def key_of(message: object) -> int:
    name = type(message).__name__.removesuffix("Request")
    return next(key for key, known in frames.api_names().items() if known == name)


# --- messages ---------------------------------------------------------------------------------------------------------

_OF_PARTITION = frozenset({"current_leader_epoch", "last_fetched_epoch", "partition_max_bytes"})


def batch(*values: bytes | None, timestamp: int = 1_000, **header: Any) -> bytes:
    """A batch with these values, a millisecond apart; `keys` gives them keys."""
    keys = header.pop("keys", [None] * len(values))
    timestamps = header.pop("timestamps", range(timestamp, timestamp + len(values)))
    rows = zip(count(), timestamps, keys, values, strict=False)
    return bytes(build_batch([Record(*row) for row in rows], **header))


def produce_request(
    topic: Topic, records: dict[int, bytes | None], *, acks: int = -1, transactional_id: str | None = None
) -> ProduceRequest:
    data = tuple(ProduceRequest.PartitionProduceData(index, batch) for index, batch in records.items())
    named = ProduceRequest.TopicProduceData(topic.name, topic.topic_id, data)
    return ProduceRequest(transactional_id=transactional_id, acks=acks, timeout_ms=5_000, topic_data=(named,))


def fetch_partition(partition: int, offset: int, **fields: Any) -> FetchRequest.FetchPartition:
    fields.setdefault("partition_max_bytes", 1 << 20)
    return FetchRequest.FetchPartition(partition=partition, fetch_offset=offset, **fields)


def fetch_request(topic: Topic, *partitions: FetchRequest.FetchPartition, **fields: Any) -> FetchRequest:
    topics = (FetchRequest.FetchTopic(topic.name, topic.topic_id, partitions),) if partitions else ()
    fields.setdefault("max_bytes", 1 << 20)
    fields.setdefault("min_bytes", 1)
    fields.setdefault("session_epoch", 0)
    return FetchRequest(topics=topics, **fields)


def batches(partition: FetchResponse.PartitionData) -> list[AnyBatch]:
    return list(split_batches(bytes(partition.records or b"")))


def values(partition: FetchResponse.PartitionData) -> list[bytes | None]:
    found = [record.value for one in batches(partition) for record in one.records()]
    return [None if value is None else bytes(value) for value in found]


# --- a node of ours ---------------------------------------------------------------------------------------------------


class RunningNode:
    """A node whose loop runs in a thread of its own."""

    def __init__(
        self,
        directory: Path,
        clock: Clock | None = None,
        authorizer: Authorizer | None = None,
        disk: OsDisk | None = None,
        on_fatal: Callable[[str], None] | None = None,
        **settings: object,
    ) -> None:
        named = {key.replace("_", "."): str(value) for key, value in settings.items()}
        local = {"listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0", "log.dirs": str(directory)}
        self.clock = clock
        self._starting = partial(
            Node.start,
            NodeConfig(local, named),
            clock=clock,
            disk=disk or OsDisk(durable=False),
            authorizer=authorizer,
            on_fatal=on_fatal,
        )
        self.node: Node
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="node")
        self._client: RawClient | None = None

    def start(self) -> None:
        self._thread.start()
        try:
            self.node = asyncio.run_coroutine_threadsafe(self._starting(), self._loop).result(TIMEOUT_S)
        except BaseException:
            self._end_loop()
            raise

    def stop(self) -> None:
        self._end(self.node.stop())

    def kill(self) -> None:
        """End as a crash would, with nothing written any more."""
        self._end(self.node.kill())

    def _end(self, ending: Coroutine[Any, Any, None]) -> None:
        if self._client is not None:
            self._client.close()
        try:
            asyncio.run_coroutine_threadsafe(ending, self._loop).result(TIMEOUT_S)
        finally:
            self._end_loop()

    def _end_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(TIMEOUT_S)
        self._loop.close()

    def change(self, step: Any) -> None:
        """Run something in the node's thread."""
        done = threading.Event()

        def run() -> None:
            step()
            done.set()

        self._loop.call_soon_threadsafe(run)
        assert done.wait(TIMEOUT_S)

    def commit(self, *records: object) -> None:
        """Write records to the metadata log, as the controller would, and wait until the broker follows them."""
        done = threading.Event()

        def append() -> None:
            end_offset = self.node.controller.append(Result(tuple(Versioned(each, 0) for each in records), None))
            self.node.publisher.when_at(end_offset, done.set)

        self._loop.call_soon_threadsafe(append)
        assert done.wait(TIMEOUT_S)

    def run_turns(self, count: int = 3) -> None:
        """Let the node's loop end its turn, and do what follows from it."""
        for _ in range(count):
            self.change(lambda: None)

    def until(self, condition: Callable[[], object]) -> None:
        """Let the node work until something is so."""
        deadline = time.monotonic() + TIMEOUT_S
        while time.monotonic() < deadline:
            self.change(lambda: None)
            if condition():
                return
        raise AssertionError("it does not come about")

    def advance(self, ms: int) -> None:
        """Let time go by, on a clock that stands still otherwise, and do what is due then."""
        assert isinstance(self.clock, ManualClock)
        self.clock.advance(ms)
        self.change(self.node.run_timers)

    def snapshot_metadata(self) -> None:
        """Write a snapshot of the metadata log as it is now."""

        def snapshot() -> None:
            self.node.raft.bytes_since_snapshot = 1 << 30
            self.node.metadata_chores.snapshot()
            self.node.cooperative_tasks.run_for(10)

        self.change(snapshot)

    @property
    def client(self) -> RawClient:
        if self._client is None:
            advertised = self.node.advertised["PLAINTEXT"]
            self._client = RawClient(advertised.host, advertised.port)
        return self._client


@contextmanager
def running_node(
    directory: Path,
    clock: Clock | None = None,
    authorizer: Authorizer | None = None,
    disk: OsDisk | None = None,
    **settings: object,
) -> Iterator[RunningNode]:
    running = RunningNode(directory, clock, authorizer, disk, **settings)
    running.start()
    try:
        yield running
    finally:
        running.stop()
        running.client.close_all()
