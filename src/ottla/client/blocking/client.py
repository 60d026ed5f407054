"""The calls of `ottla.client` without an event loop."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Iterable
from types import TracebackType
from typing import Any, Concatenate, Final, ParamSpec, Self, TypeVar, Unpack

from ottla.client.address import Address, Peer
from ottla.client.answers import SendOptions
from ottla.client.backoff import Backoff, Deadline
from ottla.client.blocking.connection import BlockingConnection, open_blocking
from ottla.client.client import Answer, Build, Client
from ottla.client.metadata import Broker, Metadata, TopicPartition
from ottla.client.pool import Link
from ottla.client.settings import Changes, ClientSettings

__all__ = ["BlockingClient"]

T = TypeVar("T")
P = ParamSpec("P")
Calls = Coroutine[Any, Any, T]
SECOND_MS: Final = 1000


class BlockingClient:
    """A client of one cluster, for one thread. Entering it connects; leaving it closes all connections.

    `call(function, ...)` runs any coroutine function of `ottla.client` that takes a client first; those that keep tasks
    of their own (`Fetcher`) are for event loops.
    """

    def __init__(self, bootstrap_servers: str | Iterable[str], **settings: Unpack[Changes]) -> None:
        self._client = _NonYieldingClient(bootstrap_servers, **settings)
        self._idle: dict[Address, BlockingConnection] = {}

    def __enter__(self) -> Self:
        _run(self._client.__aenter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        for connection in self._idle.values():
            connection.shut()
        self._idle.clear()
        _run(self._client.close())

    @property
    def settings(self) -> ClientSettings:
        return self._client.settings

    @property
    def metadata(self) -> Metadata:
        return self._client.metadata

    def call(self, function: Callable[Concatenate[Client, P], Calls[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """What a coroutine function gives, called with this client: `client.call(list_offsets, wanted)`."""
        return _run(function(self._client, *args, **kwargs))

    def ask(self, api: str, build: Build, **options: Unpack[SendOptions]) -> Answer:
        """Send a request to whom it concerns, and again until it goes well or the deadline passes."""
        return _run(self._client.ask(api, build, **options))

    def borrow(self, peer: Peer) -> BlockingConnection:
        """A connection of the borrower's own, on which requests can be sent ahead. It is given back afterwards."""
        idle = self._idle.pop(peer.address, None)
        return idle if idle is not None and idle.is_open else open_blocking(peer, self.settings)

    def give_back(self, connection: BlockingConnection) -> None:
        """Keep a connection for who borrows next, if it can be used and no answer is due."""
        address = connection.peer.address
        if connection.in_flight or not connection.is_open or address in self._idle:
            connection.shut()
        else:
            self._idle[address] = connection

    def leader(self, at: TopicPartition, deadline: Deadline) -> Broker:
        """The broker that leads a partition, waiting for one until the deadline."""
        return self.metadata.brokers[_run(self._client.leader(at, deadline)).leader]

    def backoff(self) -> BlockingBackoff:
        return self._client.backoff()

    def deadline(self, timeout_ms: int | None = None) -> Deadline:
        return self._client.deadline(timeout_ms)


class BlockingBackoff(Backoff):
    """A backoff that blocks the thread."""

    async def pause(self, deadline: Deadline) -> bool:
        return self.sleep(deadline)

    def sleep(self, deadline: Deadline) -> bool:
        """Sleep before the next attempt; False, at once, if the deadline would pass meanwhile."""
        pause_s = self.next_ms() / SECOND_MS
        if deadline.left_s <= pause_s:
            return False
        time.sleep(pause_s)
        return True


async def _one_by_one(some: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    return [await each for each in some]


class _NonYieldingClient(Client):
    """A client whose coroutines never suspend: connections and pauses block the thread."""

    together = staticmethod(_one_by_one)

    async def _open(self, peer: Peer) -> Link:
        return open_blocking(peer, self.settings)

    def backoff(self) -> BlockingBackoff:
        return BlockingBackoff(self.settings.retry_backoff_ms, self.settings.retry_backoff_max_ms)


def _run(coroutine: Coroutine[Any, Any, T]) -> T:
    try:
        coroutine.send(None)
    except StopIteration as end:
        value: T = end.value
        return value
    coroutine.close()
    raise RuntimeError(f"{coroutine} needs an event loop, which a blocking client does not have")
