"""Rows in columns, sorted into the batches of partitions: what `Producer.send_all` does with records, for many at once.

    batches = RowBatches(batch_bytes=256 * 1024)
    batches.add(rows, [(topic, places)], partitions)     # `places`: which of the rows belong to the topic
    await producer.send_batches(batches.take())

A row goes to the partition that is named for it, else to its key's, else to one that many rows without a key share
until a batch is full. Rows of one partition stay in order.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from ottla.client.metadata import Topic, TopicPartition
from ottla.client.partitioner import Sticky, partitions_of_keys
from ottla.wire.batch import BatchBuilder
from ottla.wire.row_encoder import RowEncoder, Rows

if TYPE_CHECKING:
    from ottla.wire.columns_table import Int64s

__all__ = ["UNNAMED", "RowBatches", "places_by_value"]

UNNAMED: Final = -(1 << 32)
"""Stands for no partition; a column of partitions, which has 32 bits, cannot hold it."""


class RowBatches:
    """Collects batches until somebody takes them."""

    def __init__(self, batch_bytes: int) -> None:
        self._batch_bytes = batch_bytes
        self._sticky = Sticky()
        self._batches: dict[TopicPartition, list[BatchBuilder]] = {}
        self._topics: dict[str, Topic] = {}
        self.size_bytes = 0

    def add(self, rows: Rows, topics: Iterable[tuple[Topic, Int64s]], named: Int64s | None = None) -> None:
        """Add rows: `topics` says which of them go to which topic, `named` to which partition, or `UNNAMED`."""
        encoder = RowEncoder(rows)
        now_ms = time.time_ns() // 1_000_000
        for topic, places in topics:
            self._topics[topic.name] = topic
            for partition, some in places_by_value(self._partitions(topic, rows, places, named)):
                batches = self._batches.setdefault(TopicPartition(topic.name, partition), [])
                encoder.append(batches, places[some], now_ms, self._batch_bytes)
        self.size_bytes += encoder.size_bytes

    def take(self) -> dict[TopicPartition, list[BatchBuilder]]:
        """What was added since the last time. What comes next goes into other batches, and begins elsewhere."""
        for name, topic in self._topics.items():
            self._sticky.move_on(name, topic.available)
        taken, self._batches, self._topics, self.size_bytes = self._batches, {}, {}, 0
        return taken

    def _partitions(self, topic: Topic, rows: Rows, places: Int64s, named: Int64s | None) -> Int64s:
        import numpy as np

        found = np.full(len(places), UNNAMED, np.int64) if named is None else named[places]
        has_key = rows.keys.length[places] >= 0
        keyed, others = (np.flatnonzero((found == UNNAMED) & mask) for mask in (has_key, ~has_key))
        if len(keyed):
            found[keyed] = partitions_of_keys(rows.keys.take(places[keyed]), len(topic.partitions))
        if len(others):
            sizes = rows.values.length[places[others]].clip(0) + 1  # so that records of no bytes take turns, too
            found[others] = self._sticky.spread(topic.name, topic.available, sizes, self._batch_bytes)
        return found


def places_by_value(values: Int64s) -> Iterator[tuple[int, Int64s]]:
    """Each value that there is, with the places where it stands, in order."""
    import numpy as np

    order = np.argsort(values, kind="stable")
    cuts = np.flatnonzero(np.diff(values[order])) + 1
    for places in np.split(order, cuts) if len(values) else ():
        yield int(values[places[0]]), places
