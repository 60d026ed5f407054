"""What the replicas area needs of the node."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import asyncio

    from ottla.broker.config.settings import Settings
    from ottla.broker.loop.clock import Clock
    from ottla.broker.loop.cooperative_tasks import CooperativeTasks
    from ottla.broker.loop.offload import Offload
    from ottla.broker.replicas.log_dir_moves import LogDirMoves
    from ottla.broker.replicas.replicas import Replica, Replicas
    from ottla.broker.replicas.storage import NodeStorage
    from ottla.log.directory import LogDirectory
    from ottla.log.disk import Disk

__all__ = ["LogChorePorts", "LogDirMovePorts", "TaskPorts"]


class TaskPorts(Protocol):
    """Threads and cooperative tasks for long work."""

    clock: Clock
    disk: Disk
    settings: Settings
    replicas: Replicas
    cooperative_tasks: CooperativeTasks
    offload: Offload


class LogDirMovePorts(TaskPorts, Protocol):
    """Needed to move partitions between log directories."""

    loop: asyncio.AbstractEventLoop
    is_serving: bool

    def assign_replicas(self, placed: Iterable[tuple[Replica, LogDirectory]], *, wait: bool) -> None:
        """Tell the controller in which directories replicas are; with `wait`, return when that is on the disk."""


class LogChorePorts(TaskPorts, Protocol):
    """Needed to write checkpoints, apply retention, compact and remove files."""

    storage: NodeStorage
    log_dir_moves: LogDirMoves
