"""Sends the same request to every broker, where each knows only its own part: groups, transactions, log directories."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from ottla.client.client import Client
from ottla.client.errors import ClientError

__all__ = ["at_each_broker"]

V = TypeVar("V")


async def at_each_broker(
    client: Client, ask: Callable[[int], Awaitable[V]], brokers_max: int | None = None
) -> dict[int, V | ClientError]:
    """By node id: what `ask` returns, or the error of that node; of at most so many. Raises ClientError if the list of
    nodes cannot be read."""

    async def at(node_id: int) -> V | ClientError:
        try:
            return await ask(node_id)
        except ClientError as error:
            return error

    nodes = sorted((await client.refresh()).brokers)[:brokers_max]
    return dict(zip(nodes, await client.together(map(at, nodes)), strict=True))
