"""A whole node on virtual time, without sockets, threads or a disk, and a client for it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import Any

from ottla.broker.config.node_config import NodeConfig
from ottla.broker.loop.randomness import Randomness
from ottla.broker.node import Authorizer, Node
from ottla.testing.disk import VirtualDisk
from ottla.testing.virtual_loop import InlineOffload, VirtualLoop, VirtualSocket
from ottla.wire import frames
from ottla.wire.batch import Record, build_batch
from ottla.wire.index import MESSAGES
from ottla.wire.types import CreateTopicsRequest, ProduceRequest

SETTINGS = {
    "node.id": "1",
    "process.roles": "broker,controller",
    "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
    "controller.listener.names": "CONTROLLER",
    "log.dirs": "/data",
}


SCENARIO_MAX_S = 3_600
"""Of virtual time: a scenario that waits for what never comes must end."""


class Client:
    """Requests over a socket in memory, one at a time."""

    def __init__(self, loop: VirtualLoop, port: int) -> None:
        self._loop = loop
        self._sock: VirtualSocket = loop.connect(port)
        self._serial = 0

    async def ask(self, request: Any, version: int) -> Any:
        self._serial += 1
        self._sock.send(frames.write_request(request, version, correlation_id=self._serial, client_id="virtual"))
        received = b""
        while len(received) < 4 or len(received) < 4 + int.from_bytes(received[:4], "big"):
            received += await self._some()
        key = MESSAGES[type(request).__name__].key
        assert key is not None
        return frames.read_response(received[4:], key, version).body

    async def _some(self) -> bytes:
        ready = self._loop.create_future()
        self._loop.add_reader(self._sock.fileno(), lambda: ready.done() or ready.set_result(None))
        try:
            await ready
        finally:  # a socket that is closed and still watched would keep the clock from moving
            self._loop.remove_reader(self._sock.fileno())
        received = self._sock.recv(1 << 20)
        if not received:
            raise ConnectionResetError("the node has closed the connection")
        return received


@asynccontextmanager
async def running(
    loop: VirtualLoop,
    disk: VirtualDisk,
    offload: Callable[..., Any] = InlineOffload,
    *,
    settings: Mapping[str, str] = MappingProxyType({}),
    authorizer: Authorizer | None = None,
) -> AsyncIterator[Node]:
    node = await Node.start(
        NodeConfig(SETTINGS | dict(settings), {}),
        clock=loop.clock,
        randomness=Randomness(random.Random(7).randbytes),
        disk=disk,
        offload=offload,
        bind=loop.bind,
        dial=loop.dial,
        authorizer=authorizer,
    )
    try:
        yield node
    finally:
        await node.stop()


def run(scenario: Callable[[VirtualLoop], Coroutine[None, None, None]]) -> None:
    loop = VirtualLoop()
    try:
        loop.run_until_complete(asyncio.wait_for(scenario(loop), SCENARIO_MAX_S))
    finally:
        loop.close()


def create_topic(name: str) -> CreateTopicsRequest:
    return CreateTopicsRequest((CreateTopicsRequest.CreatableTopic(name, 1, 1),))


def produce_to(
    topic_id: bytes, value: bytes = b"v", *, partition: int = 0, acks: int = -1, timeout_ms: int = 1000
) -> ProduceRequest:
    kind = ProduceRequest
    batch = build_batch([Record(0, 0, b"k", value, ())])
    data = kind.TopicProduceData(topic_id=topic_id, partition_data=(kind.PartitionProduceData(partition, batch),))
    return kind(acks=acks, timeout_ms=timeout_ms, topic_data=(data,))
