"""Decodes many record batches at once into columns: offset, timestamp, and positions of keys, values and headers.

Theory of operation. Compiled loops walk a chunk of batches (a fetch response, a piece of a segment; 1 to 8 MiB is a
good size): one over the batch headers, one over all records. The result, `Columns`, holds numpy arrays with one entry
per record. Keys and values are not copied: `key_start` and `key_length` point into `data`, which is the chunk itself
or, if a batch was compressed, the decompressed records joined. `to_arrow` copies them into Arrow buffers (for Spark).

The pure readers are the reference. They read again every chunk that the compiled loops reject, and every chunk with
message sets of magic 0 or 1; so errors are the same `WireError`s, and results the same arrays. Without numba they read
everything, some hundred times slower, and a warning says so once.

Memory. A count in a header is accepted only if the batch has room for that many records, so arrays take at most six
times the (decompressed) input; `max_decompressed_bytes` bounds the latter for the whole chunk.

numpy is imported at the first call, numba (0.3 s, and some seconds to compile on the first run ever) at the first use
of the compiled engine, pyarrow by the Arrow methods. `warm_up` does it all beforehand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from ottla.wire.batch_record import Record
from ottla.wire.batch_view import (
    ATTRIBUTES_POSITION,
    CODEC_BITS,
    CONTROL_BIT,
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    Buffer,
    crc32c,
    read_header,
)
from ottla.wire.columns_pure import POSITION_MAX, Joined, Options, control_type, decode_pure
from ottla.wire.columns_table import BATCH_FIELDS, BatchColumns, Columns, HeaderColumns, read_only
from ottla.wire.compress import DEFAULT_MAX_BYTES
from ottla.wire.engine import Engine, is_compiled
from ottla.wire.fault import WireError

if TYPE_CHECKING:
    from ottla.wire.columns_table import Bools, Int32s, Int64s, Octets

__all__ = ["BATCH_FIELDS", "BatchColumns", "Columns", "Engine", "HeaderColumns", "decode_columns", "warm_up"]


def decode_columns(
    chunk: Buffer,
    *,
    check_crc: bool = True,
    include_control: bool = False,
    keep_batches: Callable[[BatchColumns], Bools] | None = None,
    max_decompressed_bytes: int = DEFAULT_MAX_BYTES,
    engine: Engine = "auto",
) -> Columns:
    """All records of the batches in `chunk`; a truncated batch at its end is left out, damage raises WireError.

    Control batches are left out unless requested, but stay in `Columns.batches`. `keep_batches` may leave out more:
    it gets the headers (producer, transaction, control type) before any record is read, and returns which batches
    count. So a reader of committed records drops aborted transactions.
    """
    if len(chunk) > POSITION_MAX:
        raise ValueError(f"a chunk of {len(chunk)} bytes: columns take at most {POSITION_MAX}")
    options = Options(check_crc, include_control, keep_batches, max_decompressed_bytes)
    if not is_compiled(engine):
        return decode_pure(chunk, options)
    try:
        return _decode_compiled(chunk, options)
    except _GaveUpError:
        # Damage or an old format: the reference reads it, or raises the error.
        return decode_pure(chunk, options)


def warm_up() -> None:
    """Import and compile everything now: 5 s if numba's cache is empty, else half a second."""
    from ottla.wire.batch_build import build_batch

    record = Record(0, 0, b"k", b"v", (("h", b"v"),))
    decode_columns(build_batch([record])).to_arrow()


class _Places(NamedTuple):
    start: Int32s
    length: Int32s


class _GaveUpError(Exception):
    """The compiled engine does not read this chunk."""


# --- the compiled engine ----------------------------------------------------------------------------------------------


def _decode_compiled(chunk: Buffer, options: Options) -> Columns:
    import numpy as np

    from ottla.wire import columns_kernels as kernels

    data = read_only(chunk)
    batch_count, end_position, is_odd = kernels.count_batches(data)
    if is_odd:
        raise _GaveUpError
    table = np.empty((len(BATCH_FIELDS), batch_count), np.int64)
    kernels.read_batch_headers(data, table)
    view = memoryview(chunk)
    if options.check_crc:
        _check_crcs(view, table)
    batches = BatchColumns(table, np.zeros(batch_count + 1, np.int64), _control_types(view, table, options))
    chosen = options.chosen(batches)
    np.cumsum(np.where(chosen, batches.field("record_count"), 0), out=batches.record_start[1:])
    picked = table if chosen.all() else np.ascontiguousarray(table[:, chosen])
    data, starts, ends = _sections(data, view, picked, options.max_decompressed_bytes)
    return _walk_compiled(data, starts, ends, picked, batches, end_position)


def _check_crcs(view: memoryview, table: Int64s) -> None:
    rows = (BATCH_FIELDS.index(name) for name in ("position", "batch_length", "crc"))
    for position, length, crc in zip(*(table[row].tolist() for row in rows), strict=True):
        if crc32c(view[position + ATTRIBUTES_POSITION : position + LOG_OVERHEAD_BYTES + length]) != crc:
            raise _GaveUpError


def _control_types(view: memoryview, table: Int64s, options: Options) -> Int64s:
    import numpy as np

    types = np.full(table.shape[1], -1, np.int64)
    for index in np.flatnonzero(table[BATCH_FIELDS.index("attributes")] & CONTROL_BIT):
        try:
            batch = read_header(view, int(table[0, index]))
            types[index] = control_type(batch, options.max_decompressed_bytes)
        except WireError:
            raise _GaveUpError from None
    return types


def _sections(
    data: Octets, view: memoryview, picked: Int64s, max_decompressed_bytes: int
) -> tuple[Octets, Int64s, Int64s]:
    """The bytes of the records, and the start and end of each batch in them."""
    import numpy as np

    position, length, attributes = (picked[BATCH_FIELDS.index(n)] for n in ("position", "batch_length", "attributes"))
    if not np.any(attributes & CODEC_BITS):
        return data, position + HEADER_BYTES, position + length + LOG_OVERHEAD_BYTES
    try:
        joined = Joined(max_decompressed_bytes)
        for start in position.tolist():
            joined.add(read_header(view, start))
    except WireError:
        raise _GaveUpError from None
    ends = np.array(joined.ends, np.int64)
    starts = np.concatenate((np.zeros(1, np.int64), ends[:-1]))
    return read_only(joined.data()), starts, ends


def _walk_compiled(
    data: Octets,
    starts: Int64s,
    ends: Int64s,
    picked: Int64s,
    batches: BatchColumns,
    end_position: int,
) -> Columns:
    import numpy as np

    from ottla.wire import columns_kernels as kernels

    total = kernels.count_records(picked, starts, ends)
    if total < 0:
        raise _GaveUpError
    # One block for all columns: the process keeps a large block for the next chunk, but returns many small ones.
    block = np.empty((5, total), np.int64)
    offset, timestamp = block[0], block[1]
    places = block[2:].reshape(-1).view(np.int32).reshape(6, total)
    if kernels.walk_sections(data, picked, starts, ends, offset, timestamp, *places) >= 0:
        raise _GaveUpError
    keys, values, headers = (_Places(*pair) for pair in places.reshape(3, 2, total))
    return Columns(data, batches, offset, timestamp, *keys, *values, *headers, end_position, is_compiled=True)
