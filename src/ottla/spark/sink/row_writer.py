"""Writes the rows of a task, so many at a time, while the next are being read and encoded.

A task holds one Arrow batch, one round of batches that is being filled and one that is on its way. A round is sent as
soon as it has `ROUND_BYTES`, and what is added to it at once has about as many at most. So a task takes what Spark
hands over at once, and four times `ROUND_BYTES`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

from ottla.client.blocking import BlockingClient
from ottla.client.client import Client
from ottla.client.metadata import Topic, TopicPartition
from ottla.client.producer import Producer
from ottla.client.row_batches import RowBatches
from ottla.client.transactions import Identity
from ottla.spark.sink.columns import Columns, Piece, piece_of
from ottla.spark.sink.digest import Digest, RunningDigest
from ottla.spark.sink.options import SinkOptions
from ottla.wire.batch import BatchBuilder

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["TaskRows", "write_all"]

ROUND_BYTES: Final = 4 * 1024 * 1024
"""What is given to the producer at once."""


class TaskRows:
    """The rows of a task's Arrow batches, piece by piece. `digest` is of those that were taken."""

    def __init__(self, batches: Iterable[pa.RecordBatch], columns: Columns, topic: str) -> None:
        self._pieces = (piece_of(each, columns, topic) for batch in batches for each in _cut(batch))
        self._digest = RunningDigest(topic)

    def __iter__(self) -> Iterator[Piece]:
        for piece in self._pieces:
            self._digest.add(piece)
            yield piece

    @property
    def digest(self) -> Digest:
        return self._digest.digest

    def read_on(self) -> Digest:
        """Take all that is left, and write none of it."""
        for _ in self:
            pass
        return self.digest


def _cut(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """A batch in slices of about a round each, if all rows are equally large."""
    step = max(1, batch.num_rows * ROUND_BYTES // max(batch.nbytes, ROUND_BYTES))
    for first in range(0, batch.num_rows, step):
        yield batch.slice(first, step)


def write_all(client: BlockingClient, options: SinkOptions, rows: TaskRows, identity: Identity | None) -> None:
    """Write the rows, and wait until all are acknowledged."""
    settings: Any = options.producer_settings()
    batches = RowBatches(settings["batch_bytes"])
    with ThreadPoolExecutor(1, "ottla-sink") as thread:
        rounds = _Rounds(client, client.call(_producer, settings, identity), thread, settings["delivery_timeout_ms"])
        for piece in rows:
            batches.add(piece.rows, [(rounds.topic(name), places) for name, places in piece.topics], piece.partitions)
            if batches.size_bytes >= ROUND_BYTES:
                rounds.send(batches.take())
        rounds.send(batches.take())
        rounds.wait()


async def _producer(client: Client, settings: dict[str, Any], identity: Identity | None) -> Producer:
    is_idempotent = identity is None and settings["acks"] in ("all", -1)
    return Producer(client, idempotent=is_idempotent, identity=identity, **settings)


class _Rounds:
    """Sends rounds of batches in a thread, one at a time. While one is on its way, the client is that thread's."""

    def __init__(self, client: BlockingClient, producer: Producer, thread: Executor, topic_timeout_ms: int) -> None:
        self._client = client
        self._producer = producer
        self._thread = thread
        self._topic_timeout_ms = topic_timeout_ms
        self._sent: Future[None] | None = None
        self._asked: set[str] = set()

    def topic(self, name: str) -> Topic:
        """What is known of a topic. It is asked for once; whoever sends batches keeps that fresh."""
        known = self._client.metadata.topics.get(name)
        if known is None or name not in self._asked:
            self.wait()
            known = self._client.call(Client.topics, [name], self._client.deadline(self._topic_timeout_ms))[name]
            self._asked.add(name)
        return known

    def send(self, batches: dict[TopicPartition, list[BatchBuilder]]) -> None:
        """Send a round as soon as the one before it is acknowledged."""
        self.wait()
        self._sent = self._thread.submit(self._client.call, _send, self._producer, batches)

    def wait(self) -> None:
        """Wait until nothing is on its way, and raise what went wrong with it."""
        if self._sent is not None:
            sent, self._sent = self._sent, None
            sent.result()


async def _send(_: Client, producer: Producer, batches: dict[TopicPartition, list[BatchBuilder]]) -> None:
    await producer.send_batches(batches)
