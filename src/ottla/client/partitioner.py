"""Which partition a record goes to.

A key always goes to the same partition, and to the same one as with Kafka's Java clients: murmur2 of the key's bytes,
without the sign, modulo the number of partitions. Records without a key stay with one partition until a batch is full
and then move on (KIP-480), so that batches are large and partitions still get equal shares.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from struct import unpack_from
from typing import TYPE_CHECKING, Final

from ottla.wire.engine import Engine, is_compiled

if TYPE_CHECKING:
    from ottla.wire.columns_table import Int64s
    from ottla.wire.row_encoder import ByteColumn

__all__ = ["Sticky", "murmur2", "partition_of_key", "partitions_of_keys"]

_SEED: Final = 0x9747B28C
_M: Final = 0x5BD1E995
_MASK: Final = 0xFFFFFFFF
_WITHOUT_SIGN: Final = 0x7FFFFFFF


def murmur2(data: bytes | bytearray | memoryview) -> int:
    """MurmurHash2 with Kafka's seed, as 32 bits without a sign (Java shows them with one)."""
    size = len(data)
    words = size // 4
    state = _SEED ^ size
    for word in unpack_from(f"<{words}I", data):
        mixed = word * _M & _MASK
        mixed = (mixed ^ mixed >> 24) * _M & _MASK
        state = state * _M & _MASK ^ mixed
    rest = bytes(data[words * 4 :])
    if rest:
        state = (state ^ int.from_bytes(rest, "little")) * _M & _MASK
    state = (state ^ state >> 13) * _M & _MASK
    return state ^ state >> 15


def partition_of_key(key: bytes | bytearray | memoryview, partition_count: int) -> int:
    return (murmur2(key) & _WITHOUT_SIGN) % partition_count


def partitions_of_keys(keys: ByteColumn, partition_count: int, engine: Engine = "auto") -> Int64s:
    """`partition_of_key` for each key of a column; what it gives for a null means nothing."""
    import numpy as np

    if not is_compiled(engine):
        found = [partition_of_key(keys.cell(row) or b"", partition_count) for row in range(len(keys.start))]
        return np.array(found, np.int64)
    from ottla.wire.row_kernels import hash_runs

    hashes = np.empty(len(keys.start), np.int64)
    hash_runs(*keys, hashes)
    return (hashes & _WITHOUT_SIGN) % partition_count


class Sticky:
    """Where records without a key go, by topic."""

    def __init__(self, random_below: Callable[[int], int] = random.randrange) -> None:
        self._random_below = random_below
        self._current: dict[str, int] = {}
        self._spread_bytes: dict[str, int] = {}

    def current(self, topic: str, available: Sequence[int]) -> int:
        """The partition to stay with; `available` are those that have a leader, in ascending order."""
        current = self._current.get(topic)
        if current is None or current not in available:
            current = self._current[topic] = available[self._random_below(len(available))]
        return current

    def move_on(self, topic: str, available: Sequence[int]) -> None:
        """The batch is full: the next partition in turn."""
        current = self.current(topic, available)
        self._current[topic] = available[(available.index(current) + 1) % len(available)]
        self._spread_bytes.pop(topic, None)

    def spread(self, topic: str, available: Sequence[int], sizes: Int64s, batch_bytes: int) -> Int64s:
        """The partitions of many records of these sizes: they move on whenever a batch is full."""
        import numpy as np

        ends = np.cumsum(sizes) + self._spread_bytes.get(topic, 0)
        turns = np.append(ends - sizes, ends[-1:]) // batch_bytes + available.index(self.current(topic, available))
        partitions: Int64s = np.array(available)[turns % len(available)]
        self._current[topic] = int(partitions[-1])
        self._spread_bytes[topic] = int(ends[-1]) % batch_bytes
        return partitions[:-1]
