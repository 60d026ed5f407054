"""Requests to coordinators of a virtual cluster, as clients send them: to whoever it is, and again if it has moved."""

from __future__ import annotations

import asyncio
from typing import Any

from ottla.wire.errors import ErrorCode
from ottla.wire.types import FindCoordinatorRequest
from tests.unit.broker.virtual_cluster import Cluster

KIND_GROUP, KIND_TRANSACTION, KIND_SHARE = 0, 1, 2
INTERNAL = {
    f"{name}.{setting}": value
    for name in ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic")
    for setting, value in {"num.partitions": "1", "replication.factor": "3"}.items()
} | {"transaction.state.log.min.isr": "2", "share.coordinator.state.topic.min.isr": "2"}


async def coordinator(it: Cluster, key: str, key_type: int) -> int:
    """The node that coordinates a key, once there is one."""
    while True:
        asked = it.client(next(iter(it.nodes)))
        (found,) = (await asked.ask(FindCoordinatorRequest("", key_type, (key,)), 6)).coordinators
        if not found.error_code and found.node_id in it.nodes:
            return int(found.node_id)
        await asyncio.sleep(0.1)


async def again(it: Cluster, key: str, key_type: int, request: Any, version: int, code_of: Any) -> Any:
    """Ask the coordinator of a key, as clients do: elsewhere or later, where it says so."""
    while True:
        answer = await it.client(await coordinator(it, key, key_type)).ask(request, version)
        if code_of(answer) not in (14, 15, 16, ErrorCode.CONCURRENT_TRANSACTIONS):
            return answer
        await asyncio.sleep(0.1)
