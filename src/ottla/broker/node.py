"""A node: puts the areas of the broker together, from start to stop.

Start, in an order that does no harm when it fails half-way: bind the ports and lock the log directories; format empty
directories; open them; read the metadata log; build the node; become leader of the quorum (quorum-state first) and
register; load the partitions; unfence the broker; sync; serve. Stop: accept no more clients and answer what
they asked; leave the cluster, then the quorum; close the logs; write the checkpoints; write the clean-shutdown markers,
last; release the locks.

No area of the broker imports this module. What an area needs of the others it names as Protocols of its own (`ports.py`
in its folder), and a node implements all of them.
"""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from ottla.broker.config.node_config import ConfigError, ListenerConfig, NodeConfig, StartError
from ottla.broker.config.settings import Settings
from ottla.broker.controller.active_controller import ActiveController
from ottla.broker.controller.broker_lifecycle import BrokerLifecycle
from ottla.broker.controller.broker_watch import BrokerWatch
from ottla.broker.controller.channel import ControllerChannel
from ottla.broker.controller.deleted_topics import DeletedTopics
from ottla.broker.controller.encoded_topics import EncodedTopics
from ottla.broker.controller.metadata_chores import MetadataChores
from ottla.broker.controller.metadata_load import LoadedMetadata
from ottla.broker.controller.producer_ids import ProducerIds
from ottla.broker.controller.publisher import MetadataPublisher
from ottla.broker.controller.raft_log import RaftLog
from ottla.broker.controller.remote_controller import RemoteController
from ottla.broker.controller.startup import (
    bootstrap_servers,
    controller_settings,
    first_records,
    own_voter,
    quorum_settings,
    read_metadata,
)
from ottla.broker.coordinators import Coordinators
from ottla.broker.coordinators.edge import Perform
from ottla.broker.coordinators.internal_topics import GROUPS, SHARE_STATE, TRANSACTIONS
from ottla.broker.handlers import SERVED, load_api
from ottla.broker.loop.child_process import ChildProcess
from ottla.broker.loop.clock import Clock, SystemClock
from ottla.broker.loop.cooperative_tasks import CooperativeTasks
from ottla.broker.loop.housekeeping import Housekeeping, Period
from ottla.broker.loop.offload import Offload
from ottla.broker.loop.preload import Preload
from ottla.broker.loop.purgatory import Purgatory
from ottla.broker.loop.randomness import Randomness
from ottla.broker.network.acl_authorizer import AclAuthorizer, make_authorizer
from ottla.broker.network.closed_connections import ClosedConnections
from ottla.broker.network.connection import Connection, ConnectionLimits
from ottla.broker.network.credentials import NodeCredentials
from ottla.broker.network.dispatch import Dispatch, Observer
from ottla.broker.network.file_limit import current_limit, shares_of
from ottla.broker.network.handshake_turns import HandshakeTurns
from ottla.broker.network.listener import ConnectionCount, Listener, ListenerLimits, address_limits, bind
from ottla.broker.network.listener_security import ListenerSettings
from ottla.broker.network.login_failures import LoginFailures
from ottla.broker.network.logins import Logins, Tell
from ottla.broker.network.memory_pool import MemoryPool
from ottla.broker.network.node_security import NodeSecurity, web_security
from ottla.broker.network.quotas.charges import Meter
from ottla.broker.network.quotas.quotas import Quotas
from ottla.broker.network.quotas.rates import Windows
from ottla.broker.network.request import DelayedResponse, Peer, Request
from ottla.broker.network.sockets import Bind, Sockets, open_web_server
from ottla.broker.peers.broker_connections import BrokerConnections
from ottla.broker.peers.peer_connection import Address, Dial, PeerConnection, PeerEvent, dial, no_login
from ottla.broker.peers.peer_security import PeerSecurity, probing_dial
from ottla.broker.peers.raft_peers import RaftPeers
from ottla.broker.replicas.fetch_sessions import FetchSessions
from ottla.broker.replicas.in_sync_changes import InSyncChanges
from ottla.broker.replicas.log_chores import LogChores
from ottla.broker.replicas.log_dir_moves import LogDirMoves
from ottla.broker.replicas.partition_loader import PartitionLoader
from ottla.broker.replicas.replica_fetcher import ReplicaFetchers
from ottla.broker.replicas.replicas import Replica, Replicas
from ottla.broker.replicas.storage import NodeStorage, lock_directories, release
from ottla.broker.replicas.unit_of_work import UnitOfWork
from ottla.broker.telemetry.audit_events import AuditEvents
from ottla.broker.telemetry.audit_log import open_audit_log
from ottla.broker.telemetry.loggers import AUDIT, REQUESTS, Loggers
from ottla.broker.telemetry.metrics import Metrics
from ottla.core.coordinator.contract import Authorize, allow_all
from ottla.core.metadata.config_rules import Rules
from ottla.core.metadata.delegation_tokens import TokenSecrets
from ottla.core.metadata.image import BROKER, Changes, MetadataImage
from ottla.log.directory import LogDirectory
from ottla.log.disk import Disk, OsDisk
from ottla.log.names import TopicPartition
from ottla.security.sasl_server import accepts_password
from ottla.wire.access import Operation, ResourceType
from ottla.wire.batch import BatchView, split_batches
from ottla.wire.exposition import Sample
from ottla.wire.index import MESSAGES
from ottla.wire.types.broker_heartbeat import BrokerHeartbeatRequest

__all__ = ["Authorizer", "Node", "StartError"]

if TYPE_CHECKING:
    from ottla.broker.coordinators.target_computations import MakeWorker, TargetComputations
    from ottla.broker.descriptions import DescriptionPlugin
    from ottla.broker.network.web_server import WebServer
    from ottla.broker.share import ShareNode
    from ottla.broker.telemetry.clients.telemetry import Telemetry
    from ottla.broker.telemetry.traffic_page import TrafficPage
    from ottla.broker.transactions.remote_coordinators import RemoteCoordinators
    from ottla.core.replication.partition_leader import InSyncChange, PartitionLeader
    from ottla.log.errors import StorageError

log = logging.getLogger(__name__)

DRAIN_MAX_SECONDS: Final = 5.0
SESSION_EVICTION_MS: Final = 120_000
"""A fetch session unused for longer gives its place to a new one."""
_SECOND_MS: Final = 1000
_IDLE_CHECK_MS: Final = 10_000
_SECURITY_CHECK_MS: Final = 5_000
_FREEZE_EVERY: Final = 1000
"""Partitions and topics that came since the garbage collector was last told to spare what there is."""


Authorizer = Callable[[Request, Operation, ResourceType, str], bool]
MakeOffload = Callable[[asyncio.AbstractEventLoop], Offload]
MakeDispatch = Callable[..., Dispatch]
"""`Dispatch`, or what stands in for it in tests; called as it is."""


class WebServers(NamedTuple):
    """The web servers of a node. They listen before there is anything to show."""

    metrics: WebServer | None
    metrics_port: int | None
    inspect: WebServer | None
    inspect_port: int | None

    def close(self) -> None:
        for server in (self.metrics, self.inspect):
            if server is not None:
                server.close()


class Node:
    """One broker and controller. `await Node.start(config)`, then `await node.stop()`."""

    def __init__(
        self,
        config: NodeConfig,
        *,
        clock: Clock,
        randomness: Randomness,
        disk: Disk,
        offload: MakeOffload,
        make_worker: MakeWorker,
        sockets: Sockets,
        dial: Dial,
        pages: WebServers,
        storage: NodeStorage,
        loaded: LoadedMetadata,
        observers: Sequence[Observer],
        on_fatal: Callable[[str], None] | None,
        authorizer: Authorizer | None,
        dispatch: MakeDispatch,
    ) -> None:
        """Build the node from what was opened. Nothing runs yet."""
        self.config = config
        self.clock = clock
        self.monotonic_ms = clock.monotonic_ms
        self.randomness = randomness
        self.disk = disk
        self.storage = storage
        self.is_serving = False
        self._pages = pages
        self._dial = dial
        self._on_fatal = on_fatal
        self._authorizer = authorizer or make_authorizer(config)
        self._acls = self._authorizer if isinstance(self._authorizer, AclAuthorizer) else None
        self._share: ShareNode | None = None
        self._telemetry: Telemetry | None = None

        self.loop = asyncio.get_running_loop()
        self.offload = offload(self.loop)
        self.cooperative_tasks = CooperativeTasks(self.loop, clock)
        self.purgatory = Purgatory(self.loop, clock)

        rules = Rules(config.static)
        self.image = loaded.image
        self.metadata_error_count = len(loaded.replay.faults)
        if self._acls is not None:
            self._acls.follow(self.image.acls, list(self.image.acls))
        self.settings = Settings(config, rules, self.image)
        self.encoded_topics = EncodedTopics(self.cooperative_tasks, clock, self.image)
        self.deleted_topics = DeletedTopics(clock)

        self.fetch_sessions = FetchSessions(
            config["max.incremental.fetch.session.cache.slots"], SESSION_EVICTION_MS, lambda: randomness.below(1 << 31)
        )
        self.replicas = Replicas(
            self.node_id,
            storage.directories,
            self.settings,
            self.image,
            clock,
            fetch_sessions=self.fetch_sessions,
            wake=self._partition_moved,
            wake_followers=self.purgatory.wake,
            offload=self.offload,
            new_uuid=randomness.uuid,
            went_offline=self._went_offline,
            change_isr=self._change_isr,
            leader_changed=self._partition_leader_changed,
            removed=lambda replica: self.fetchers.forget(replica),
        )
        self.fetchers = ReplicaFetchers(self)
        self.brokers = BrokerConnections(self.loop, self.image, self.address_of, self.connect_to_broker)
        self.unit_of_work = UnitOfWork(self.loop, clock, self.replicas)
        self.log_dir_moves = LogDirMoves(self)

        self.advertised = sockets.advertised()
        self.controller_listeners = frozenset(config["controller.listener.names"])
        voter = own_voter(config, storage.metadata, self.advertised.values())
        self.raft = RaftLog(
            loaded,
            voter,
            self.cluster_id,
            quorum_settings(config),
            bootstrap=bootstrap_servers(config),
            peers=RaftPeers(self._connect, self._peer_gone),
            clock=clock,
            loop=self.loop,
            offload=self.offload,
            random=randomness.below,
        )
        self.token_secrets = TokenSecrets(config["delegation.token.secret.key"])
        self.credentials = NodeCredentials(self.image, self.token_secrets, clock, randomness, self.offload)
        self.security = NodeSecurity(config, self.settings.as_texts, self.credentials, dial)
        self.publisher = MetadataPublisher(self.image, self.cooperative_tasks, self)
        for batch in loaded.uncommitted:
            self.publisher.expect_batch(batch)
        self.controller = ActiveController(
            self.raft,
            self.publisher,
            self.cooperative_tasks,
            rules,
            controller_settings(config, self.cluster_id),
            clock,
            randomness.uuid,
        )
        self.broker_watch = BrokerWatch(self.loop, self.controller, self._probe)
        self.remote_controller = RemoteController(self._controller_address, self._connect)
        self.controller_channel = ControllerChannel(
            self.loop, self.controller, self.remote_controller, self.publisher, self
        )
        self._active: asyncio.Future[None] = self.loop.create_future()
        """Done when this node has become the active controller."""
        self._failure: asyncio.Future[str] = self.loop.create_future()
        """Why the node cannot go on, if that is so before it serves."""
        self.broker_lifecycle = BrokerLifecycle(
            self.settings, storage, self.publisher, self.controller_channel, randomness.uuid, self.clock
        )
        self.producer_ids = ProducerIds(self.controller_channel, self.broker_lifecycle)
        self.in_sync_changes = InSyncChanges(
            self.loop, self.controller_channel, self.broker_lifecycle, self.replicas.advance
        )

        self.descriptions = self._load_descriptions()
        """The plugin that keeps topology descriptions, if there is one."""
        self.coordinators = Coordinators(
            self,
            {
                GROUPS.name: self._group_performers,
                TRANSACTIONS.name: self._transaction_performers,
                SHARE_STATE.name: self._share_state_performers,
            },
        )
        self.world = self.coordinators.world
        self.world.own_assignors = self._load_own_assignors()
        self._make_worker = make_worker
        self._target_computations: TargetComputations | None = None
        self.internal_topics = self.coordinators.internal_topics
        self.groups = self.coordinators.groups
        self.transactions = self.coordinators.transactions
        self.share_state = self.coordinators.share_state

        self.quotas = Quotas(_windows(config, "quota"), _windows(config, "controller.quota"))
        self._started_at = clock.wall_ms() / 1000
        self.metrics = Metrics(clock, self._samples)
        is_guarded = self._authorizer is not None or self.security.is_guarded
        self._audit_log = open_audit_log(config, disk, self.offload, clock.wall_ms, is_guarded=is_guarded)
        self.tell_audit: Tell = self._audit_log.add if self._audit_log is not None else lambda event, fields: None
        self._audit_events = AuditEvents(self.tell_audit) if is_guarded else None
        watching = [each for each in (self.metrics, self._audit_events) if each is not None]
        self.dispatch = dispatch(
            self, load_api, (*watching, *observers), is_unstable=config["unstable.api.versions.enable"]
        )
        self.loggers = Loggers({REQUESTS: self._log_requests, AUDIT: self._tell_allowed})
        self._request_log: Observer | None = None
        self._tells_allowed = False
        limit_bytes = config["queued.max.request.bytes"]
        self.memory_pool = MemoryPool(limit_bytes) if limit_bytes > 0 else MemoryPool()
        self.closed_connections = ClosedConnections()
        failures = LoginFailures(config["ottla.login.failures.per.minute"])
        self.logins = Logins(failures, self.monotonic_ms, self.tell_audit)
        self.handshake_turns = HandshakeTurns(self.loop, clock.precise_ns)
        self.listeners = self._make_listeners(sockets)
        self._drained: asyncio.Future[None] | None = None
        self._follow_quotas()

        self.log_chores = LogChores(self)
        self.metadata_chores = MetadataChores(self)
        self.housekeeping = Housekeeping(self.loop, clock)
        self._preload: Preload | None = None
        self._frozen_count = 0

    def _make_listeners(self, sockets: Sockets) -> dict[str, Listener]:
        connection_count = ConnectionCount(shares_of(current_limit(), self.config["ottla.open.files.max"]).connections)
        return {
            name: Listener(
                name,
                self.loop,
                sock,
                self,
                self.dispatch,
                offered_apis=self._offered_apis(name),
                limits=self._limits(name, self.config, self.config.static),
                connection_count=connection_count,
                security=self.security.by_listener[name],
            )
            for name, sock in sockets.by_listener.items()
        }

    def _limits(self, name: str, settings: NodeConfig | Settings, texts: Mapping[str, str]) -> ListenerLimits:
        own = ListenerSettings(texts, name)
        return ListenerLimits(
            creation_rate=own["max.connection.creation.rate"],
            connections_max=own["max.connections"],
            connections_per_ip_max=settings["max.connections.per.ip"],
            overrides=address_limits(settings["max.connections.per.ip.overrides"]),
            idle_max_ms=settings["connections.max.idle.ms"],
            backlog=settings["socket.listen.backlog.size"],
            connection=ConnectionLimits(settings["socket.request.max.bytes"], self.memory_pool),
        )

    def _offered_apis(self, listener: str) -> frozenset[int]:
        role = "controller" if listener in self.controller_listeners else "broker"
        offered = {entry.key for entry in MESSAGES.values() if entry.kind == "request" and role in entry.listeners}
        return frozenset(key for key in SERVED if key in offered)

    @property
    def node_id(self) -> int:
        return self.config.node_id

    @property
    def cluster_id(self) -> str:
        return self.storage.cluster_id

    @property
    def metrics_port(self) -> int | None:
        return self._pages.metrics_port

    @property
    def inspect_port(self) -> int | None:
        return self._pages.inspect_port

    # --- areas that most nodes never need: made when somebody first asks for them -------------------------------------

    @property
    def share(self) -> ShareNode:
        """The share groups of the node, made on first use."""
        if self._share is None:
            from ottla.broker.share import ShareNode

            self._share = ShareNode(self, self)
        return self._share

    @property
    def telemetry(self) -> Telemetry:
        """The metrics that clients push, made on first use."""
        if self._telemetry is None:
            from ottla.broker.telemetry.clients.telemetry import Telemetry

            self._telemetry = Telemetry(self.settings, self.image, self.clock, self.randomness)
        return self._telemetry

    @cached_property
    def traffic(self) -> TrafficPage:
        """The traffic of clients, for those who watch it."""
        from ottla.broker.telemetry.traffic_page import TrafficPage

        return TrafficPage(self)

    @cached_property
    def remote_transactions(self) -> RemoteCoordinators:
        """The transaction coordinators on other nodes."""
        from ottla.broker.transactions.remote_coordinators import RemoteCoordinators

        return RemoteCoordinators(self.brokers)

    def _load_descriptions(self) -> DescriptionPlugin | None:
        plugin_class = self.settings["group.streams.topology.description.plugin.class"]
        if not plugin_class:
            return None
        from ottla.broker.descriptions import DescriptionPlugin

        return DescriptionPlugin(self, plugin_class)

    def _load_own_assignors(self) -> Mapping[str, str]:
        if "group.consumer.assignors" not in self.config.static:
            return {}
        from ottla.broker.coordinators.own_assignors import load_own_assignors

        return load_own_assignors(self.config["group.consumer.assignors"])

    # --- who performs the effects of coordinators' cores --------------------------------------------------------------

    def _group_performers(self) -> dict[type, Perform]:
        from ottla.broker.coordinators import streams_topics
        from ottla.broker.coordinators.target_computations import TargetComputations
        from ottla.broker.share import effects

        of_descriptions = {} if self.descriptions is None else self.descriptions.performers()
        self._target_computations = TargetComputations(self, self._make_worker)
        return (
            streams_topics.performers(self)
            | effects.performers(lambda: self.share)
            | of_descriptions
            | self._target_computations.performers()
        )

    def _transaction_performers(self) -> dict[type, Perform]:
        from ottla.broker.transactions import markers

        return markers.performers(self)

    def _share_state_performers(self) -> dict[type, Perform]:
        from ottla.broker.share import effects

        return effects.state_performers(self.share_state)

    # --- starting -----------------------------------------------------------------------------------------------------

    @classmethod
    async def start(
        cls,
        config: NodeConfig,
        *,
        clock: Clock | None = None,
        randomness: Randomness | None = None,
        disk: Disk | None = None,
        offload: MakeOffload = Offload,
        make_worker: MakeWorker = ChildProcess,
        bind: Bind = bind,
        dial: Dial = dial,
        observers: Sequence[Observer] = (),
        on_fatal: Callable[[str], None] | None = None,
        authorizer: Authorizer | None = None,
        dispatch: MakeDispatch = Dispatch,
    ) -> Self:
        """A node that serves. Raises an exception with a clear text if that is not possible; nothing is left open."""
        clock, randomness, disk = clock or SystemClock(), randomness or Randomness(), disk or OsDisk()
        with ExitStack() as opened:
            sockets = Sockets(config, bind)
            opened.callback(sockets.close)
            pages = await _open_pages(config)
            opened.callback(pages.close)
            controller = sockets.advertised().get(config.controller_listener)
            controller_port = None if controller is None else controller.port
            storage = _open_storage(config, disk, clock.wall_ms(), controller_port, randomness)
            opened.callback(storage.release, remove=False)
            node = cls(
                config,
                clock=clock,
                randomness=randomness,
                disk=disk,
                offload=offload,
                make_worker=make_worker,
                sockets=sockets,
                dial=dial,
                pages=pages,
                storage=storage,
                loaded=read_metadata(config, storage.metadata, clock.wall_ms()),
                observers=observers,
                on_fatal=on_fatal,
                authorizer=authorizer,
                dispatch=dispatch,
            )
            try:
                await node._boot_unless_it_fails()
            except BaseException:
                await node.kill()
                raise
            opened.pop_all()
        node._serve()
        return node

    async def _boot_unless_it_fails(self) -> None:
        """Boot; StartError as soon as it is clear that the node cannot go on."""
        boot = self.loop.create_task(self._boot())
        try:
            either: tuple[asyncio.Future[Any], ...] = (boot, self._failure)
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        finally:
            is_booted = boot.done()
            boot.cancel()
        if not is_booted:
            raise StartError(self._failure.result())
        self._failure.cancel()
        boot.result()

    async def _boot(self) -> None:
        """Become leader of the quorum, register, load the partitions."""
        for directory in self.storage.all:
            if not directory.is_offline:
                directory.begin()
        await self._join_quorum()
        advertised, own = self.advertised.values(), self.controller_listeners
        if self.config.is_controller:
            await self.broker_lifecycle.register_controller([each for each in advertised if each.name in own])
        if self.config.is_broker:
            await self._join_cluster([each for each in advertised if each.name not in own])

    async def _join_cluster(self, listeners: Sequence[ListenerConfig]) -> None:
        """Register as broker, load the partitions, and be unfenced."""
        await self.broker_lifecycle.register(listeners)
        await self.broker_lifecycle.heartbeat(want_fence=True)
        await self._load_partitions()
        self._assign_directories()
        await self.broker_lifecycle.heartbeat()
        await self.coordinators.start()
        if self.descriptions is not None:
            await self.descriptions.start()

    async def _load_partitions(self) -> None:
        loading = PartitionLoader(
            self.storage.directories, self.image, self.replicas, self.settings, self.clock, self.randomness.uuid
        )
        for key, (directory, copy) in (await loading.run()).items():
            self.log_dir_moves.resume(self.replicas.by_key[key], directory, copy)

    def _serve(self) -> None:
        self.loggers.changed()
        self.replicas.begin_round()
        self._frozen_count = self._long_lived_count
        self._plan_chores()
        self.log_chores.remove_leftovers()
        self.housekeeping.start()
        self._preload = Preload(self.loop, self.clock)
        self.is_serving = self.purgatory.is_open = True
        self.fetchers.begin(self.replicas)
        for directory in self.storage.directories:
            directory.storage.when_failed = partial(self._storage_failed, directory)
        self._show_pages()
        self.log_dir_moves.start()
        self._follow_limits()
        for listener in self.listeners.values():
            listener.start()

    def _show_pages(self) -> None:
        for server in (self._pages.metrics, self._pages.inspect):
            if server is not None:
                server.check = self._check_web_user
        if self._pages.metrics is not None:
            from ottla.broker.telemetry.metrics_page import metrics_page

            self._pages.metrics.find = metrics_page(self.metrics.page)
        if self._pages.inspect is not None:
            from ottla.broker.telemetry.inspect_listener import inspect_page

            self._pages.inspect.find = inspect_page(self)

    def access_view(self) -> dict[str, object]:
        """Failed logins and refused requests, for the inspect listener."""
        refused = [] if self._audit_events is None else self._audit_events.view()
        return {"node": self.node_id, "failed_logins": self.logins.view(), "refused_requests": refused}

    def _check_web_user(self, host: str, user: str, password: str) -> bool:
        """Whether a user of the listener that secures the pages has given his password."""
        listener = self.config["ottla.web.security.listener.name"].upper()
        peer = Peer(host, 0, listener)
        if self.logins.is_shut_out(peer):
            return False
        if accepts_password(self.security.by_listener[listener].mechanisms, user, password):
            return True
        self.logins.failed(peer, "HTTP", "wrong user or password for a web page", user)
        return False

    def _plan_chores(self) -> None:
        """Add the periodic chores; `housekeeping` has the table."""
        add, logs, metadata = self.housekeeping.add, self.log_chores, self.metadata_chores
        first_ms = self.settings["log.initial.task.delay.ms"]
        metadata.begin()
        add(self._period("broker.heartbeat.interval.ms"), metadata.heartbeat)
        add(metadata.fencing_period_ms, metadata.fence)
        add(lambda: int(self.settings["replica.lag.time.max.ms"]) // 2, self.replicas.shrink_isrs)
        add(self._period("log.flush.offset.checkpoint.interval.ms"), logs.write_recovery_points, first_ms)
        add(self._period("replica.high.watermark.checkpoint.interval.ms"), logs.write_high_watermarks)
        add(self._period("log.retention.check.interval.ms"), logs.apply_retention, first_ms)
        add(self._period("log.cleaner.backoff.ms"), logs.compact)
        add(self._period("producer.id.expiration.check.interval.ms"), logs.expire_producers)
        add(lambda: _SECOND_MS, logs.flush)
        add(lambda: _SECOND_MS, logs.remove_files)
        add(lambda: _SECOND_MS, metadata.snapshot)
        add(lambda: _IDLE_CHECK_MS, self._close_idle)
        add(lambda: _SECURITY_CHECK_MS, self._follow_security)
        add(lambda: _SECOND_MS, self._freeze)
        if self.settings["metadata.max.idle.interval.ms"] > 0:
            add(self._period("metadata.max.idle.interval.ms"), metadata.append_no_op)

    def _period(self, name: str) -> Period:
        return lambda: int(self.settings[name])

    def _close_idle(self) -> None:
        now_ms = self.clock.monotonic_ms()
        self.memory_pool.expire(now_ms)
        for listener in self.listeners.values():
            listener.close_idle(now_ms)

    def _follow_limits(self) -> None:
        """Take over limits of listeners that have changed."""
        texts = self.settings.as_texts()
        for name, listener in self.listeners.items():
            try:
                listener.change_limits(self._limits(name, self.settings, texts))
            except ConfigError as error:
                log.warning("changed limits of listener %s were rejected: %s", name, error)

    def _follow_security(self) -> None:
        """Take over security settings, certificates and keys that have changed."""
        self.credentials.refresh_keys()
        if self.security.follow():
            for name, listener in self.listeners.items():
                listener.security = self.security.by_listener[name]

    @property
    def _long_lived_count(self) -> int:
        return len(self.replicas.by_key) + len(self.image.topics_by_id)  # a controller has topics and no replicas

    def _freeze(self) -> None:
        """Exclude long-lived objects from garbage collection: a scan of 10,000 partitions takes 70 ms."""
        count = self._long_lived_count
        if count >= self._frozen_count + _FREEZE_EVERY:
            self._frozen_count = count
            self.spare_objects()

    def spare_objects(self) -> None:
        """Exclude all objects that there are from garbage collection: many long-lived ones have come.

        Only in a process that is the node's own, which froze what it had loaded: others have garbage to collect.
        """
        if gc.get_freeze_count():
            gc.freeze()

    # --- what connections and handlers use ----------------------------------------------------------------------------

    def write_staged(self) -> None:
        """End a connection's turn: write what was decided in it, and answer the requests that wait for that."""
        self.unit_of_work.end_connection()

    def connection_closed(self, connection: Connection) -> None:
        if self._share is not None:
            self._share.disconnected(connection)
        if self._telemetry is not None:
            self._telemetry.disconnected(connection)
        self.broker_watch.connection_closed(connection)
        self.listeners[connection.peer.listener].forget(connection)
        if self._drained is not None and not any(listener.connections for listener in self._client_listeners):
            self._drained.cancel()

    def authorize(
        self, request: Request, operation: Operation, resource_type: ResourceType, resource_name: str
    ) -> bool:
        """Whether the request's principal may do something. Without an authorizer everybody may."""
        if self._authorizer is None:
            return True
        is_allowed = self._authorizer(request, operation, resource_type, resource_name)
        if is_allowed and self._tells_allowed and self._audit_events is not None:
            self._audit_events.allowed(request, operation, resource_type, resource_name)
        return is_allowed

    def authorizer_of(self, request: Request) -> Authorize:
        """What the request's principal may do, as a function of operation, resource type and name."""
        return allow_all if self._authorizer is None else partial(self.authorize, request)

    def authorize_any(self, request: Request, operation: Operation, resource_type: ResourceType) -> bool:
        """Whether there is any resource of a type to which the request's principal may do something."""
        if self._acls is not None:
            return self._acls.allows_any(request, operation, resource_type)
        names = self.image.topics_by_name if resource_type is ResourceType.TOPIC else ()
        return self._authorizer is None or any(
            self.authorize(request, operation, resource_type, name) for name in names
        )

    @property
    def has_acls(self) -> bool:
        """Whether access control lists decide."""
        return self._acls is not None

    def submit(self, request: Request, body: object | None = None) -> DelayedResponse:
        """Pass a request (or `body` in its place) to the controller; the reply comes when its records are committed."""
        later = DelayedResponse()
        is_for_controllers = request.connection.peer.listener in self.controller_listeners
        if isinstance(request.body, BrokerHeartbeatRequest) and self.controller.is_active:
            self.broker_watch.heard(request.body.broker_id, request.body.broker_epoch, request.connection)
        send = self.controller_channel.serve if is_for_controllers else self.controller_channel.send
        send(request.body if body is None else body, request.version, later.complete, client=request)
        return later

    def _change_isr(self, replica: Replica, leading: PartitionLeader, change: InSyncChange) -> None:
        self.in_sync_changes.ask(replica, leading, change)

    def own_epoch(self) -> int:
        return self.broker_lifecycle.broker_epoch

    def address_of(self, broker_id: int) -> Address | None:
        """Where another broker listens for brokers."""
        broker = self.image.brokers.get(broker_id)
        name = self.config.broker_endpoint.name
        found = next((each for each in broker.endpoints if each.name == name), None) if broker is not None else None
        return None if found is None else Address(found.host, found.port)

    def connect_to_broker(self, address: Address) -> PeerConnection:
        timeout_s = self.config["replica.socket.timeout.ms"] / 1000
        return self._peer(address, lambda event: None, self.security.of_brokers, timeout_s)

    def follower_moved(self, replica: Replica) -> None:
        self.purgatory.wake(replica.topic_partition)

    def follower_truncated(self, replica: Replica) -> None:
        replica.directory.lower_cleaner_offset(replica.topic_partition, replica.log_end_offset)
        self.log_dir_moves.follow_truncation(replica)

    def follower_failed(self, replica: Replica, error: StorageError) -> None:
        self.replicas.directory_failed(replica.directory, error)

    def followers_written(self, replicas: list[Replica], then: Callable[[], None]) -> None:
        if self.replicas.waits_for_disk:
            self.replicas.sync(replicas, then)
        else:
            then()

    def _partition_leader_changed(self, replica: Replica) -> None:
        self.fetchers.follow(replica)
        self.coordinators.leader_changed(replica)

    def _partition_moved(self, key: TopicPartition) -> None:
        """A partition's log, leader or high watermark has changed: wake the operations that wait for it."""
        self.unit_of_work.moved(*key)
        self.purgatory.wake(key)

    def run_timers(self) -> None:
        """Do what is due by the node's clock. The loop's timers do this; tests that move the clock call it."""
        self.purgatory.expire()
        for listener in self.listeners.values():
            for connection in list(listener.connections):
                connection.unmute()
        if self._share is not None:
            self._share.expire()
        self.unit_of_work.expire()
        self.unit_of_work.end()

    def _log_requests(self, is_wanted: bool) -> None:
        """Switch the request log on or off."""
        if is_wanted and self._request_log is None:
            from ottla.broker.telemetry.request_log import RequestLog

            self._request_log = RequestLog(self.clock, self.image.topic_name)
            self.dispatch.observers.append(self._request_log)
        elif not is_wanted and self._request_log is not None:
            self.dispatch.observers.remove(self._request_log)
            self._request_log = None

    def _tell_allowed(self, is_wanted: bool) -> None:
        """Switch the lines of the audit log about what was allowed on or off."""
        self._tells_allowed = is_wanted

    def fail(self, reason: str) -> None:
        """Stop the node: its metadata cannot be written."""
        log.critical("%s", reason)
        if self._on_fatal is not None:
            self._on_fatal(reason)

    def _storage_failed(self, directory: LogDirectory, error: StorageError) -> None:
        """Somebody has found out, maybe in a thread, that a log directory has failed."""
        self.loop.call_soon_threadsafe(self.replicas.note_failure, directory, error)

    def _went_offline(self, directory: LogDirectory) -> None:
        """A log directory has failed. The others go on, if the metadata is in one of them."""
        if self.storage.metadata.is_offline or all(each.is_offline for each in self.storage.directories):
            self.fail(f"{directory.path} has failed, and the node cannot run without it: {directory.storage.failure}")
        elif self.config.is_broker:
            self.loop.call_soon(self.broker_lifecycle.stay)

    def _samples(self) -> Iterator[Sample]:
        """What the metrics page shows beside the request counts."""
        from ottla.broker.share.state_samples import state_samples
        from ottla.broker.telemetry import samples
        from ottla.broker.telemetry.metadata_samples import metadata_samples

        yield from samples.traffic_samples(self.replicas)
        yield from samples.partition_samples(self.replicas)
        yield from metadata_samples(self)
        yield from samples.coordinator_samples(self.coordinators)
        if self._share is not None:
            yield from self._share.samples()
            yield from state_samples(self.share_state, self._share.persister.counts)
        if self._telemetry is not None:
            yield from self._telemetry.samples()
        yield from samples.quota_samples(self.quotas, self.listeners, self.monotonic_ms())
        if self.descriptions is not None:
            yield from samples.description_samples(self.descriptions)
        yield from self.logins.samples()
        if self._audit_events is not None:
            yield from self._audit_events.samples()
        yield from samples.connection_samples(self.listeners, self.closed_connections, len(self.purgatory))
        yield from samples.process_samples(self._started_at)

    # --- the quorum ---------------------------------------------------------------------------------------------------

    async def _join_quorum(self) -> None:
        """Take part in the quorum. The only voter becomes the active controller; others must be reached by theirs."""
        is_alone = self.raft.quorum.control.voters.ids == (self.node_id,)
        for name in () if is_alone else self.controller_listeners & self.listeners.keys():
            self.listeners[name].start()
        self.raft.start(self)
        if is_alone:
            await self._active

    def appended(self, batches: Sequence[bytes | memoryview]) -> None:
        """The metadata log has batches that this node has not decided itself."""
        for data in batches:
            for batch in split_batches(data):
                assert isinstance(batch, BatchView)
                self.publisher.expect_batch(batch)

    def truncated(self, end_offset: int) -> None:
        """The metadata log was cut."""
        self.publisher.forget_from(end_offset)

    def replaced(self, image: MetadataImage) -> None:
        """A snapshot has replaced the metadata log."""
        self.publisher.load(image)

    def committed(self, end_offset: int) -> None:
        """Records of the metadata log are committed: publish them, then reply to those who wait for them."""
        self.publisher.committed(end_offset)
        if not self.controller.is_active and self.raft.is_leader:
            self.publisher.when_at(end_offset, partial(self._activate, self.raft.quorum.epoch))
        self.controller.committed(end_offset)

    def _activate(self, epoch: int) -> None:
        """Become the active controller of an epoch; the image holds all that earlier leaders have written."""
        if self.controller.is_active or not self.raft.is_leader or self.raft.quorum.epoch != epoch:
            return
        first = first_records(self.config, self.disk, self.storage.metadata)
        is_new = self.config.is_broker and self.broker_lifecycle.broker_epoch < 0
        self.controller.activate(first, own_broker_id=self.node_id if is_new else None)
        self.broker_watch.begin(each for each in self.image.brokers.values() if each.broker_id != self.node_id)
        if not self._active.done():
            self._active.set_result(None)
        self.controller_channel.controller_changed()

    def _controller_address(self) -> Address | None:
        """Where the active controller listens, if it is on another node."""
        leader = self.raft.leader
        return None if leader is None else Address(leader.host, leader.port)

    def _connect(
        self, address: Address, told: Callable[[PeerEvent], None] = lambda event: None, timeout_s: float | None = None
    ) -> PeerConnection:
        """A connection to another node; what is learned about it is told."""
        if timeout_s is None:
            timeout_s = self.config["controller.quorum.request.timeout.ms"] / 1000
        return self._peer(address, told, self.security.of_controllers, timeout_s)

    def _probe(
        self, address: Address, security_protocol: int, told: Callable[[PeerEvent], None], timeout_s: float
    ) -> PeerConnection:
        """A connection that only finds out whether a broker answers."""
        return self._peer(address, told, PeerSecurity(probing_dial(security_protocol, self._dial), no_login), timeout_s)

    def _peer(
        self, address: Address, told: Callable[[PeerEvent], None], security: PeerSecurity, timeout_s: float
    ) -> PeerConnection:
        return PeerConnection(
            self.loop,
            address,
            str(self.node_id),
            randomness=self.randomness,
            told=told,
            dial=security.dial,
            login=security.login,
            timeout_s=timeout_s,
        )

    def _peer_gone(self, node_id: int) -> None:
        """The process of another voter is dead."""
        self.raft.peer_gone(node_id)

    def leader_changed(self) -> None:
        """The quorum has another leader, or none."""
        if self.controller.is_active and not self.raft.is_leader:
            self.controller.resign()
            self.broker_watch.end()
        self.controller_channel.controller_changed()

    def failed(self, reason: str) -> None:
        """The metadata log cannot be written."""
        if not self._failure.done():
            self._failure.set_result(reason)
        self.fail(reason)

    # --- following the metadata log -----------------------------------------------------------------------------------

    def follow_partitions(self, image: MetadataImage, changes: Changes) -> Generator[None, None, None]:
        """Follow what has changed in the partitions, a few at a time."""
        return self.replicas.apply_steps(image, changes)

    def follow_image(self, changes: Changes) -> None:
        """Follow what else has changed in the committed image."""
        if any(resource_type == BROKER for resource_type, _ in changes.configs):
            self.settings.forget()
            self.replicas.reconfigure_all()
            if self.is_serving:
                self._follow_limits()
                self._follow_security()
                self.housekeeping.follow_settings()
        if changes.quotas:
            self._follow_quotas()
        if self._acls is not None:
            self._acls.follow(self.image.acls, changes.acls)
        self.deleted_topics.follow(changes)
        self.encoded_topics.follow(changes)
        self.replicas.reconfigure(self.image, changes)
        self.log_dir_moves.follow()
        self.fetchers.follow_brokers(changes.brokers)
        self.brokers.follow(changes.brokers)
        self.coordinators.follow(changes)
        if self._share is not None:
            self._share.follow(changes)
        if self._telemetry is not None:
            self._telemetry.follow(changes)
        if self.is_serving and self.config.is_broker and self.node_id not in self.image.brokers:
            self.loop.call_soon(self.broker_lifecycle.stay)
        if self.replicas.misplaced and self.is_serving:
            self.loop.call_soon(self._assign_directories)

    def _follow_quotas(self) -> None:
        """Apply changed quotas; without any, requests are not measured."""
        self.quotas.follow(self.image.quotas)
        self.dispatch.meter = (
            Meter(self.quotas, self.monotonic_ms, self.clock.precise_ns) if self.quotas.has_client_limits else None
        )
        for listener in self.listeners.values():
            listener.connection_rates = self.quotas.connections or None

    def _assign_directories(self) -> None:
        """Tell the controller the directories of replicas that the node has placed itself."""
        placed = [
            (replica, replica.directory)
            for replica in self.replicas.misplaced
            if not self.log_dir_moves.is_arriving(replica)
        ]
        if placed:
            self.broker_lifecycle.assign(placed, lambda: None)

    # --- stopping -----------------------------------------------------------------------------------------------------

    async def stop(self) -> None:
        """Stop cleanly. Other controllers can speak to this one until it has left the cluster and the quorum."""
        self.is_serving = False
        self.broker_watch.end()
        await self._drain()
        if self.descriptions is not None:
            await self.descriptions.close()
        self.housekeeping.stop()
        if not self.storage.metadata.is_offline:
            if self.config.is_broker:
                await self.broker_lifecycle.leave()
            await self.raft.resign()
        for listener in self.listeners.values():
            listener.close()
        self._end_background()
        self.offload.finish_all()
        if self._audit_log is not None:
            self._audit_log.close()
        if self.storage.metadata.is_offline:
            self.storage.release(remove=False)  # nothing more can be noted: the next start recovers
            return
        self._close_logs()
        self.metadata_chores.snapshot_at_stop()
        self.raft.close()
        for directory in self.storage.all:
            if not directory.is_offline:
                directory.end(self.broker_lifecycle.broker_epoch)
        self.storage.release(remove=True)
        self.offload.close()

    def _end_background(self) -> None:
        if self.descriptions is not None:
            self.descriptions.cancel()
        if self._preload is not None:
            self._preload.stop()
        self.housekeeping.stop()
        self.unit_of_work.close()
        if self._share is not None:
            self._share.close()
        self.fetchers.close()
        self.brokers.close()
        self.cooperative_tasks.close()
        if self._target_computations is not None:
            self._target_computations.close()
        self.broker_watch.end()
        self.controller_channel.close()
        self._pages.close()

    async def _drain(self) -> None:
        """Answer what clients have asked, and close their connections."""
        listeners = self._client_listeners
        for listener in listeners:
            listener.stop_accepting()
        self.purgatory.close()
        self.coordinators.stop()
        for listener in listeners:
            listener.drain()
        if any(listener.connections for listener in listeners):
            self._drained = self.loop.create_future()
            await asyncio.wait([self._drained], timeout=DRAIN_MAX_SECONDS)
        for listener in listeners:
            listener.close()

    @property
    def _client_listeners(self) -> list[Listener]:
        return [listener for name, listener in self.listeners.items() if name not in self.controller_listeners]

    def _close_logs(self) -> None:
        self.replicas.write_staged()
        for directory in self.storage.directories:
            if directory.is_offline:
                continue
            logs = self.replicas.logs(directory) + self.log_dir_moves.logs(directory)
            for partition in logs:
                partition.close()
            directory.write_checkpoints(logs)
            directory.write_high_watermarks(logs)
            directory.write_cleaner_offsets()

    async def kill(self) -> None:
        """Stop as a crash would: nothing is written any more. For tests, and for a disk that has failed."""
        self.is_serving = self.purgatory.is_open = False
        self.raft.abandon()
        self._end_background()
        for listener in self.listeners.values():
            listener.close()
        self.offload.close()
        self.storage.release(remove=False)


async def _open_pages(config: NodeConfig) -> WebServers:
    metrics = inspect = metrics_port = inspect_port = None
    port, address = config["ottla.metrics.port"], config["ottla.inspect.listeners"]
    tls, has_login = web_security(config) if port >= 0 or address else (None, False)
    with ExitStack() as opened:
        if port >= 0:
            from ottla.broker.network.web_server import WebServer

            metrics = WebServer(has_login=has_login, tls=tls)
            opened.callback(metrics.close)
            metrics_port = await open_web_server(metrics, config.listeners[0].host, port, "metrics page")
        if address:
            from ottla.broker.network.web_server import WebServer
            from ottla.broker.telemetry.inspect_listener import SETTING as INSPECT_LISTENERS
            from ottla.broker.telemetry.inspect_listener import inspect_address

            is_secured = tls is not None and has_login
            inspect = WebServer(is_local=not is_secured, has_login=has_login, tls=tls)
            opened.callback(inspect.close)
            host, wanted = inspect_address(address, has_tls=tls is not None, has_login=has_login)
            inspect_port = await open_web_server(inspect, host, wanted, "inspect listener")
            if inspect_port != wanted:  # consoles find it by the setting
                config.settle(INSPECT_LISTENERS, f"{address.rpartition(':')[0]}:{inspect_port}")
        opened.pop_all()
    return WebServers(metrics, metrics_port, inspect, inspect_port)


def _open_storage(
    config: NodeConfig, disk: Disk, now_ms: int, controller_port: int | None, randomness: Randomness
) -> NodeStorage:
    """Lock the directories, format them if they are new, and read what they say of themselves."""
    failed: dict[str, OSError] = {}
    locks = lock_directories(disk, config.all_dirs, failed, config.metadata_dir)
    try:
        open_files_max = shares_of(current_limit(), config["ottla.open.files.max"]).logs
        storage = NodeStorage(config, disk, locks, open_files_max, failed, randomness)
        storage.format_if_new(now_ms, controller_port)
        storage.open()
    except BaseException:
        release(locks, remove=False)
        raise
    for directory in storage.all:
        for note in directory.notes:
            log.warning("%s", note)
    return storage


def _windows(config: NodeConfig, prefix: str) -> Windows:
    return Windows(config[f"{prefix}.window.num"], config[f"{prefix}.window.size.seconds"] * 1000)
