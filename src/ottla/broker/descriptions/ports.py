"""What the plugin for topology descriptions needs of the node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ottla.broker.replicas.ports import RecordWriterPorts

if TYPE_CHECKING:
    import asyncio

    from ottla.broker.config.node_config import NodeConfig
    from ottla.broker.controller.channel import ControllerChannel
    from ottla.broker.coordinators.runtime import Runtime
    from ottla.broker.loop.clock import Clock
    from ottla.broker.loop.purgatory import Purgatory

__all__ = ["DescriptionPorts", "PluginCallPorts", "TopicTablePorts"]


class PluginCallPorts(Protocol):
    """Needed to call the plugin with a time limit."""

    loop: asyncio.AbstractEventLoop
    clock: Clock
    purgatory: Purgatory


class TopicTablePorts(PluginCallPorts, RecordWriterPorts, Protocol):
    """Needed to keep a table in a topic."""

    controller_channel: ControllerChannel


class DescriptionPorts(TopicTablePorts, Protocol):
    config: NodeConfig
    groups: Runtime
