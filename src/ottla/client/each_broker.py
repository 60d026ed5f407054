"""Asking every broker the same, where each one knows its own part: coordinators their groups, nodes their disks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from ottla.client.client import Client
from ottla.client.errors import ClientError

__all__ = ["at_each_broker"]

V = TypeVar("V")


async def at_each_broker(client: Client, ask: Callable[[int], Awaitable[V]]) -> dict[int, V | ClientError]:
    """What `ask` gives for each node id, or why that node does not tell: the parts of the others are known all the
    same. Raises ClientError if it cannot be found out which nodes there are."""

    async def at(node_id: int) -> V | ClientError:
        try:
            return await ask(node_id)
        except ClientError as error:
            return error

    nodes = sorted((await client.refresh()).brokers)
    return dict(zip(nodes, await client.together(map(at, nodes)), strict=True))
