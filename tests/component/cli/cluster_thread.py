"""A fake cluster in a thread of its own, for commands that run an event loop themselves."""

import asyncio
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tests.component.client.fake import FakeCluster

START_TIMEOUT_S = 30


@contextmanager
def fake_cluster(
    nodes: int = 1, topics: Mapping[str, Sequence[int]] | None = None, **answers: Any
) -> Iterator[FakeCluster]:
    """A cluster whose brokers give these answers, by API; several in a list are used one after the other."""
    ready, done = threading.Event(), threading.Event()
    clusters: list[FakeCluster] = []

    async def serve() -> None:
        async with FakeCluster(nodes, topics) as cluster:
            for broker in cluster.brokers.values():
                for api, answer in answers.items():
                    broker.on(api, *(answer if isinstance(answer, list) else [answer]))
            clusters.append(cluster)
            ready.set()
            await asyncio.to_thread(done.wait)

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    try:
        assert ready.wait(START_TIMEOUT_S), "the fake cluster did not start"
        yield clusters[0]
    finally:
        done.set()
        thread.join()
