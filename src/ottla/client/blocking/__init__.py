"""A client without an event loop, for programs that have their own way of waiting: the workers of Spark.

    with BlockingClient("localhost:9092") as client:
        ends = client.call(list_offsets, {("orders", 0): LATEST})        # every call of `ottla.client`
        for chunk in read_range(client, TopicPartition("orders", 0), 0, ends[...].offset):
            ...

Theory of operation. Routing, retries and every API's calls are those of `ottla.client`: coroutines. Its connections and
pauses are replaced by ones that hold up the thread, so that no coroutine ever gives way, and `call` runs it from its
beginning to its end in one step. Whoever moves much data borrows connections, on which requests are sent ahead of the
answers.

A client belongs to one thread of one process. `cached_client` keeps clients for the next task of a worker and never
hands one over a fork.
"""

from ottla.client.blocking.cache import cached_client
from ottla.client.blocking.client import BlockingClient
from ottla.client.blocking.connection import BlockingConnection
from ottla.client.blocking.range_reader import Chunk, ReadOptions, read_range

__all__ = ["BlockingClient", "BlockingConnection", "Chunk", "ReadOptions", "cached_client", "read_range"]
