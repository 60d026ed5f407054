"""What the replicas area needs of the node."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import asyncio

    from ottla.broker.config.settings import Settings
    from ottla.broker.loop.clock import Clock
    from ottla.broker.loop.cooperative_tasks import CooperativeTasks
    from ottla.broker.loop.offload import Offload
    from ottla.broker.loop.purgatory import Purgatory
    from ottla.broker.loop.randomness import Randomness
    from ottla.broker.peers.broker_connections import Brokers
    from ottla.broker.replicas.log_dir_moves import LogDirMoves
    from ottla.broker.replicas.replicas import Replica, Replicas
    from ottla.broker.replicas.storage import NodeStorage
    from ottla.broker.replicas.unit_of_work import UnitOfWork
    from ottla.core.metadata.image import MetadataImage
    from ottla.log.directory import LogDirectory
    from ottla.log.disk import Disk

__all__ = ["EndOffsetPorts", "LogChorePorts", "LogDirMovePorts", "RecordWriterPorts", "TaskPorts"]


class TaskPorts(Protocol):
    """Threads and cooperative tasks for long work."""

    clock: Clock
    disk: Disk
    settings: Settings
    replicas: Replicas
    cooperative_tasks: CooperativeTasks
    offload: Offload


class DirectoryAssignment(Protocol):
    """The way to tell the controller where replicas are."""

    def assign(self, placed: Iterable[tuple[Replica, LogDirectory]], done: Callable[[], None]) -> None:
        """Tell it; `done` is called when it knows, or has refused."""


class LogDirMovePorts(TaskPorts, Protocol):
    """Needed to move partitions between log directories."""

    loop: asyncio.AbstractEventLoop
    randomness: Randomness
    is_serving: bool

    @property
    def broker_lifecycle(self) -> DirectoryAssignment: ...


class LogChorePorts(TaskPorts, Protocol):
    """Needed to write checkpoints, apply retention, compact and remove files."""

    storage: NodeStorage
    log_dir_moves: LogDirMoves


class EndOffsetPorts(Protocol):
    """Needed to find out how far partitions are committed."""

    image: MetadataImage
    replicas: Replicas

    @property
    def node_id(self) -> int: ...
    @property
    def brokers(self) -> Brokers: ...


class RecordWriterPorts(EndOffsetPorts, Protocol):
    """Needed to write to partitions, wherever they are led."""

    clock: Clock
    settings: Settings
    unit_of_work: UnitOfWork
    purgatory: Purgatory
