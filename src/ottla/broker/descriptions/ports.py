"""What the plugin for topology descriptions, and those who call it, need of the node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import asyncio

    from ottla.broker.config.node_config import NodeConfig
    from ottla.broker.controller.metadata_log import MetadataLog
    from ottla.broker.coordinators.runtime import Runtime
    from ottla.broker.loop.clock import Clock
    from ottla.broker.loop.purgatory import Purgatory
    from ottla.broker.replicas.replicas import Replicas
    from ottla.broker.replicas.unit_of_work import UnitOfWork

__all__ = ["Calls", "Ports", "Tables"]


class Calls(Protocol):
    """Calls the plugin, and stops to wait for it."""

    loop: asyncio.AbstractEventLoop
    clock: Clock
    purgatory: Purgatory


class Tables(Calls, Protocol):
    """Keeps a table in a topic."""

    metadata: MetadataLog
    replicas: Replicas
    unit_of_work: UnitOfWork


class Ports(Tables, Protocol):
    config: NodeConfig
    groups: Runtime
