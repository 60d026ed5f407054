"""Decodes chunks of record batches into columns, in pieces that stay small when they are decompressed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct
from typing import TYPE_CHECKING, Final

from ottla.client.blocking import Chunk
from ottla.spark.committed import AbortedFilter
from ottla.wire import WireError
from ottla.wire.batch import LOG_OVERHEAD_BYTES, split_batches
from ottla.wire.batch_view import CODEC_BITS, HEADER_BYTES
from ottla.wire.columns import decode_columns

if TYPE_CHECKING:
    from ottla.wire.columns import Columns, Engine

__all__ = ["ChunkDecoder", "pieces"]

MIB: Final = 1024 * 1024
PIECE_BYTES: Final = 4 * MIB
COMPRESSED_PIECE_BYTES: Final = MIB
"""Compressed bytes may grow twentyfold and more; pieces are decompressed as a whole."""
DECOMPRESSED_MAX_BYTES: Final = 256 * MIB
PURE_BYTES: Final = 32 * 1024
"""So much is decoded in pure Python within some milliseconds; to load the compiled loops takes most of a second."""
_COMPILED: Final = "ottla.wire.columns_kernels"
_MAGIC: Final = 2
_LENGTH_MAGIC_ATTRIBUTES: Final = Struct(">i4xb4xh")


@dataclass
class ChunkDecoder:
    """Decodes the chunks of one task.

    The first rows of a stream should not wait until compiled loops are loaded in each worker: a task that reads little
    does without them, unless an earlier one has loaded them.
    """

    check_crc: bool = True
    is_committed: bool = False
    """Leave out aborted transactions."""
    pure_bytes: int = PURE_BYTES
    """So much may still be decoded in pure Python."""

    def columns_of(self, chunk: Chunk) -> Iterator[tuple[Columns, int]]:
        """The records of a chunk, piece by piece, each with the offset after it. Raises WireError for damage."""
        committed = AbortedFilter(chunk.aborted) if self.is_committed else None
        for piece in pieces(chunk.data):
            for columns in self._decoded(piece, committed):
                if committed is not None:
                    committed.advance()
                yield columns, int(columns.batches.last_offset[-1]) + 1

    def _decoded(self, piece: memoryview, committed: AbortedFilter | None) -> Iterator[Columns]:
        try:
            whole = self._decode(piece, committed)
        except WireError:
            # A batch is damaged, or the piece is too large: decode each batch on its own.
            batches = [batch.data for batch in split_batches(piece)]
            if len(batches) == 1:
                raise
        else:
            yield whole
            return
        for batch in batches:
            yield self._decode(batch, committed)

    def _engine(self, size: int) -> Engine:
        if size > self.pure_bytes or _COMPILED in sys.modules:
            return "auto"
        self.pure_bytes -= size
        return "pure"

    def _decode(self, data: memoryview, committed: AbortedFilter | None) -> Columns:
        return decode_columns(
            data,
            engine=self._engine(len(data)),
            check_crc=self.check_crc,
            keep_batches=None if committed is None else committed.keep,
            max_decompressed_bytes=DECOMPRESSED_MAX_BYTES,
        )


def pieces(data: memoryview) -> Iterator[memoryview]:
    """Whole batches in pieces of some MiB; a large batch is a piece of its own."""
    first = position = 0
    limit = PIECE_BYTES
    for end, is_compressed in _batch_ends(data):
        own = COMPRESSED_PIECE_BYTES if is_compressed else PIECE_BYTES
        limit = min(limit, own)
        if position > first and end - first > limit:
            yield data[first:position]
            first, limit = position, own
        position = end
    if position > first:
        yield data[first:position]


def _batch_ends(data: memoryview) -> Iterator[tuple[int, bool]]:
    """Where each batch ends, and whether it is compressed."""
    position = 0
    while len(data) - position >= HEADER_BYTES:
        length, magic, attributes = _LENGTH_MAGIC_ATTRIBUTES.unpack_from(data, position + 8)
        if magic != _MAGIC:
            break
        position += LOG_OVERHEAD_BYTES + length
        yield position, bool(attributes & CODEC_BITS)
    for batch in split_batches(data, position=position):  # older formats, if there are any
        yield batch.position + batch.size_bytes, bool(batch.attributes & CODEC_BITS)
