"""What share groups need of the node: for the state of share partitions, and to lead them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from ottla.broker.network.authorization import Access

if TYPE_CHECKING:
    import asyncio

    from ottla.broker.config.settings import Settings
    from ottla.broker.controller.channel import ControllerChannel
    from ottla.broker.coordinators.internal_topics import InternalTopic
    from ottla.broker.coordinators.runtime import MakeRefusal
    from ottla.broker.loop.clock import Clock
    from ottla.broker.loop.delayed_operations import DelayedOperations
    from ottla.broker.loop.purgatory import Purgatory
    from ottla.broker.network.request import Request
    from ottla.broker.replicas.replicas import Replicas
    from ottla.broker.replicas.unit_of_work import UnitOfWork
    from ottla.core.coordinator.contract import World
    from ottla.core.metadata.image import MetadataImage
    from ottla.wire.errors import ErrorCode

__all__ = ["DeadLetterPorts", "LeaderPorts", "PersisterPorts", "ShareStatePorts"]


class StateRuntime(Protocol):
    """The runtime of share coordinators."""

    @property
    def partition_count(self) -> int: ...
    def ask(
        self, request: Request | None, key: str, body: object, done: Callable[[Any], None], *, refuse: MakeRefusal
    ) -> None: ...


class TopicCreation(Protocol):
    """Creates the topic of share coordinators."""

    def ensure(self, topic: InternalTopic, done: Callable[[ErrorCode], None]) -> None: ...


class ShareStatePorts(Protocol):
    """The share coordinators."""

    @property
    def share_state(self) -> StateRuntime: ...
    @property
    def internal_topics(self) -> TopicCreation: ...


class PersisterPorts(ShareStatePorts, Protocol):
    """Needed to send requests to share coordinators and retry them."""

    @property
    def clock(self) -> Clock: ...
    @property
    def purgatory(self) -> Purgatory | DelayedOperations: ...


class DeadLetterPorts(Protocol):
    """Needed to write to dead-letter queues."""

    clock: Clock
    image: MetadataImage
    settings: Settings
    controller_channel: ControllerChannel
    replicas: Replicas
    unit_of_work: UnitOfWork
    purgatory: Purgatory
    world: World


class LeaderPorts(DeadLetterPorts, Access, Protocol):
    """Needed to lead share partitions."""

    loop: asyncio.AbstractEventLoop
