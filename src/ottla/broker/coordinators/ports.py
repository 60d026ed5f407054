"""What coordinators need of the node they run on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ottla.broker.network.authorization import Access

if TYPE_CHECKING:
    import asyncio

    from ottla.broker.config.settings import Settings
    from ottla.broker.controller.broker_lifecycle import BrokerLifecycle
    from ottla.broker.controller.channel import ControllerChannel
    from ottla.broker.controller.publisher import MetadataPublisher
    from ottla.broker.controller.raft_log import RaftLog
    from ottla.broker.loop.clock import Clock
    from ottla.broker.loop.cooperative_tasks import CooperativeTasks
    from ottla.broker.loop.randomness import Randomness
    from ottla.broker.replicas.replicas import Replicas
    from ottla.broker.replicas.unit_of_work import UnitOfWork
    from ottla.core.metadata.image import MetadataImage

__all__ = ["CoordinatorPorts", "TopicCreation"]


class TopicCreation(Access, Protocol):
    """The way to the controller, which creates internal topics, the image that has them then, and the nodes that may
    hold them."""

    image: MetadataImage
    settings: Settings
    publisher: MetadataPublisher
    controller_channel: ControllerChannel
    raft: RaftLog


class CoordinatorPorts(TopicCreation, Protocol):
    """What a coordinator needs: the loop, the logs, authorization."""

    broker_lifecycle: BrokerLifecycle
    loop: asyncio.AbstractEventLoop
    clock: Clock
    randomness: Randomness
    cooperative_tasks: CooperativeTasks
    replicas: Replicas
    unit_of_work: UnitOfWork
