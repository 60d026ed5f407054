"""A client for any Kafka cluster: every API by its message, with versions, routing and retries taken care of.

    async with Client("localhost:9092") as client:
        answer = await client.send(DescribeClusterRequest())
        answer = await client.send(request, partition=("orders", 0))           # to the partition's leader
        answer = await client.send(request, coordinator=("group", "payments"))  # to the group's coordinator

Theory of operation. `send` looks up the broker, takes its connection from the pool, chooses the highest version that
both sides have, and gives the answer. It tries again, with growing pauses and until the deadline, when a connection
fails or when the whole answer is an error that another attempt can cure (see `retry`). An answer that still holds
errors is given as it is: what they mean depends on the API. The modules beside this one (`topics`, `configs`,
`producer`, `fetcher`, ...) know their APIs and raise ResponseError.

A request whose answer got lost is sent again and may then be done twice; `retry=False` sends it once.

There are no tasks and no threads: all that happens, happens while somebody waits for it.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Final, NamedTuple, Protocol, Self, TypeVar, Unpack

from ottla.client.address import Address, Peer, parse_bootstrap_servers
from ottla.client.answers import Coordinated, SendOptions, TypedSend
from ottla.client.backoff import Backoff, Deadline
from ottla.client.clock import monotonic_s
from ottla.client.connection import SECOND_MS, patience_ms
from ottla.client.errors import (
    NO_SUCH_TOPIC,
    AuthenticationError,
    BackingOffError,
    BootstrapError,
    ClientError,
    ClosedError,
    ConfigurationError,
    RequestTimeoutError,
    ResponseError,
    UnknownBrokerError,
    check,
)
from ottla.client.handshake import open_connection
from ottla.client.metadata import NO_NODE, Metadata, Partition, Topic, TopicPartition
from ottla.client.pool import USUAL_LANE, Link, Pool, Together, together
from ottla.client.reconnects import Reconnects
from ottla.client.retry import RetryAction, Routing, cure_for_all
from ottla.client.settings import Changes, ClientSettings
from ottla.client.versions import api_of, choose_version
from ottla.wire.errors import ErrorCode
from ottla.wire.types.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.wire.types.metadata import MetadataRequest, MetadataRequestMetadataRequestTopic, MetadataResponse

__all__ = ["Answer", "Client", "always"]

KEY_TYPES: Final = {"group": 0, "transaction": 1, "share": 2}
COORDINATORS_HELD_MAX: Final = 10_000
BATCHED_COORDINATORS_VERSION: Final = 4
LANES: Final = {
    "Fetch": "fetch",
    "ShareFetch": "share-fetch",
    "JoinGroup": "join-group",
    "SyncGroup": "sync-group",
    "DescribeShareGroupOffsets": "share-offsets",
    "DescribeLogDirs": "log-dirs",
}
"""Requests that brokers hold back until there is something to say, or whose answers take them long to find."""

NOT_ANSWERED: Final = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
"""What a topic gets that the broker has left out of its answer."""

T = TypeVar("T")
Build = Callable[[int], object]
"""Makes a request for the version that was agreed on."""


class Answer(NamedTuple):
    """An answer, with the broker that gave it and the version that it was given in."""

    body: object
    peer: Peer
    version: int

    def of(self, kind: type[T]) -> T:
        """The body as what it is known to be."""
        assert isinstance(self.body, kind), f"{type(self.body).__name__} instead of {kind.__name__}"
        return self.body


class Closable(Protocol):
    """What lives on a client's connections, such as a Fetcher."""

    async def close(self) -> None: ...


class _Route(NamedTuple):
    way: Routing
    node_id: int = NO_NODE
    partition: TopicPartition | None = None
    coordinator: Coordinated | None = None


class Client(TypedSend):
    """A client of one cluster. Entering it connects; leaving it closes all connections.

    `bootstrap_servers` is `host:port`, several of them with commas between, or a list of them; the settings are those
    of `ottla.client.settings.ClientSettings`. While the client is entered, each bootstrap server is tried once, and
    BootstrapError says why none of them can be used.
    """

    together: Together = staticmethod(together)
    """How the modules beside this one ask several brokers."""

    def __init__(self, bootstrap_servers: str | Iterable[str], **settings: Unpack[Changes]) -> None:
        self.bootstrap_servers = parse_bootstrap_servers(bootstrap_servers)
        self.settings = ClientSettings.of(**settings)
        self.metadata = Metadata()
        self._pool: Pool | None = None
        self._reconnects = Reconnects(self.settings.reconnect_backoff_ms, self.settings.reconnect_backoff_max_ms)
        self._refreshing = asyncio.Lock()
        self._coordinators: dict[Coordinated, int] = {}
        self._dependents: dict[Closable, None] = {}

    async def __aenter__(self) -> Self:
        if self._pool is not None:
            raise ClosedError("a client can be entered only once")
        self._pool = Pool(self._try_open, max_idle_ms=self.settings.connections_max_idle_ms, together=self.together)
        try:
            await self._bootstrap()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections; whoever still waits for an answer gets ClosedError."""
        for dependent in list(self._dependents):
            await dependent.close()
        if self._pool is not None:
            await self._pool.close()

    def attach(self, dependent: Closable) -> None:
        """Close this one, too, when the client is closed."""
        self._dependents[dependent] = None

    def detach(self, dependent: Closable) -> None:
        self._dependents.pop(dependent, None)

    # --- asking -------------------------------------------------------------------------------------------------------

    async def _send(self, message: object, options: SendOptions) -> object:
        answer = await self.ask(api_of(type(message)), always(message), **options)
        return answer.body

    async def ask(self, api: str, build: Build, **options: Unpack[SendOptions]) -> Answer:
        """Like `send`, for a request that depends on the version: `build` makes it when the version is known."""
        route = _route(options)
        deadline = self.deadline(options.get("timeout_ms"))
        retry = options.get("retry", True)
        backoff = self.backoff()
        tried: set[Address] = set()
        last: Answer | ClientError | None = None
        while True:
            try:
                answer = await self._attempt(api, build, route, options, deadline, tried)
            except ClientError as error:
                if isinstance(error, RequestTimeoutError) and deadline.passed and last is not None:
                    return _outcome(last)  # which says more than that there was no time for one more attempt
                # A broker that the caller has named himself is not waited for.
                if not error.retriable or (route.way is Routing.NODE and isinstance(error, UnknownBrokerError)):
                    raise
                self._distrust(route)
                last = error
                if not (retry and await self._pause(error, backoff, deadline, tried)):
                    raise
                continue
            cure = cure_for_all(answer.body, route.way) if retry else None
            if cure is None:
                return answer
            self._apply(cure, route)
            last = answer
            if not await backoff.pause(deadline):
                return answer

    async def ask_at(self, peer: Peer, message: object, *, timeout_ms: int | None = None) -> Answer:
        """Send a request once to whoever is at an address, whether or not the cluster lists it."""
        connection = await self._connections.get(peer)
        version = choose_version(api_of(type(message)), connection.versions, peer)
        return Answer(await connection.request(message, version, timeout_ms=timeout_ms), peer, version)

    async def post(self, peer: Peer, message: object) -> None:
        """Send a request once that gets no answer (Produce with acks=0)."""
        connection = await self._connections.get(peer)
        await connection.post(message, choose_version(api_of(type(message)), connection.versions, connection.peer))

    async def close_lane(self, lane: str) -> None:
        """Close the connections that a lane has."""
        await self._connections.close_lane(lane)

    def deadline(self, timeout_ms: int | None = None) -> Deadline:
        """The end of a call that begins now."""
        return Deadline(self.settings.default_api_timeout_ms if timeout_ms is None else timeout_ms)

    def backoff(self) -> Backoff:
        """Pauses as long as the settings say."""
        return Backoff(self.settings.retry_backoff_ms, self.settings.retry_backoff_max_ms)

    async def _attempt(
        self,
        api: str,
        build: Build,
        route: _Route,
        options: SendOptions,
        deadline: Deadline,
        tried: set[Address],
    ) -> Answer:
        peer = await self._find(route, deadline, tried)
        connection = await self._connections.get(peer, options.get("lane", LANES.get(api, USUAL_LANE)))
        version = choose_version(
            api, connection.versions, peer, options.get("version"), at_most=options.get("max_version")
        )
        message = build(version)
        # The broker may take its time if the request says so, whatever the deadline; the answer is on its way then.
        timeout_ms = deadline.left_s * SECOND_MS + patience_ms(message)
        return Answer(await connection.request(message, version, timeout_ms=timeout_ms), peer, version)

    async def _pause(self, error: ClientError, backoff: Backoff, deadline: Deadline, tried: set[Address]) -> bool:
        """After a failure: another broker can be asked at once, the same one only after a pause."""
        if tried and any(peer.address not in tried for peer in self._candidates()):
            return not deadline.passed
        if isinstance(error, BackingOffError):
            return False
        tried.clear()
        return await backoff.pause(deadline)

    # --- the way to a broker ------------------------------------------------------------------------------------------

    async def _find(self, route: _Route, deadline: Deadline, tried: set[Address]) -> Peer:
        if route.partition is not None:
            return await self.leader_peer(route.partition, deadline)
        if route.coordinator is not None:
            return await self.node_peer(await self._coordinator(route.coordinator, deadline), deadline)
        if route.way is Routing.NODE:
            return await self.node_peer(route.node_id, deadline)
        if route.way is Routing.CONTROLLER:
            await self._refresh_brokers(deadline)
            controller = self.metadata.brokers.get(self.metadata.controller_id)
            if controller is not None:
                return controller.peer
        return self._any(tried)

    def _any(self, tried: set[Address]) -> Peer:
        candidates = self._candidates()
        peer = next((peer for peer in candidates if peer.address not in tried), candidates[0])
        tried.add(peer.address)
        return peer

    def _candidates(self) -> list[Peer]:
        """Who can be asked when it does not matter which: connected brokers first, bootstrap servers last."""
        by_address = {broker.peer.address: broker.peer for broker in self.metadata.brokers.values()}
        opened = self._connections.open_addresses()
        others = random.sample(list(by_address), len(by_address))
        ordered = dict.fromkeys((*opened, *others, *self.bootstrap_servers))
        return [by_address.get(address, Peer(address)) for address in ordered]

    async def node_peer(self, node_id: int, deadline: Deadline) -> Peer:
        """The broker with this node id; UnknownBrokerError if the cluster has none."""
        await self._refresh_brokers(deadline)
        broker = self.metadata.brokers.get(node_id)
        if broker is None:
            raise UnknownBrokerError(node_id, list(self.metadata.brokers))
        return broker.peer

    async def _coordinator(self, wanted: Coordinated, deadline: Deadline) -> int:
        if wanted not in self._coordinators:
            self.learn_coordinator(wanted, await self._find_coordinator(wanted, deadline))
        return self._coordinators[wanted]

    def learn_coordinator(self, wanted: Coordinated, node_id: int) -> None:
        """Take somebody's word for who coordinates; whoever does not, says so, and then the cluster is asked."""
        if len(self._coordinators) >= COORDINATORS_HELD_MAX:
            self._coordinators.pop(next(iter(self._coordinators)))
        self._coordinators[wanted] = node_id

    async def _find_coordinator(self, wanted: Coordinated, deadline: Deadline) -> int:
        kind, key = wanted

        def build(version: int) -> FindCoordinatorRequest:
            if version < BATCHED_COORDINATORS_VERSION:
                return FindCoordinatorRequest(key=key, key_type=KEY_TYPES[kind])
            return FindCoordinatorRequest(key_type=KEY_TYPES[kind], coordinator_keys=(key,))

        backoff = self.backoff()
        while True:
            answer = await self.ask("FindCoordinator", build, timeout_ms=max(1, deadline.left_ms))
            body = answer.of(FindCoordinatorResponse)
            found = body.coordinators[0] if body.coordinators else body
            if not found.error_code:
                return found.node_id
            error = ResponseError(
                answer.peer, "FindCoordinator", found.error_code, f"{kind} {key}", found.error_message
            )
            if not error.retriable or not await backoff.pause(deadline):
                raise error

    def _distrust(self, route: _Route) -> None:
        """A connection failed: what led us there may be old."""
        self.metadata.expire_brokers()
        if route.partition is not None:
            self.metadata.expire(route.partition.topic)
        if route.coordinator is not None:
            self._coordinators.pop(route.coordinator, None)

    def _apply(self, cure: RetryAction, route: _Route) -> None:
        if cure is not RetryAction.WAIT:
            self._distrust(route)

    # --- what is known about the cluster ------------------------------------------------------------------------------

    async def topics(self, names: Iterable[str], deadline: Deadline | None = None) -> dict[str, Topic]:
        """What the cluster says about these topics, not older than the settings allow.

        ResponseError for one that does not exist, after asking again for a short while.
        """
        wanted = list(dict.fromkeys(names))
        deadline = deadline or self.deadline()
        unknown_until = self._unknown_until(deadline)
        backoff = self.backoff()
        missing = [name for name in wanted if not self._is_fresh(self.metadata.since_s(name))]
        while missing:
            errors = await self._ask_metadata(missing, deadline)
            for error in errors:
                until = unknown_until if error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION else deadline
                if not error.retriable or until.passed:
                    raise error
            if errors and not await backoff.pause(deadline):
                raise errors[0]
            missing = [name for name in wanted if name not in self.metadata.topics]
        return {name: self.metadata.topics[name] for name in wanted}

    async def unknown_topics(self, names: Iterable[str]) -> list[str]:
        """Which of these topics do not exist; an invalid name is that of none."""
        errors = await self._ask_metadata(list(dict.fromkeys(names)), self.deadline())
        unknown = (each for each in errors if each.code in NO_SUCH_TOPIC)
        return [each.about.removeprefix("topic ") for each in unknown]

    async def all_topics(self) -> dict[str, Topic]:
        """Every topic that this client may see."""
        await self._ask_metadata(None, self.deadline())
        return dict(self.metadata.topics)

    async def leader(self, at: TopicPartition, deadline: Deadline | None = None) -> Partition:
        """A partition that has a leader, waiting for one until the deadline."""
        deadline = deadline or self.deadline()
        unknown_until = self._unknown_until(deadline)
        backoff = self.backoff()
        missing: ClientError | None = None
        while True:
            try:
                topic = (await self.topics([at.topic], deadline))[at.topic]
            except RequestTimeoutError as error:
                raise missing or error from None
            partition = topic.partitions.get(at.partition)
            if partition is not None and partition.leader in self.metadata.brokers:
                return partition
            self.metadata.expire(at.topic)
            missing = _without_leader(at, topic)
            if not await backoff.pause(unknown_until if partition is None else deadline):
                raise missing

    async def leader_peer(self, at: TopicPartition, deadline: Deadline | None = None) -> Peer:
        """The broker that leads a partition."""
        partition = await self.leader(at, deadline)
        return self.metadata.brokers[partition.leader].peer

    async def refresh(self) -> Metadata:
        """Ask for the brokers anew."""
        self.metadata.expire_brokers()
        await self._refresh_brokers(self.deadline())
        return self.metadata

    def _unknown_until(self, deadline: Deadline) -> Deadline:
        return Deadline(min(self.settings.unknown_topic_wait_ms, deadline.left_ms))

    def _is_fresh(self, since_s: float) -> bool:
        return monotonic_s() - since_s < self.settings.metadata_max_age_ms / SECOND_MS

    async def _refresh_brokers(self, deadline: Deadline) -> None:
        if not self._is_fresh(self.metadata.refreshed_at_s):
            await self._ask_metadata([], deadline)

    async def _ask_metadata(self, names: list[str] | None, deadline: Deadline) -> list[ResponseError]:
        """Ask for the brokers and these topics (all of them if None) and remember the answer.

        The errors are those of single topics.
        """
        asked_at_s = monotonic_s()
        async with self._refreshing:
            if names is not None and self._known_since(names) >= asked_at_s:
                return []  # somebody else has asked for the same while we waited
            answer = await self.ask("Metadata", self._metadata_request(names), timeout_ms=max(1, deadline.left_ms))
            body = answer.of(MetadataResponse)
            check(answer.peer, "Metadata", body.error_code)
            errors = self.metadata.take(body, monotonic_s(), is_complete=names is None)
            errors |= dict.fromkeys(set(names or ()) - {topic.name for topic in body.topics}, NOT_ANSWERED)
        return [ResponseError(answer.peer, "Metadata", code, f"topic {name}") for name, code in errors.items()]

    def _known_since(self, names: list[str]) -> float:
        """When the oldest of these was learned; of the brokers, if there are no names."""
        return min((self.metadata.since_s(name) for name in names), default=self.metadata.refreshed_at_s)

    def _metadata_request(self, names: list[str] | None) -> Build:
        topics = None if names is None else tuple(MetadataRequestMetadataRequestTopic(name=name) for name in names)
        request = MetadataRequest(topics=topics, allow_auto_topic_creation=self.settings.allow_auto_create_topics)
        return always(request)

    # --- connections --------------------------------------------------------------------------------------------------

    @property
    def _connections(self) -> Pool:
        if self._pool is None:
            raise ClosedError("the client is not open; use it in `async with`")
        return self._pool

    @property
    def is_connected(self) -> bool:
        """Whether a connection to any broker is open, and can be used as far as is known."""
        return bool(self._connections.open_addresses())

    def try_again(self) -> None:
        """Leave no broker alone any longer because a connection to it failed."""
        self._reconnects.forget()

    async def _try_open(self, peer: Peer) -> Link:
        self._reconnects.check(peer)
        try:
            link = await self._open(peer)
        except ClientError as error:
            self._reconnects.failed(peer, error)
            raise
        self._reconnects.succeeded(peer)
        return link

    async def _open(self, peer: Peer) -> Link:
        return await open_connection(peer, self.settings)

    async def _bootstrap(self) -> None:
        failures: list[tuple[Address, ClientError]] = []
        for address in self.bootstrap_servers:
            try:
                await self._learn_from(Peer(address))
            except AuthenticationError:
                raise  # the others have the same users, and some clusters lock out who fails too often
            except ClientError as error:
                failures.append((address, error))
            else:
                return
        raise BootstrapError(failures)

    async def _learn_from(self, peer: Peer) -> None:
        connection = await self._connections.get(peer)
        version = choose_version("Metadata", connection.versions, peer)
        request = self._metadata_request([])(version)
        answer = await connection.request(request, version)
        assert isinstance(answer, MetadataResponse)
        check(peer, "Metadata", answer.error_code)
        self.metadata.take(answer, monotonic_s())


def always(message: object) -> Build:
    """A request that is the same in every version."""
    return lambda _: message


def _outcome(last: Answer | ClientError) -> Answer:
    if isinstance(last, ClientError):
        raise last
    return last


def _without_leader(at: TopicPartition, topic: Topic) -> ResponseError:
    if at.partition in topic.partitions:
        return ResponseError(None, "Metadata", ErrorCode.LEADER_NOT_AVAILABLE, str(at))
    message = f"the topic has {len(topic.partitions)} partitions"
    return ResponseError(None, "Metadata", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, str(at), message)


def _route(options: SendOptions) -> _Route:
    broker = options.get("broker")
    partition = options.get("partition")
    coordinator = options.get("coordinator")
    if sum(each is not None for each in (broker, partition, coordinator)) > 1:
        raise ConfigurationError(
            "a request goes to a broker, to a partition's leader or to a coordinator: give only one of them"
        )
    if partition is not None:
        return _Route(Routing.LEADER, partition=TopicPartition(*partition))
    if coordinator is not None:
        if coordinator[0] not in KEY_TYPES:
            raise ConfigurationError(f"{coordinator[0]!r} has no coordinator; {', '.join(KEY_TYPES)} have one")
        return _Route(Routing.COORDINATOR, coordinator=coordinator)
    if broker == "controller":
        return _Route(Routing.CONTROLLER)
    return _Route(Routing.ANY) if broker is None else _Route(Routing.NODE, node_id=int(broker))
