"""A cluster of a few lines on loopback: brokers that answer what a test has told them to.

    async with FakeCluster(nodes=2, topics={"orders": [1, 2]}) as cluster:
        cluster.broker(1).on("Produce", DROP, answer_to_produce)

Scripted answers are used up one after the other; the last one stays. What is not scripted gets an answer only if it is
ApiVersions, Metadata or FindCoordinator.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, Self

from ottla.client.client import Client
from ottla.client.settings import Changes
from ottla.wire import frames, types
from ottla.wire.index import MESSAGES

QUICK: Changes = {"retry_backoff_ms": 1, "retry_backoff_max_ms": 2, "unknown_topic_wait_ms": 50}
DROP: Final = "drop"
"""Close the connection instead of answering."""
HOLD: Final = "hold"
"""Never answer, and keep the connection open."""
CLUSTER_ID = "b3R0bGEtZmFrZS0wMDAwMQ"


def topic_id(name: str) -> bytes:
    return name.encode().ljust(16, b"\1")[:16]


class FakeBroker:
    """One broker. `requests` is all that it was asked, without ApiVersions."""

    def __init__(self, cluster: "FakeCluster", node_id: int) -> None:
        self.cluster = cluster
        self.node_id = node_id
        self.port = 0
        self.requests: list[frames.Request] = []
        self.handshakes: list[frames.Request] = []
        self.connections = 0
        self.versions: dict[str, tuple[int, int]] = {}
        """Versions that this broker has instead of all; (0, -1) for none."""
        self.asked = asyncio.Event()
        self._script: dict[str, deque[Any]] = {}
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[Any]] = set()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def open_connections(self) -> int:
        return len(self._writers)

    def on(self, api: str, *answers: Any) -> None:
        """Answer an API with these, one after the other: a message, a function of the request, bytes, DROP or HOLD."""
        self._script[api] = deque(answers)

    async def has_connections(self, count: int) -> None:
        """Wait until so many connections are open."""
        while self.open_connections != count:
            self.asked.clear()
            await self.asked.wait()

    async def was_asked(self, api: str) -> None:
        """Wait for the first request of an API."""
        while not self.asked_for(api):
            self.asked.clear()
            await self.asked.wait()

    def asked_for(self, api: str) -> list[Any]:
        """The requests of one API so far."""
        return [each.body for each in self.requests if each.name == f"{api}Request"]

    async def start(self, port: int = 0) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        self.disconnect()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self._server.wait_closed()

    def disconnect(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.add(writer)
        self.connections += 1
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                while True:
                    size = int.from_bytes(await reader.readexactly(4))
                    if size > frames.FRAME_MAX_BYTES or not await self._answer(await reader.readexactly(size), writer):
                        break
        finally:
            self._writers.discard(writer)
            self.asked.set()
            self._tasks.discard(task)
            writer.close()

    async def _answer(self, data: bytes, writer: asyncio.StreamWriter) -> bool:
        header, _ = frames.read_request_header(data)
        api = frames.api_names()[header.request_api_key]
        if api == "ApiVersions" and header.request_api_version > self._range(api)[1]:
            writer.write(self._step_down(header.correlation_id))
            return True
        request = frames.read_request(data)
        (self.handshakes if api in HANDSHAKE else self.requests).append(request)
        self.asked.set()
        answer = self._next(api, request)
        if isinstance(answer, Awaitable):
            answer = await answer
        if answer is DROP:
            return False
        if isinstance(answer, bytes):
            writer.write(answer)
        elif answer is not HOLD:
            writer.write(frames.write_response(answer, request.version, correlation_id=request.header.correlation_id))
        await writer.drain()
        return True

    def _next(self, api: str, request: frames.Request) -> Any:
        script = self._script.get(api)
        if script is None:
            return self._usual(api, request)
        answer = script.popleft() if len(script) > 1 else script[0]
        return answer(request) if callable(answer) else answer

    def _usual(self, api: str, request: frames.Request) -> Any:
        if api == "ApiVersions":
            return types.ApiVersionsResponse(api_keys=self._offered())
        if api == "Metadata":
            return self.cluster.metadata(request.body)
        if api == "FindCoordinator":
            return self.cluster.coordinator(request)
        raise AssertionError(f"nobody told the fake broker how to answer {api}")

    def _range(self, api: str) -> tuple[int, int]:
        entry = MESSAGES[f"{api}Request"]
        return self.versions.get(api, (entry.low, entry.high))

    def _offered(self) -> tuple[Any, ...]:
        ranges = {key: self._range(api) for key, api in frames.api_names().items()}
        return tuple(types.ApiVersionsResponse.ApiVersion(key, *each) for key, each in ranges.items() if each[1] >= 0)

    def _step_down(self, correlation_id: int) -> bytes:
        low, high = self._range("ApiVersions")
        entry = types.ApiVersionsResponse.ApiVersion(frames.API_VERSIONS_KEY, low, high)
        answer = types.ApiVersionsResponse(error_code=35, api_keys=(entry,) if self.cluster.says_versions else ())
        return frames.write_response(answer, 0, correlation_id=correlation_id)


HANDSHAKE = ("ApiVersions", "SaslHandshake", "SaslAuthenticate")


class FakeCluster:
    """Brokers 1 to `nodes`; `topics` gives the leader of each partition."""

    def __init__(self, nodes: int = 1, topics: Mapping[str, Sequence[int]] | None = None) -> None:
        self.brokers = {node_id: FakeBroker(self, node_id) for node_id in range(1, nodes + 1)}
        self.topics: dict[str, Sequence[int]] = dict(topics or {})
        self.leader_epoch = 0
        self.controller_id = 1
        self.coordinator_id = 1
        self.topic_errors: dict[str, int] = {}
        self.says_versions = True

    async def __aenter__(self) -> Self:
        for broker in self.brokers.values():
            await broker.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for broker in self.brokers.values():
            await broker.stop()

    def broker(self, node_id: int = 1) -> FakeBroker:
        return self.brokers[node_id]

    @property
    def bootstrap_servers(self) -> str:
        return self.broker(1).address

    def client(self, **settings: Any) -> Client:
        return Client(self.bootstrap_servers, **{**QUICK, **settings})

    def metadata(self, request: Any) -> types.MetadataResponse:
        names = [each.name for each in request.topics] if request.topics is not None else list(self.topics)
        return types.MetadataResponse(
            brokers=tuple(
                types.MetadataResponse.MetadataResponseBroker(each.node_id, "127.0.0.1", each.port)
                for each in self.brokers.values()
            ),
            cluster_id=CLUSTER_ID,
            controller_id=self.controller_id,
            topics=tuple(map(self._topic, names)),
        )

    def _topic(self, name: str) -> Any:
        kind = types.MetadataResponse.MetadataResponseTopic
        if name in self.topic_errors or name not in self.topics:
            return kind(error_code=self.topic_errors.get(name, 3), name=name)
        partition = types.MetadataResponse.MetadataResponsePartition
        partitions = [
            partition(partition_index=index, leader_id=leader, leader_epoch=self.leader_epoch, replica_nodes=(leader,))
            for index, leader in enumerate(self.topics[name])
        ]
        return kind(name=name, topic_id=topic_id(name), partitions=tuple(partitions))

    def coordinator(self, request: frames.Request) -> types.FindCoordinatorResponse:
        broker = self.broker(self.coordinator_id)
        if request.version < 4:
            return types.FindCoordinatorResponse(node_id=broker.node_id, host="127.0.0.1", port=broker.port)
        (key,) = request.body.coordinator_keys
        found = types.FindCoordinatorResponse.Coordinator(key, broker.node_id, "127.0.0.1", broker.port)
        return types.FindCoordinatorResponse(coordinators=(found,))
