"""The ports of handlers to a node, by family of APIs. A node implements all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ottla.broker.network.authorization import Access

if TYPE_CHECKING:
    from ottla.broker.config.node_config import NodeConfig
    from ottla.broker.config.settings import Settings
    from ottla.broker.controller.channel import ControllerChannel
    from ottla.broker.controller.deleted_topics import DeletedTopics
    from ottla.broker.controller.encoded_topics import EncodedTopics
    from ottla.broker.controller.producer_ids import ProducerIds
    from ottla.broker.controller.raft_log import RaftLog
    from ottla.broker.coordinators.internal_topics import InternalTopics
    from ottla.broker.coordinators.runtime import Runtime
    from ottla.broker.loop.clock import Clock
    from ottla.broker.loop.purgatory import Purgatory
    from ottla.broker.network.dispatch import Dispatch
    from ottla.broker.network.node_security import NodeSecurity
    from ottla.broker.network.request import DelayedResponse, Request
    from ottla.broker.peers.broker_connections import Brokers
    from ottla.broker.replicas.fetch_sessions import FetchSessions
    from ottla.broker.replicas.log_dir_moves import LogDirMoves
    from ottla.broker.replicas.replicas import Replicas
    from ottla.broker.replicas.storage import NodeStorage
    from ottla.broker.replicas.unit_of_work import UnitOfWork
    from ottla.broker.share import ShareNode
    from ottla.broker.telemetry.clients.telemetry import Telemetry
    from ottla.broker.telemetry.loggers import Loggers
    from ottla.broker.transactions.remote_coordinators import RemoteCoordinators
    from ottla.core.metadata.delegation_tokens import TokenSecrets
    from ottla.core.metadata.image import MetadataImage
    from ottla.wire.access import Operation, ResourceType

__all__ = [
    "AccessControl",
    "ClientTelemetry",
    "Cluster",
    "Configs",
    "Controller",
    "DelegationTokens",
    "Forwarded",
    "Groups",
    "LogDirectories",
    "Quorum",
    "QuorumMember",
    "Records",
    "ShareGroups",
    "Transactions",
]


class Controller(Protocol):
    """APIs that the controller answers."""

    def submit(self, request: Request, body: object | None = None) -> DelayedResponse:
        """Pass a request, or `body` instead, to the controller; its reply comes when the change is committed."""


class AccessControl(Access, Controller, Protocol):
    """APIs about access control lists."""

    image: MetadataImage

    @property
    def has_acls(self) -> bool: ...


class DelegationTokens(Access, Controller, Protocol):
    """APIs about delegation tokens."""

    controller_listeners: frozenset[str]
    image: MetadataImage
    token_secrets: TokenSecrets


class Quorum(Access, Controller, Protocol):
    """APIs about the quorum, which its leader answers."""


class QuorumMember(Access, Protocol):
    """APIs between the nodes of the quorum."""

    raft: RaftLog


class Forwarded(Access, Protocol):
    """Envelope: requests that a broker passes on."""

    dispatch: Dispatch
    clock: Clock


class Records(QuorumMember, Protocol):
    """APIs that read and write partitions."""

    controller_listeners: frozenset[str]

    image: MetadataImage
    settings: Settings
    replicas: Replicas
    purgatory: Purgatory
    fetch_sessions: FetchSessions
    transactions: Runtime
    clock: Clock
    unit_of_work: UnitOfWork

    @property
    def node_id(self) -> int: ...
    @property
    def remote_transactions(self) -> RemoteCoordinators: ...


class Groups(Access, Protocol):
    """APIs that the group coordinator answers."""

    groups: Runtime


class Transactions(Access, Protocol):
    """APIs of transactional producers."""

    def authorize_any(self, request: Request, operation: Operation, resource_type: ResourceType) -> bool:
        """Whether there is any resource of a type to which the request's principal may do something."""

    image: MetadataImage
    settings: Settings
    replicas: Replicas
    groups: Runtime
    transactions: Runtime
    producer_ids: ProducerIds
    purgatory: Purgatory
    clock: Clock
    unit_of_work: UnitOfWork

    @property
    def node_id(self) -> int: ...
    @property
    def remote_transactions(self) -> RemoteCoordinators: ...


class ShareGroups(Access, Protocol):
    """APIs of share groups other than membership: records, offsets, state."""

    image: MetadataImage
    replicas: Replicas
    groups: Runtime
    share_state: Runtime

    @property
    def node_id(self) -> int: ...
    @property
    def brokers(self) -> Brokers: ...
    @property
    def share(self) -> ShareNode: ...


class Cluster(Access, Protocol):
    """APIs about the nodes and topics of the cluster."""

    config: NodeConfig
    settings: Settings
    clock: Clock
    image: MetadataImage
    controller_channel: ControllerChannel
    raft: RaftLog
    encoded_topics: EncodedTopics
    deleted_topics: DeletedTopics
    internal_topics: InternalTopics

    @property
    def node_id(self) -> int: ...
    @property
    def cluster_id(self) -> str: ...


class Configs(Access, Controller, Protocol):
    """APIs about settings."""

    image: MetadataImage
    settings: Settings
    loggers: Loggers
    security: NodeSecurity
    controller_listeners: frozenset[str]

    @property
    def node_id(self) -> int: ...


class LogDirectories(Access, Protocol):
    """APIs about the directories that hold partitions."""

    image: MetadataImage
    settings: Settings
    storage: NodeStorage
    replicas: Replicas
    log_dir_moves: LogDirMoves


class ClientTelemetry(Protocol):
    """APIs with which clients push their metrics."""

    @property
    def telemetry(self) -> Telemetry: ...
