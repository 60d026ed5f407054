"""What share groups need of the node: for the state of share partitions, and to lead them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from ottla.broker.network.authorization import Access
from ottla.broker.replicas.ports import RecordWriterPorts

if TYPE_CHECKING:
    import asyncio

    from ottla.broker.controller.channel import ControllerChannel
    from ottla.broker.coordinators.runtime import MakeRefusal
    from ottla.broker.loop.clock import Clock
    from ottla.broker.loop.delayed_operations import DelayedOperations
    from ottla.broker.loop.purgatory import Purgatory
    from ottla.broker.network.request import Request
    from ottla.broker.peers.broker_connections import Brokers
    from ottla.core.coordinator.contract import World
    from ottla.core.metadata.image import MetadataImage
    from ottla.wire.errors import ErrorCode

__all__ = ["DeadLetterPorts", "LeaderPorts", "PersisterPorts", "ShareCoordinatorPorts", "ShareStatePorts"]


class StateRuntime(Protocol):
    """The runtime of share coordinators."""

    @property
    def partition_count(self) -> int: ...
    def ensure_topic(self, done: Callable[[ErrorCode], None]) -> None:
        """Create the topic if there is none; `done` gets NONE once its partitions are known."""

    def coordinator_of(self, key: str) -> int:
        """The broker that coordinates a key, or NO_LEADER."""

    def ask(
        self, request: Request | None, key: str, body: object, done: Callable[[Any], None], *, refuse: MakeRefusal
    ) -> None: ...


class ShareStatePorts(Protocol):
    """The share coordinators."""

    @property
    def share_state(self) -> StateRuntime: ...


class ShareCoordinatorPorts(ShareStatePorts, Protocol):
    """Needed to ask share coordinators on any node."""

    image: MetadataImage

    @property
    def node_id(self) -> int: ...
    @property
    def brokers(self) -> Brokers: ...


class PersisterPorts(Protocol):
    """Needed to retry requests to share coordinators."""

    @property
    def clock(self) -> Clock: ...
    @property
    def purgatory(self) -> Purgatory | DelayedOperations: ...


class DeadLetterPorts(RecordWriterPorts, Protocol):
    """Needed to write to dead-letter queues."""

    controller_channel: ControllerChannel
    world: World


class LeaderPorts(DeadLetterPorts, Access, Protocol):
    """Needed to lead share partitions."""

    loop: asyncio.AbstractEventLoop
