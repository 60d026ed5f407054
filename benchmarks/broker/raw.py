"""A client as small as can be: one socket, one request at a time, frames made beforehand.

What it measures is the broker and the kernel, hardly the client.
"""

import json
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ottla.wire import batch, frames
from ottla.wire.index import MESSAGES
from ottla.wire.types import CreateTopicsRequest, FetchRequest, MetadataRequest, ProduceRequest

TIMEOUT_S = 30.0
START_S = 120.0
FETCH_VERSION = 12
PRODUCE_VERSION = 9
RECEIVE_BYTES = 1 << 16
PARKED_S = 0.002
"""Long enough for a fetch to reach the broker and wait there."""


_EXISTS = 36
_LISTEN = "0A"


class NotReadyError(Exception):
    """The broker answers, but not yet as wished."""


class RawClient:
    def __init__(self, port: int) -> None:
        self._sock = socket.create_connection(("127.0.0.1", port), TIMEOUT_S)
        self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def close(self) -> None:
        self._sock.close()

    def send(self, frame: bytes) -> None:
        self._sock.sendall(frame)

    def receive(self) -> bytes:
        """One frame's content."""
        data = self._sock.recv(RECEIVE_BYTES)
        while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "big"):
            more = self._sock.recv(RECEIVE_BYTES)
            if not more:
                raise ConnectionError("closed by the broker")
            data += more
        if not data:
            raise ConnectionError("closed by the broker")
        return data[4:]

    def round_trip(self, frame: bytes) -> bytes:
        self.send(frame)
        return self.receive()

    def call(self, message: object, version: int) -> Any:  # noqa: ANN401
        key = MESSAGES[type(message).__name__].key
        assert key is not None
        self.send(frames.write_request(message, version, correlation_id=1, client_id="bench"))
        return frames.read_response(self.receive(), key, version).body


def create_topic(client: RawClient, name: str) -> None:
    kind = CreateTopicsRequest
    (result,) = client.call(kind((kind.CreatableTopic(name, 1, 1),), 10_000), 7).topics
    if result.error_code not in (0, _EXISTS):
        raise NotReadyError(result)
    wait_for_leader(client, name)


def wait_for_leader(client: RawClient, name: str) -> None:
    kind = MetadataRequest
    request = kind((kind.MetadataRequestTopic(name=name),), allow_auto_topic_creation=False)
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        (topic,) = client.call(request, 9).topics
        if topic.error_code == 0 and topic.partitions and topic.partitions[0].leader_id >= 0:
            return
        time.sleep(0.001)
    raise TimeoutError(f"topic {name} has no leader")


def produce_frame(topic: str, value: bytes) -> bytes:
    kind = ProduceRequest
    now_ms = int(time.time() * 1000)
    records = batch.build_batch([batch.Record(0, now_ms, None, value)])
    data = kind.TopicProduceData(name=topic, partition_data=(kind.PartitionProduceData(0, records),))
    return frames.write_request(
        kind(acks=-1, timeout_ms=10_000, topic_data=(data,)), PRODUCE_VERSION, correlation_id=1, client_id="bench"
    )


def check_produced(content: bytes) -> int:
    """The offset that an answer gives; fails if it has an error."""
    response = frames.read_response(content, 0, PRODUCE_VERSION).body
    partition = response.responses[0].partition_responses[0]
    if partition.error_code:
        raise NotReadyError(partition)
    return int(partition.base_offset)


def first_produce(port: int, topic: str) -> None:
    """From nothing to one acknowledged record, as a patient client does it: again and again until it works."""
    deadline = time.monotonic() + START_S
    while not (is_listening(port) and _try_first_produce(port, topic)):
        if time.monotonic() > deadline:
            raise TimeoutError(f"nothing could be produced to port {port}")
        time.sleep(0.001)


def is_listening(port: int) -> bool:
    """Looked up, not tried: a connection to a free port of the local range can meet itself and take the port."""
    ending = f":{port:04X}"
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        rows = (line.split() for line in Path(table).read_text(encoding="ascii").splitlines())
        if any(row[1].endswith(ending) and row[3] == _LISTEN for row in rows):
            return True
    return False


def _try_first_produce(port: int, topic: str) -> bool:
    client = RawClient(port)
    try:
        create_topic(client, topic)
        check_produced(client.round_trip(produce_frame(topic, b"x" * 100)))
    except (OSError, NotReadyError):
        return False
    else:
        return True
    finally:
        client.close()


def synchronous_produces(port: int, topic: str, count: int) -> list[float]:
    """Seconds of each of so many produces of 100 B, one after the other."""
    client = RawClient(port)
    frame = produce_frame(topic, b"x" * 100)
    times = timed(count, lambda: client.round_trip(frame))
    client.send(frame)
    check_produced(client.receive())
    client.close()
    return times


def timed(count: int, call: Callable[[], object]) -> list[float]:
    times = []
    clock = time.perf_counter
    for _ in range(count):
        start = clock()
        call()
        times.append(clock() - start)
    return times


def end_to_end(port: int, topic: str, count: int) -> list[float]:
    """Seconds from sending a record until a consumer, whose fetch waits at the broker, has it."""
    producer, consumer = RawClient(port), RawClient(port)
    frame = produce_frame(topic, b"x" * 100)
    producer.send(frame)
    offset = check_produced(producer.receive()) + 1
    times = []
    for _ in range(count):
        consumer.send(_fetch_frame(topic, offset))
        time.sleep(PARKED_S)
        start = time.perf_counter()
        producer.send(frame)
        content = consumer.receive()
        times.append(time.perf_counter() - start)
        producer.receive()
        assert len(content) > 100, "a fetch came back without the record"
        offset += 1
    producer.close()
    consumer.close()
    return times


def _fetch_frame(topic: str, offset: int) -> bytes:
    kind = FetchRequest
    partition = kind.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    request = kind(
        max_wait_ms=5000,
        min_bytes=1,
        max_bytes=1 << 20,
        topics=(kind.FetchTopic(topic=topic, partitions=(partition,)),),
    )
    return frames.write_request(request, FETCH_VERSION, correlation_id=1, client_id="bench")


def ping(port: int, every_s: float) -> list[float]:
    """Seconds of one small request each `every_s`, at least of one, until standard input ends."""
    from select import select

    from ottla.wire.types import ApiVersionsRequest

    client = RawClient(port)
    frame = frames.write_request(ApiVersionsRequest("bench", "1"), 3, correlation_id=1, client_id="ping")
    client.round_trip(frame)
    times: list[float] = []
    print("ready", flush=True)
    while True:
        times += timed(1, lambda: client.round_trip(frame))
        if select([sys.stdin], [], [], every_s)[0]:
            return times


if __name__ == "__main__":
    json.dump(ping(int(sys.argv[1]), float(sys.argv[2])), sys.stdout)
