"""What transactions need of the node: for appends that belong to one, and for markers that end one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ottla.broker.config.settings import Settings
    from ottla.broker.controller.producer_ids import ProducerIds
    from ottla.broker.coordinators.runtime import Runtime
    from ottla.broker.loop.clock import Clock
    from ottla.broker.loop.purgatory import Purgatory
    from ottla.broker.peers.broker_connections import Brokers
    from ottla.broker.replicas.replicas import Replicas
    from ottla.broker.replicas.unit_of_work import UnitOfWork
    from ottla.broker.transactions.remote_coordinators import RemoteCoordinators
    from ottla.core.metadata.image import MetadataImage

__all__ = ["MarkerAppendPorts", "MarkerSendPorts", "VerificationPorts"]


class VerificationPorts(Protocol):
    """Needed to ask a transaction coordinator before an append."""

    clock: Clock
    image: MetadataImage
    settings: Settings
    replicas: Replicas
    unit_of_work: UnitOfWork
    purgatory: Purgatory
    transactions: Runtime

    @property
    def node_id(self) -> int: ...
    @property
    def remote_transactions(self) -> RemoteCoordinators: ...


class MarkerAppendPorts(Protocol):
    """Needed to write markers to the partitions of this node."""

    clock: Clock
    settings: Settings
    replicas: Replicas
    unit_of_work: UnitOfWork
    purgatory: Purgatory
    groups: Runtime


class MarkerSendPorts(MarkerAppendPorts, Protocol):
    """Needed to send markers to the leaders of partitions."""

    image: MetadataImage
    producer_ids: ProducerIds

    @property
    def brokers(self) -> Brokers: ...

    @property
    def node_id(self) -> int: ...
