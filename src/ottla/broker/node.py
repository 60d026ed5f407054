"""A node: everything that belongs together, from start to stop.

Start, in an order that does no harm when it fails half-way: take the ports and the directories' locks; format empty
directories; read them; read the metadata log; lead the quorum (quorum-state first) and register; load the partitions;
be unfenced; sync; serve. Stop: take no more requests and answer those that came; give up leadership; close the logs;
write the checkpoints; write the markers of a clean stop, last; let go of the locks.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from ottla.broker.config.node_config import ListenerConfig, NodeConfig
from ottla.broker.config.settings import Settings
from ottla.broker.controller.deleted_topics import DeletedTopics
from ottla.broker.controller.encoded_topics import EncodedTopics
from ottla.broker.controller.membership import Membership
from ottla.broker.controller.metadata_log import LoadedMetadata, MetadataLog, load_metadata
from ottla.broker.controller.producer_ids import ProducerIds
from ottla.broker.coordinators import Coordinators
from ottla.broker.handlers import SERVED
from ottla.broker.loop.clock import Clock, SystemClock
from ottla.broker.loop.housekeeping import Housekeeping
from ottla.broker.loop.offload import Offload
from ottla.broker.loop.slices import Slices
from ottla.broker.loop.waiting import Waiter, Waiting
from ottla.broker.network.budget import Budget
from ottla.broker.network.closed_connections import ClosedConnections
from ottla.broker.network.connection import Connection, Limits
from ottla.broker.network.dispatch import Dispatch, Observer
from ottla.broker.network.file_limit import current_limit, shares_of
from ottla.broker.network.listener import Crowd, Listener, ListenerLimits, address_limits, bind
from ottla.broker.network.quotas.charging import Meter
from ottla.broker.network.quotas.quotas import Quotas
from ottla.broker.network.quotas.rates import Windows
from ottla.broker.network.request import Later, Request
from ottla.broker.replicas.fetch_sessions import FetchSessions
from ottla.broker.replicas.formatting import random_uuid
from ottla.broker.replicas.loading import Loading, tell
from ottla.broker.replicas.moves import Moves
from ottla.broker.replicas.replicas import Replicas
from ottla.broker.replicas.storage import NodeStorage, lock_directories, release
from ottla.broker.telemetry.loggers import Loggers
from ottla.broker.telemetry.metrics import Metrics
from ottla.core.metadata.bootstrap import bootstrap_records
from ottla.core.metadata.config_rules import Rules
from ottla.core.metadata.context import ControllerSettings, unlimited
from ottla.core.metadata.controller import Controller
from ottla.core.metadata.features import levels_for_format, supported
from ottla.core.metadata.format import BOOTSTRAP_CHECKPOINT, read_bootstrap
from ottla.core.metadata.image import BROKER, Changes, MetadataImage
from ottla.core.quorum.voters import Listener as VoterListener
from ottla.core.quorum.voters import Voter, VoterSet
from ottla.log.config import LogConfig
from ottla.log.directory import LogDirectory
from ottla.log.disk import Disk, OsDisk, read_all
from ottla.log.names import TopicPartition
from ottla.wire.access import Operation, ResourceType
from ottla.wire.index import MESSAGES
from ottla.wire.keyed import Versioned

__all__ = ["Authorizer", "Node", "StartError"]

if TYPE_CHECKING:
    from ottla.broker.coordinators.internal_topics import InternalTopics
    from ottla.broker.coordinators.runtime import Runtime
    from ottla.broker.descriptions import Descriptions
    from ottla.broker.network.web_server import WebServer
    from ottla.broker.share import ShareNode
    from ottla.broker.telemetry.clients.telemetry import Telemetry

log = logging.getLogger(__name__)

DRAIN_MAX_SECONDS: Final = 5.0
SESSION_EVICTION_MS: Final = 120_000
"""A fetch session unused for longer gives its place to a new one."""


Authorizer = Callable[[Request, Operation, ResourceType, str], bool]


class StartError(Exception):
    """The node cannot start; the text says why and what can be done."""


class Node:
    """One broker and controller. `start`, then `stop`; handlers get it as their first argument."""

    def __init__(
        self,
        config: NodeConfig,
        *,
        clock: Clock | None = None,
        disk: Disk | None = None,
        observers: Sequence[Observer] = (),
        on_fatal: Callable[[str], None] | None = None,
        authorizer: Authorizer | None = None,
    ) -> None:
        self.config = config
        self.clock = clock or SystemClock()
        self.monotonic_ms = self.clock.monotonic_ms
        self.disk = disk or OsDisk()
        self.waiting = Waiting()
        self.deleted_topics = DeletedTopics(self.clock)
        self.closed_connections = ClosedConnections()
        self.metrics = Metrics(self)
        self.dispatch = Dispatch(
            self, observers=(self.metrics, *observers), is_unstable=config["unstable.api.versions.enable"]
        )
        self.loggers = Loggers(self._log_requests)
        self._request_log: Observer | None = None
        self.quotas = Quotas(_windows(config, "quota"), _windows(config, "controller.quota"))
        self.listeners: dict[str, Listener] = {}
        self.advertised: dict[str, ListenerConfig] = {}
        self.is_serving = False
        self.metrics_port: int | None = None
        self.inspect_port: int | None = None
        self._web_servers: list[WebServer] = []
        self._share: ShareNode | None = None
        self._telemetry: Telemetry | None = None
        self.descriptions: Descriptions | None = None
        """The plugin that keeps topology descriptions, if there is one."""
        self._on_fatal = on_fatal
        self._authorizer = authorizer
        self._deadline: asyncio.TimerHandle | None = None
        self._woken: dict[Hashable, None] = {}
        self._drained: asyncio.Future[None] | None = None
        limit_bytes = config["queued.max.request.bytes"]
        self.budget = Budget(limit_bytes) if limit_bytes > 0 else Budget()
        self._file_shares = shares_of(current_limit(), config["ottla.open.files.max"])
        self._crowd = Crowd(self._file_shares.connections)
        # Filled by `start`.
        self.loop: asyncio.AbstractEventLoop
        self.offload: Offload
        self.storage: NodeStorage
        self.image: MetadataImage
        self.settings: Settings
        self.metadata: MetadataLog
        self.membership: Membership
        self.replicas: Replicas
        self.moves: Moves
        self.fetch_sessions: FetchSessions
        self.producer_ids: ProducerIds
        self.slices: Slices
        self.encoded_topics: EncodedTopics
        self.housekeeping: Housekeeping
        self.coordinators: Coordinators
        self.internal_topics: InternalTopics
        self.groups: Runtime
        self.transactions: Runtime
        self.share_state: Runtime

    @property
    def node_id(self) -> int:
        return self.config.node_id

    @property
    def cluster_id(self) -> str:
        return self.storage.cluster_id

    @property
    def share(self) -> ShareNode:
        """What belongs to share groups; most nodes never need it."""
        if self._share is None:
            from ottla.broker.share import ShareNode

            self._share = ShareNode(self)
        return self._share

    @property
    def telemetry(self) -> Telemetry:
        """What clients push of their metrics; most nodes never hear any."""
        if self._telemetry is None:
            from ottla.broker.telemetry.clients.telemetry import Telemetry

            self._telemetry = Telemetry(self)
        return self._telemetry

    def telemetry_samples(self) -> Iterator[tuple[str, dict[str, object], float]]:
        """Numbers that clients have pushed, if any has."""
        if self._telemetry is not None:
            yield from self._telemetry.samples()

    def share_samples(self) -> Iterator[tuple[str, dict[str, object], float]]:
        """Numbers about share groups, if there are any."""
        if self._share is not None:
            yield from self._share.samples()

    # --- starting -----------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start to serve. Raises an exception with a clear text if that is not possible; nothing is left open then."""
        self.loop = asyncio.get_running_loop()
        self.offload = Offload(self.loop)
        self.slices = Slices(self.loop)
        self.encoded_topics = EncodedTopics(self.slices)
        self._bind()
        try:
            await self._serve_metrics()
            await self._serve_inspection()
            self._open_storage()
            await self._boot()
        except BaseException:
            for server in self._web_servers:
                server.close()
            for listener in self.listeners.values():
                listener.close()
            if hasattr(self, "storage"):
                self.storage.release(remove=False)
            raise
        self.replicas.begin_round()
        self.housekeeping = Housekeeping(self)
        self.housekeeping.start()
        self.is_serving = True
        self.moves.start()
        for listener in self.listeners.values():
            listener.change_limits(self._limits(self.settings))
            listener.start()

    async def _serve_metrics(self) -> None:
        port = self.config["ottla.metrics.port"]
        if port < 0:
            return
        from ottla.broker.telemetry.metrics_page import metrics_server

        server = metrics_server(lambda: self.metrics.page() if self.is_serving else "")
        self.metrics_port = await self._serve(server, self.config.client_listeners[0].host, port, "metrics page")

    async def _serve_inspection(self) -> None:
        text = self.config["ottla.inspect.listeners"]
        if not text:
            return
        from ottla.broker.telemetry.inspecting import inspect_address, inspect_server

        self.inspect_port = await self._serve(inspect_server(self), *inspect_address(text), "inspect listener")

    async def _serve(self, server: WebServer, host: str, port: int, name: str) -> int:
        self._web_servers.append(server)
        try:
            return await server.start(host, port)
        except OSError as error:
            raise StartError(f"the {name} cannot listen on {host or '*'}:{port}: {error.strerror}") from None

    def _bind(self) -> None:
        for listener in self.config.listeners:
            sock = self._bind_one(listener)
            self.listeners[listener.name] = Listener(
                listener.name,
                self.loop,
                sock,
                self,
                self.dispatch,
                offered_apis=self._offered_apis(listener.name),
                limits=self._limits(self.config),
                crowd=self._crowd,
            )
            port = sock.getsockname()[1]
            advertised = self.config.advertised[listener.name]
            is_own = advertised.port == listener.port  # and not that of something in between
            self.advertised[listener.name] = advertised._replace(port=port) if is_own else advertised

    def _bind_one(self, listener: ListenerConfig) -> Any:  # noqa: ANN401
        backlog = self.config["socket.listen.backlog.size"]
        try:
            return bind(listener.host, listener.port, backlog)
        except OSError as error:
            if self.config.may_move_controller and listener.name == self.config.controller_listener:
                return bind(listener.host, 0, backlog)  # nobody asked for this very port
            for opened in self.listeners.values():
                opened.close()
            raise StartError(str(error.strerror or error)) from None

    def _limits(self, settings: NodeConfig | Settings) -> ListenerLimits:
        return ListenerLimits(
            connections_max=settings["max.connections"],
            connections_per_ip_max=settings["max.connections.per.ip"],
            overrides=address_limits(settings["max.connections.per.ip.overrides"]),
            idle_max_ms=settings["connections.max.idle.ms"],
            backlog=settings["socket.listen.backlog.size"],
            connection=Limits(settings["socket.request.max.bytes"], self.budget),
        )

    def _offered_apis(self, listener: str) -> frozenset[int]:
        role = "controller" if listener in self.config["controller.listener.names"] else "broker"
        offered = {entry.key for entry in MESSAGES.values() if entry.kind == "request" and role in entry.listeners}
        return frozenset(key for key in SERVED if key in offered)

    def _open_storage(self) -> None:
        failed: dict[str, OSError] = {}
        locks = lock_directories(self.disk, self.config.all_dirs, failed, self.config.metadata_dir)
        try:
            self.storage = NodeStorage(self.config, self.disk, locks, self._file_shares.logs, failed)
            controller = self.advertised[self.config.controller_listener]
            self.storage.format_if_new(self.clock.wall_ms(), controller.port)
            self.storage.open()
        except BaseException:
            release(locks, remove=False)
            raise
        for directory in self.storage.all:
            for note in directory.notes:
                log.warning("%s", note)

    async def _boot(self) -> None:
        loaded = self._load_metadata()
        self.image = loaded.image
        rules = Rules(self.config.static)
        self.settings = Settings(self.config, rules, self.image)
        self._follow_quotas()
        self.replicas = Replicas(
            self.node_id,
            self.storage.directories,
            self.settings,
            self.clock,
            wake=self.wake,
            offload=self.offload,
            new_uuid=random_uuid,
            went_offline=self._went_offline,
        )
        self.moves = Moves(self)
        self.descriptions = self._load_descriptions()
        self.coordinators = Coordinators(self)
        self.internal_topics = self.coordinators.internal_topics
        self.groups = self.coordinators.groups
        self.transactions = self.coordinators.transactions
        self.share_state = self.coordinators.share_state
        self.fetch_sessions = FetchSessions(
            self.config["max.incremental.fetch.session.cache.slots"], SESSION_EVICTION_MS, random_positive
        )
        controller = Controller(self.image, rules, self._controller_settings())
        self.metadata = MetadataLog(
            loaded,
            self._voter(),
            controller,
            self.clock,
            new_uuid=random_uuid,
            applied=self._apply,
            failed=self.fail,
            offload=self.offload,
        )
        for directory in self.storage.all:
            if not directory.is_offline:
                directory.begin()
        self.metadata.lead(self._bootstrap_records(), own_broker_id=self.node_id)
        self.membership = Membership(self.settings, self.storage, self.metadata, random_uuid)
        self.producer_ids = ProducerIds(self.metadata, self.membership)
        names = self.config["controller.listener.names"]
        self.membership.register_controller([each for each in self.advertised.values() if each.name in names])
        self.membership.register_broker([each for each in self.advertised.values() if each.name not in names])
        self.membership.heartbeat(want_fence=True)
        await self._load_partitions()
        self._assign_directories()
        self.membership.heartbeat()
        self.metadata.sync()
        await self.coordinators.start()
        if self.descriptions is not None:
            await self.descriptions.start()

    async def _load_partitions(self) -> None:
        loading = Loading(self.storage.directories, self.image, self.replicas, self.settings, self.clock, random_uuid)
        for key, (directory, copy) in (await loading.run()).items():
            self.moves.resume(self.replicas.by_key[key], directory, copy)

    def _load_descriptions(self) -> Descriptions | None:
        if not self.settings["group.streams.topology.description.plugin.class"]:
            return None
        from ottla.broker.descriptions import Descriptions

        return Descriptions(self)

    def _load_metadata(self) -> LoadedMetadata:
        config = LogConfig(
            segment_bytes=self.config["metadata.log.segment.bytes"],
            segment_ms=self.config["metadata.log.segment.ms"],
            cleanup_policy=frozenset(),  # what snapshots hold is thrown away, and nothing else
        )
        configured = VoterSet(
            tuple(
                Voter(number, listeners=(VoterListener(self.config.controller_listener, *address),))
                for number, address in sorted(self.config.voters.items())
            )
        )
        loaded = load_metadata(self.storage.metadata, config, configured or None, self.clock.wall_ms())
        tell(loaded.report)
        for fault in loaded.replay.faults:
            log.warning("metadata log: %s", fault)
        for name, level in loaded.image.features.items():
            low, high = self._supported_features[name]
            if not low <= level <= high:
                raise StartError(
                    f"{name} is at level {level}; this node runs with {low} to {high}, "
                    f"unless unstable.feature.versions.enable is true"
                )
        return loaded

    @property
    def _supported_features(self) -> dict[str, tuple[int, int]]:
        return supported(is_unstable=self.config["unstable.feature.versions.enable"])

    def _voter(self) -> Voter:
        names = self.config["controller.listener.names"]
        directory_id = self.storage.metadata.properties.directory_id or bytes(16)
        listeners = tuple(
            VoterListener(each.name, each.host, each.port) for each in self.advertised.values() if each.name in names
        )
        return Voter(self.node_id, directory_id, listeners)

    def _controller_settings(self) -> ControllerSettings:
        return ControllerSettings(
            node_id=self.node_id,
            cluster_id=self.cluster_id,
            num_partitions=self.config["num.partitions"],
            default_replication_factor=self.config["default.replication.factor"],
            delete_topic_enable=self.config["delete.topic.enable"],
            min_insync_replicas=self.config["min.insync.replicas"],
            broker_session_timeout_ms=self.config["broker.session.timeout.ms"],
            supported_features=self._supported_features,
        )

    def _bootstrap_records(self) -> list[Versioned]:
        path = f"{self.storage.metadata.path}/{BOOTSTRAP_CHECKPOINT}"
        if self.disk.exists(path):
            return list(read_bootstrap(read_all(self.disk, path)))
        return bootstrap_records(levels_for_format(is_dynamic_quorum=not self.config.voters))

    # --- what connections and handlers use ----------------------------------------------------------------------------

    def write_staged(self) -> None:
        """End a connection's turn: whatever was decided in it is written, and who waited for that is answered."""
        self.coordinators.turns.end_connection()

    def connection_closed(self, connection: Connection) -> None:
        if self._share is not None:
            self._share.disconnected(connection)
        if self._telemetry is not None:
            self._telemetry.disconnected(connection)
        self.listeners[connection.peer.listener].forget(connection)
        if self._drained is not None and not any(listener.connections for listener in self.listeners.values()):
            self._drained.cancel()

    def authorize(
        self, request: Request, operation: Operation, resource_type: ResourceType, resource_name: str
    ) -> bool:
        """Whether the request's principal may do something. Without an authorizer everybody may."""
        return self._authorizer is None or self._authorizer(request, operation, resource_type, resource_name)

    def topic_name(self, topic_id: bytes) -> str | None:
        topic = self.image.topic_by_id(topic_id)
        return None if topic is None else topic.name

    def submit(self, request: Request, body: object | None = None) -> Later:
        """Take a request (or `body` in its place) to the controller; its reply comes when it is committed."""
        later = Later()

        def authorize(operation: Operation, resource_type: ResourceType, name: str) -> bool:
            return self.authorize(request, operation, resource_type, name)

        charge = unlimited if request.charge is None else request.charge.take_mutations
        self.metadata.submit(
            request.body if body is None else body, request.version, later.complete, authorize=authorize, charge=charge
        )
        return later

    def park(self, waiter: Waiter) -> bool:
        """Let a request wait; False if there are too many, or the node stops: then it must be answered now."""
        if not self.is_serving or not self.waiting.park(waiter):
            return False
        self._watch_deadlines()
        return True

    def wake(self, key: TopicPartition) -> None:
        """A partition has moved: those who wait for it are asked once the present turn is over."""
        self.coordinators.turns.moved(*key)
        self.rouse(key)

    def rouse(self, key: Hashable) -> None:
        """Ask those who wait for something once the present turn is over."""
        if self.waiting.is_awaited(key):
            if not self._woken:
                self.loop.call_soon(self._wake_now)
            self._woken[key] = None

    def _wake_now(self) -> None:
        woken, self._woken = self._woken, {}
        for key in woken:
            self.waiting.wake(key)

    def _watch_deadlines(self) -> None:
        next_at_ms = self.waiting.next_deadline()
        if next_at_ms is None:
            return
        at = self.loop.time() + max(next_at_ms - self.clock.monotonic_ms(), 0) / 1000
        if self._deadline is not None:
            if self._deadline.when() <= at + 0.0005 and not self._deadline.cancelled():
                return
            self._deadline.cancel()
        self._deadline = self.loop.call_at(at, self._expire)

    def _expire(self) -> None:
        self._deadline = None
        self.waiting.expire(self.clock.monotonic_ms())
        self._watch_deadlines()

    def run_timers(self) -> None:
        """Do what is due by the node's clock. The loop's timers do it; a clock that was moved by hand needs a push."""
        self._expire()
        for listener in self.listeners.values():
            for connection in list(listener.connections):
                connection.unmute()
        if self._share is not None:
            self._share.expire()
        self.coordinators.turns.expire()
        self.coordinators.turns.end()

    def _log_requests(self, is_wanted: bool) -> None:
        """Have a line in the log for each request, or no more."""
        if is_wanted and self._request_log is None:
            from ottla.broker.telemetry.request_log import RequestLog

            self._request_log = RequestLog(self.clock, self.topic_name)
            self.dispatch.observers.append(self._request_log)
        elif not is_wanted and self._request_log is not None:
            self.dispatch.observers.remove(self._request_log)
            self._request_log = None

    def fail(self, reason: str) -> None:
        """The node cannot go on: its own metadata cannot be kept."""
        log.critical("%s", reason)
        if self._on_fatal is not None:
            self._on_fatal(reason)

    def _went_offline(self, directory: LogDirectory) -> None:
        """A log directory has failed. The others go on, if the metadata is in one of them."""
        if self.storage.metadata.is_offline or all(each.is_offline for each in self.storage.directories):
            self.fail(f"{directory.path} has failed, and without it the node cannot go on: {directory.storage.failure}")
        else:
            self.loop.call_soon(self.membership.heartbeat)

    # --- following the metadata log -----------------------------------------------------------------------------------

    def _apply(self, changes: Changes) -> None:
        if any(resource_type == BROKER for resource_type, _ in changes.configs):
            self.settings.forget()
            self.replicas.reconfigure_all()
            for listener in self.listeners.values() if self.is_serving else ():
                listener.change_limits(self._limits(self.settings))
            if self.is_serving:
                self.housekeeping.follow_settings()
        if changes.quotas:
            self._follow_quotas()
        self.deleted_topics.follow(changes)
        self.encoded_topics.follow(changes, self.image)
        self.replicas.apply(self.image, changes)
        self.moves.follow()
        self.coordinators.follow(changes)
        if self._share is not None:
            self._share.follow(changes)
        if self._telemetry is not None:
            self._telemetry.follow(changes)
        if self.is_serving and self.node_id not in self.image.brokers:
            self.loop.call_soon(self.membership.stay)
        if self.replicas.misplaced and self.is_serving:
            self.loop.call_soon(self._assign_directories)

    def _follow_quotas(self) -> None:
        """Act on limits from now on; where nobody has one, nobody is looked at."""
        self.quotas.follow(self.image.quotas)
        self.dispatch.meter = (
            Meter(self.quotas, self.monotonic_ms, time.perf_counter_ns) if self.quotas.has_client_limits else None
        )
        for listener in self.listeners.values():
            listener.connection_rates = self.quotas.connections or None

    def _assign_directories(self) -> None:
        """Tell the controller of replicas whose directory the node has chosen itself."""
        if self.replicas.misplaced:
            self.membership.assign([(replica, replica.directory) for replica in self.replicas.misplaced])
            self.metadata.sync_soon()

    # --- stopping -----------------------------------------------------------------------------------------------------

    async def stop(self) -> None:
        """Stop cleanly."""
        self.is_serving = False
        await self._drain()
        if self.descriptions is not None:
            await self.descriptions.close()
        self._end_background()
        self.offload.finish_all()
        if self.storage.metadata.is_offline:
            self.storage.release(remove=False)  # nothing more can be noted: the next start recovers
            return
        self.membership.leave()
        self.metadata.sync()
        self._close_logs()
        self.metadata.close()
        for directory in self.storage.all:
            if not directory.is_offline:
                directory.end(self.membership.broker_epoch)
        self.storage.release(remove=True)
        self.offload.close()

    def _end_background(self) -> None:
        if self.descriptions is not None:
            self.descriptions.cancel()
        self.housekeeping.stop()
        self.coordinators.turns.close()
        if self._share is not None:
            self._share.close()
        self.slices.close()
        for server in self._web_servers:
            server.close()

    async def _drain(self) -> None:
        for listener in self.listeners.values():
            listener.stop_accepting()
        self.waiting.expire(2**63)  # whoever waits for something is answered with what there is
        self.coordinators.stop()
        for listener in self.listeners.values():
            listener.drain()
        if any(listener.connections for listener in self.listeners.values()):
            self._drained = self.loop.create_future()
            await asyncio.wait([self._drained], timeout=DRAIN_MAX_SECONDS)
        for listener in self.listeners.values():
            listener.close()

    def _close_logs(self) -> None:
        self.replicas.write_staged()
        for directory in self.storage.directories:
            if directory.is_offline:
                continue
            logs = self.replicas.logs(directory) + self.moves.logs(directory)
            for partition in logs:
                partition.close()
            directory.write_checkpoints(logs)
            directory.write_high_watermarks(logs)
            directory.write_cleaner_offsets()

    async def kill(self) -> None:
        """Stop as a crash would: nothing is written any more. For tests, and for a disk that has failed."""
        self.is_serving = False
        self._end_background()
        for listener in self.listeners.values():
            listener.close()
        self.offload.close()
        self.storage.release(remove=False)


def _windows(config: NodeConfig, prefix: str) -> Windows:
    return Windows(config[f"{prefix}.window.num"], config[f"{prefix}.window.size.seconds"] * 1000)


def random_positive() -> int:
    """A random int32 above 0 or 0."""
    return int.from_bytes(random_uuid()[:4], "big") & 0x7FFFFFFF
