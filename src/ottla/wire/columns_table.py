"""The result of `ottla.wire.columns`: columns of records, headers and batches, and their conversion to Arrow."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from ottla.wire.batch_record import Record, decode_header_key
from ottla.wire.batch_view import CODEC_BITS, CONTROL_BIT, LOG_APPEND_TIME_BIT, TRANSACTIONAL_BIT, Buffer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Int32s = NDArray[np.int32]
    Int64s = NDArray[np.int64]
    Bools = NDArray[np.bool_]
    Octets = NDArray[np.uint8]

__all__ = ["BATCH_FIELDS", "BatchColumns", "Columns", "HeaderColumns", "Loops", "read_only"]

# The rows of `BatchColumns.table`.
BATCH_FIELDS: Final = (
    "position",
    "base_offset",
    "batch_length",
    "partition_leader_epoch",
    "magic",
    "crc",
    "attributes",
    "last_offset_delta",
    "base_timestamp",
    "max_timestamp",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "record_count",
)

# The fields of `Columns` with one entry per record.
_ROW_FIELDS: Final = (
    "offset",
    "timestamp",
    "key_start",
    "key_length",
    "value_start",
    "value_length",
    "headers_start",
    "header_count",
)


def read_only(buffer: Buffer) -> Octets:
    """The bytes as an array; always read-only, because numba would compile its loops again for writable arrays."""
    import numpy as np

    array = np.frombuffer(buffer, np.uint8)
    array.flags.writeable = False
    return array


class Loops(Protocol):
    """The loops that columns use later; both the compiled loops and the pure ones have them."""

    def walk_headers(self, data: Octets, headers_start: Int32s, header_count: Int32s, *places: Int32s) -> None:
        """Fill start and length of keys, and of values, of all headers."""

    def copy_runs(self, data: Octets, starts: Int32s, lengths: Int32s, ends: Int32s, output: Octets) -> None:
        """Copy runs of bytes one after the other; `ends` gets the end of each."""


@dataclass(frozen=True, eq=False)
class BatchColumns:
    """One entry per batch, whether its records were read or not; `table` holds the header fields as stored."""

    table: Int64s
    record_start: Int64s
    """Batch i has the records from `record_start[i]` to `record_start[i + 1]`; none if it was left out."""
    control_type: Int64s
    """The type in the first record of a control batch (0 abort, 1 commit), else -1."""

    def __len__(self) -> int:
        return int(self.table.shape[1])

    def field(self, name: str) -> Int64s:
        """A field of the header, by its name in `BATCH_FIELDS`."""
        row: Int64s = self.table[BATCH_FIELDS.index(name)]
        return row

    @property
    def last_offset(self) -> Int64s:
        return self.field("base_offset") + self.field("last_offset_delta")

    @property
    def is_control(self) -> Bools:
        return self._has(CONTROL_BIT)

    @property
    def is_transactional(self) -> Bools:
        return self._has(TRANSACTIONAL_BIT)

    @property
    def has_append_time(self) -> Bools:
        """Batches whose timestamps are the broker's (magic 0 has none at all)."""
        return self._has(LOG_APPEND_TIME_BIT, magic_min=1)

    @property
    def is_compressed(self) -> Bools:
        return self._has(CODEC_BITS, magic_min=0)

    def _has(self, bits: int, magic_min: int = 2) -> Bools:
        mask: Bools = (self.field("attributes") & bits != 0) & (self.field("magic") >= magic_min)
        return mask


@dataclass(frozen=True, eq=False)
class HeaderColumns:
    """One entry per header, of all records in order."""

    record_start: Int32s
    """Record i has the headers from `record_start[i]` to `record_start[i + 1]`."""
    key_start: Int32s
    key_length: Int32s
    value_start: Int32s
    value_length: Int32s


@dataclass(frozen=True, eq=False)
class Columns:
    """One entry per record. Starts point into `data`; a length of -1 is null."""

    data: Octets
    batches: BatchColumns
    offset: Int64s
    timestamp: Int64s
    key_start: Int32s
    key_length: Int32s
    value_start: Int32s
    value_length: Int32s
    headers_start: Int32s
    header_count: Int32s
    end_position: int
    """The end of the whole batches in the chunk; a truncated one may follow."""
    is_compiled: bool
    """Whether the compiled engine read the chunk; the same engine finds headers and copies."""

    def __len__(self) -> int:
        return len(self.offset)

    @functools.cached_property
    def batch_index(self) -> Int64s:
        """The batch of each record."""
        import numpy as np

        return np.repeat(np.arange(len(self.batches)), np.diff(self.batches.record_start))

    @functools.cached_property
    def headers(self) -> HeaderColumns:
        """The positions of the headers; computed at the first access, because most consumers do not need them."""
        import numpy as np

        starts = np.zeros(len(self) + 1, np.int32)
        np.cumsum(self.header_count, out=starts[1:])
        places = [np.empty(int(starts[-1]), np.int32) for _ in range(4)]
        if starts[-1]:
            self._loops().walk_headers(self.data, self.headers_start, self.header_count, *places)
        return HeaderColumns(starts, *places)

    def rows(self, start: int, stop: int) -> Columns:
        """The rows from `start` to `stop`, not copied; all batches stay, each with the rows that are left of it."""
        import numpy as np

        record_start = np.clip(self.batches.record_start, start, stop) - start
        batches = replace(self.batches, record_start=record_start)
        return replace(self, batches=batches, **{name: getattr(self, name)[start:stop] for name in _ROW_FIELDS})

    def record(self, row: int) -> Record:
        """One record in the form of `BatchView.records`, for tests."""
        view = self.data.data
        starts = self.headers.record_start

        def run(start: Any, length: Any) -> bytes | None:
            return None if length < 0 else bytes(view[int(start) : int(start) + int(length)])

        headers = [
            (
                decode_header_key(run(self.headers.key_start[i], self.headers.key_length[i]) or b""),
                run(self.headers.value_start[i], self.headers.value_length[i]),
            )
            for i in range(int(starts[row]), int(starts[row + 1]))
        ]
        key = run(self.key_start[row], self.key_length[row])
        value = run(self.value_start[row], self.value_length[row])
        return Record(int(self.offset[row]), int(self.timestamp[row]), key, value, tuple(headers))

    def keys(self) -> Any:
        """The keys as an Arrow array of type binary, copied."""
        return self._binary(self.key_start, self.key_length)

    def values(self) -> Any:
        """The values as an Arrow array of type binary, copied."""
        return self._binary(self.value_start, self.value_length)

    def header_lists(self, *, empty_as_null: bool = False) -> Any:
        """The headers as an Arrow array of lists of `struct<key: string, value: binary>`, copied."""
        import pyarrow as pa

        headers = self.headers
        keys = _utf8_array(self._binary(headers.key_start, headers.key_length))
        values = self._binary(headers.value_start, headers.value_length)
        pairs = pa.StructArray.from_arrays([keys, values], ["key", "value"])
        mask = pa.array(self.header_count == 0) if empty_as_null else None
        return pa.ListArray.from_arrays(pa.array(headers.record_start), pairs, mask=mask)

    def to_arrow(self, *, headers: bool = True) -> Any:
        """An Arrow record batch with columns offset, timestamp (ms), key, value and optionally headers."""
        import pyarrow as pa

        columns = {
            "offset": pa.array(self.offset),
            "timestamp": pa.array(self.timestamp),
            "key": self.keys(),
            "value": self.values(),
        }
        if headers:
            columns["headers"] = self.header_lists()
        return pa.RecordBatch.from_pydict(columns)

    def _loops(self) -> Loops:
        # Not a field, because modules cannot be pickled.
        if self.is_compiled:
            from ottla.wire import columns_kernels

            return columns_kernels
        from ottla.wire.columns_pure import PureLoops

        return PureLoops()

    def _binary(self, starts: Int32s, lengths: Int32s) -> Any:
        import numpy as np
        import pyarrow as pa

        output = pa.allocate_buffer(int(np.maximum(lengths, 0).sum(dtype=np.int64)))
        ends = np.zeros(len(starts) + 1, np.int32)
        self._loops().copy_runs(self.data, starts, lengths, ends, np.frombuffer(output, np.uint8))
        is_set = lengths >= 0
        null_count = len(starts) - int(np.count_nonzero(is_set))
        validity = pa.py_buffer(np.packbits(is_set, bitorder="little")) if null_count else None
        return pa.Array.from_buffers(pa.binary(), len(starts), [validity, pa.py_buffer(ends), output], null_count)


def _utf8_array(keys: Any) -> Any:
    """Header keys as text; invalid UTF-8 is replaced as everywhere."""
    import pyarrow as pa

    try:
        return keys.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([decode_header_key(key) for key in keys.to_pylist()], pa.string())
