"""Nodes that may not start."""

from __future__ import annotations

import asyncio
from pathlib import Path

from ottla.broker.config.node_config import NodeConfig
from ottla.broker.node import Node
from ottla.log.disk import OsDisk


async def _try_to_start(config: NodeConfig) -> None:
    node = await Node.start(config, disk=OsDisk(durable=False))
    await node.stop()


def try_to_start(directory: Path, **settings: object) -> None:
    named = {key.replace("_", "."): str(value) for key, value in settings.items()}
    named.setdefault("listeners", "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0")
    asyncio.run(_try_to_start(NodeConfig({"log.dirs": str(directory)}, named)))
