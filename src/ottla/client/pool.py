"""The open connections of a client: one for each address and lane.

A lane is a connection of its own beside the usual one. A broker answers a connection's requests one after the other, so
what waits at the broker (a long poll, a group's join) would hold up everything behind it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any, NamedTuple, Protocol, TypeVar

from ottla.client.address import Address, Peer
from ottla.client.clock import monotonic_s
from ottla.client.connection import SECOND_MS
from ottla.client.errors import ClosedError
from ottla.client.versions import ApiRanges

__all__ = ["USUAL_LANE", "Link", "Pool", "Together", "together"]

USUAL_LANE = ""


T = TypeVar("T")


class Link(Protocol):
    """A connection, with an event loop behind it or without."""

    peer: Peer
    versions: ApiRanges
    session_ends_at_s: float | None
    last_used_at_s: float

    @property
    def in_flight(self) -> int: ...
    @property
    def is_open(self) -> bool: ...
    async def request(self, message: object, version: int, *, timeout_ms: float | None = None) -> object: ...
    async def post(self, message: object, version: int) -> None: ...
    async def close(self) -> None: ...


class Together(Protocol):
    """How several things are done: at the same time, or, where nothing ever waits, one after the other."""

    async def __call__(self, some: Iterable[Coroutine[Any, Any, T]], /) -> list[T]: ...


async def together(some: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """At the same time."""
    return await asyncio.gather(*some)


class _Key(NamedTuple):
    address: Address
    lane: str


class Pool:
    def __init__(
        self, open_connection: Callable[[Peer], Awaitable[Link]], *, max_idle_ms: float, together: Together = together
    ) -> None:
        self._open_connection = open_connection
        self._together = together
        self._max_idle_s = max_idle_ms / SECOND_MS
        self._connections: dict[_Key, Link] = {}
        self._opening: dict[_Key, asyncio.Lock] = {}
        self._is_closed = False

    async def get(self, peer: Peer, lane: str = USUAL_LANE) -> Link:
        """The connection to a broker, opened if there is none that can be used. Those who ask together share it."""
        key = _Key(peer.address, lane)
        if (usable := self._usable(key)) is not None:
            return usable
        async with self._opening.setdefault(key, asyncio.Lock()):
            if (usable := self._usable(key)) is not None:
                return usable
            if (stale := self._connections.pop(key, None)) is not None:
                await stale.close()
            connection = await self._open_connection(peer)
            if self._is_closed:
                await connection.close()
                raise ClosedError("the client was closed")
            self._connections[key] = connection
            return connection

    def open_addresses(self) -> list[Address]:
        """Where a usual connection is open, the least busy one first."""
        usable = [
            (connection.in_flight, key.address)
            for key, connection in self._connections.items()
            if key.lane == USUAL_LANE and self._usable(key) is not None
        ]
        return [address for _, address in sorted(usable)]

    async def close_lane(self, lane: str) -> None:
        """Close the connections of one lane, at all brokers."""
        await self._close([key for key in self._connections if key.lane == lane])
        for key in [key for key in self._opening if key.lane == lane]:
            del self._opening[key]

    async def close(self) -> None:
        self._is_closed = True
        await self._close(list(self._connections))

    async def _close(self, keys: Iterable[_Key]) -> None:
        closing = [connection.close() for key in keys if (connection := self._connections.pop(key, None)) is not None]
        await self._together(closing)

    def _usable(self, key: _Key) -> Link | None:
        connection = self._connections.get(key)
        if connection is None or not connection.is_open or self._has_ended(connection):
            return None
        return connection

    def _has_ended(self, connection: Link) -> bool:
        """Whether it was idle for too long, or its session is about to end; while answers are due, it lives on."""
        if connection.in_flight:
            return False
        now_s = monotonic_s()
        session_ends_at_s = connection.session_ends_at_s
        if session_ends_at_s is not None and now_s >= session_ends_at_s:
            return True
        return now_s - connection.last_used_at_s >= self._max_idle_s
