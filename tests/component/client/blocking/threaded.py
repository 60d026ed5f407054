"""The fake cluster in a thread of its own, for clients that hold up theirs."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from ottla.client.blocking import BlockingClient
from tests.component.client.fake import QUICK, FakeCluster
from tests.unit.client.running import TIME_LIMIT_S

T = TypeVar("T")


class ThreadedCluster:
    """Wraps a FakeCluster. What touches its sockets is done in its own thread, by `do`."""

    def __init__(self, cluster: FakeCluster, loop: asyncio.AbstractEventLoop) -> None:
        self.cluster = cluster
        self._loop = loop

    def client(self, **settings: Any) -> BlockingClient:
        return BlockingClient(self.cluster.bootstrap_servers, **{**QUICK, **settings})

    def do(self, function: Callable[[], T]) -> T:
        async def call() -> T:
            return function()

        return asyncio.run_coroutine_threadsafe(call(), self._loop).result(TIME_LIMIT_S)


@contextmanager
def threaded(cluster: FakeCluster) -> Iterator[ThreadedCluster]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(cluster.__aenter__(), loop).result(TIME_LIMIT_S)
        try:
            yield ThreadedCluster(cluster, loop)
        finally:
            asyncio.run_coroutine_threadsafe(cluster.__aexit__(None, None, None), loop).result(TIME_LIMIT_S)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(TIME_LIMIT_S)
        loop.close()
