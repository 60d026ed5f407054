"""Rows in columns to records in batches, many at once: the reverse of `ottla.wire.columns`.

    rows = Rows(ByteColumn.of(keys), ByteColumn.of(values), HeaderLists.of(headers))   # from Arrow arrays
    encoder = RowEncoder(rows)
    encoder.append(batches, order, timestamp, batch_bytes)                             # the rows of one partition

Theory of operation. Keys, values and headers stay in Arrow's buffers; a compiled loop writes them, as records, one
behind the other into one piece of memory, which is as large as all rows can become. A batch refers to its part of it.
Without numba, `ottla.wire.batch_record.encode_record` does it row by row; it is the reference, and the bytes are the
same.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ottla.wire.batch_build import BatchBuilder
from ottla.wire.batch_record import HEADER_OVERHEAD_MAX, RECORD_OVERHEAD_MAX, Header, encode_record
from ottla.wire.columns_table import read_only
from ottla.wire.engine import Engine, is_compiled
from ottla.wire.varint import encode_varint, wrap_int64

if TYPE_CHECKING:
    from ottla.wire.columns_table import Int32s, Int64s, Octets

__all__ = ["ByteColumn", "HeaderLists", "RowEncoder", "Rows"]

STORE_BYTES: Final = 8
"""The compiled loop stores integers of so many bytes, also the last one."""


class ByteColumn(NamedTuple):
    """A run of bytes for each row: where it starts in `data`, and its length; -1 is null."""

    data: Octets
    start: Int32s
    length: Int32s

    @classmethod
    def of(cls, array: Any) -> ByteColumn:
        """From an Arrow array of type binary or string; nothing is copied."""
        import numpy as np
        import pyarrow as pa

        if pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type):
            array = array.cast(pa.large_binary()).cast(pa.binary())
        if not len(array):
            return cls.nulls(0)
        _, ends, data = array.buffers()
        ends = read_only(ends).view(np.int32)[array.offset :][: len(array) + 1]
        lengths = np.diff(ends)
        if array.null_count:
            lengths[array.is_null().to_numpy(zero_copy_only=False)] = -1
        return cls(read_only(data or b""), ends[:-1], lengths)

    @classmethod
    def nulls(cls, count: int) -> ByteColumn:
        import numpy as np

        return cls(read_only(b""), read_only(bytes(4 * count)).view(np.int32), np.full(count, -1, np.int32))

    @property
    def size_bytes(self) -> int:
        return int(self.length.clip(0).sum(dtype="int64"))

    def take(self, places: Int64s) -> ByteColumn:
        """The runs of some rows, not copied."""
        return ByteColumn(self.data, self.start[places], self.length[places])

    def cell(self, row: int) -> bytes | None:
        start, length = int(self.start[row]), int(self.length[row])
        return None if length < 0 else self.data[start : start + length].tobytes()


class HeaderLists(NamedTuple):
    """A list of headers for each row: where it starts among the keys and values of all headers, and its length."""

    start: Int32s
    length: Int32s
    keys: ByteColumn
    values: ByteColumn

    @classmethod
    def of(cls, array: Any) -> HeaderLists:
        """From an Arrow array of lists of `struct<key: string, value: binary>`. Nulls, of lists or keys, are empty."""
        import numpy as np

        lengths = array.value_lengths().fill_null(0).to_numpy().copy()
        pairs = array.flatten()
        keys, values = (ByteColumn.of(pairs.field(name)) for name in ("key", "value"))
        keys = keys._replace(length=keys.length.clip(0))
        return cls(np.cumsum(lengths, dtype=np.int32) - lengths, lengths, keys, values)

    @classmethod
    def none(cls, count: int) -> HeaderLists:
        import numpy as np

        return cls(np.zeros(count, np.int32), np.zeros(count, np.int32), ByteColumn.nulls(0), ByteColumn.nulls(0))

    def cell(self, row: int) -> list[Header]:
        start = int(self.start[row])
        places = range(start, start + int(self.length[row]))
        return [((self.keys.cell(each) or b"").decode(), self.values.cell(each)) for each in places]


class Rows(NamedTuple):
    """What records are made of, one entry a row."""

    keys: ByteColumn
    values: ByteColumn
    headers: HeaderLists

    @property
    def size_bytes_max(self) -> int:
        """What their records take at most."""
        headers = self.headers
        payload = sum(each.size_bytes for each in (self.keys, self.values, headers.keys, headers.values))
        overhead = RECORD_OVERHEAD_MAX * len(self.values.start) + HEADER_OVERHEAD_MAX * len(headers.keys.start)
        return payload + overhead


class RowEncoder:
    """Writes some rows into batches; each row once."""

    def __init__(self, rows: Rows, engine: Engine = "auto") -> None:
        import numpy as np

        self._rows = rows
        self._output = np.empty(rows.size_bytes_max + STORE_BYTES, np.uint8)
        self._end = 0
        self._encode = self._compiled if is_compiled(engine) and sys.byteorder == "little" else self._pure

    @property
    def size_bytes(self) -> int:
        """What the rows that were appended take."""
        return self._end

    def append(self, batches: list[BatchBuilder], order: Int64s, timestamp: int, batch_bytes: int) -> None:
        """Append the rows that `order` names to the last batch, and begin another whenever one would get larger than
        `batch_bytes`; a row that is too large itself gets a batch of its own."""
        place = 0
        while place < len(order):
            if not batches:
                batches.append(BatchBuilder())
            batch = batches[-1]
            base_timestamp = timestamp if batch.base_timestamp is None else batch.base_timestamp
            deltas = wrap_int64(timestamp - base_timestamp), batch.next_offset - batch.base_offset
            next_place, end = self._encode(order, place, batch_bytes - batch.size_bytes, len(batch) == 0, *deltas)
            if next_place > place:
                batch.append_encoded(timestamp, self._output[self._end : end].data, next_place - place)
            place, self._end = next_place, end
            if place < len(order):
                batches.append(BatchBuilder())

    def _compiled(
        self, order: Int64s, place: int, room: int, is_empty: bool, timestamp_delta: int, offset_delta: int
    ) -> tuple[int, int]:
        from ottla.wire.row_kernels import encode_rows

        head = read_only(b"\x00" + encode_varint(timestamp_delta))
        keys, values, headers = self._rows
        columns = *keys, *values, headers.start, headers.length, *headers.keys, *headers.values
        found: tuple[int, int] = encode_rows(
            order, place, room, is_empty, head, offset_delta, *columns, self._output, self._end
        )
        return found

    def _pure(
        self, order: Int64s, place: int, room: int, is_empty: bool, timestamp_delta: int, offset_delta: int
    ) -> tuple[int, int]:
        end, end_max = self._end, self._end + room
        keys, values, headers = self._rows
        for row in order[place:].tolist():
            record = encode_record(offset_delta, timestamp_delta, keys.cell(row), values.cell(row), headers.cell(row))
            if end + len(record) > end_max and not is_empty:
                break
            is_empty = False
            self._output[end : end + len(record)] = memoryview(record)
            end += len(record)
            offset_delta += 1
            place += 1
        return place, end
