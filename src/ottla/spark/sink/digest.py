"""What a task has written, in short: enough to tell its rows from others.

Each column has a checksum of its own that goes on from one Arrow batch to the next, one over the bytes and one over
their lengths. So it does not matter where Spark cuts a task's rows into batches, only which rows come in which order.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from ottla.wire.batch import crc32c

if TYPE_CHECKING:
    from ottla.spark.sink.columns import Piece
    from ottla.wire.columns_table import Octets
    from ottla.wire.row_encoder import ByteColumn

__all__ = ["Digest", "RunningDigest"]


class Digest(NamedTuple):
    rows: int = 0
    crc: int = 0


class RunningDigest:
    """The digest of the pieces that were added; `topic` is the option."""

    def __init__(self, topic: str) -> None:
        self._rows = 0
        self._crcs = {"option topic": crc32c(topic.encode())}

    def add(self, piece: Piece) -> None:
        self._rows += len(piece.rows.values.start)
        for name, data in _parts(piece):
            self._crcs[name] = crc32c(data, self._crcs.get(name, 0))

    @property
    def digest(self) -> Digest:
        return Digest(self._rows, crc32c(struct.pack(f">{len(self._crcs)}I", *self._crcs.values())))


def _parts(piece: Piece) -> Iterator[tuple[str, memoryview]]:
    """What the rows consist of, always in the same order."""
    keys, values, headers = piece.rows
    columns = {
        "topic": piece.topic_names,
        "key": keys,
        "value": values,
        "header key": headers.keys,
        "header value": headers.values,
    }
    for name, column in columns.items():
        yield name, _bytes(column).data
        yield f"length of {name}", column.length.data
    yield "headers", headers.length.data
    if piece.partitions is not None:
        yield "partition", piece.partitions.data


def _bytes(column: ByteColumn) -> Octets:
    """The bytes of all rows one behind the other."""
    import numpy as np

    if not len(column.start):
        return column.data[:0]
    start, end = int(column.start[0]), int(column.start[-1]) + max(0, int(column.length[-1]))
    if end - start == column.size_bytes:
        return column.data[start:end]
    # There are others between them: nulls may lie over bytes of any kind.
    return np.frombuffer(b"".join(column.cell(row) or b"" for row in range(len(column.start))), np.uint8)
