"""The reference of `ottla.wire.columns`: the pure readers, with results in the same columns.

It reads every magic, and only it explains what is wrong with a damaged chunk. numpy only holds the results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ottla.wire.batch_control import read_control_type
from ottla.wire.batch_record import Section, walk, walk_headers
from ottla.wire.batch_view import LOG_APPEND_TIME_BIT, AnyBatch, BatchView, Buffer, split_batches
from ottla.wire.columns_table import BATCH_FIELDS, BatchColumns, Columns, read_only
from ottla.wire.legacy import LegacyBatch, MessagePosition
from ottla.wire.varint import wrap_int64

if TYPE_CHECKING:
    from ottla.wire.columns_table import Bools, Int32s, Octets

__all__ = ["POSITION_MAX", "Joined", "Options", "PureLoops", "control_type", "decode_pure"]

# Positions in columns have 32 bits.
POSITION_MAX: Final = (1 << 31) - 1


@dataclass(frozen=True)
class Options:
    check_crc: bool
    include_control: bool
    keep_batches: Callable[[BatchColumns], Bools] | None
    max_decompressed_bytes: int

    def chosen(self, batches: BatchColumns) -> Bools:
        """The batches whose records are read; those that claim none are skipped, as in Java."""
        mask: Bools = batches.field("record_count") != 0
        if not self.include_control:
            mask &= ~batches.is_control
        if self.keep_batches is not None:
            mask &= self.keep_batches(batches)
        return mask


class Joined:
    """Sections joined, with one bound for all decompressed bytes."""

    def __init__(self, max_decompressed_bytes: int) -> None:
        self.parts: list[bytes | memoryview] = []
        self.ends: list[int] = []
        self.end = 0
        self.rest = max_decompressed_bytes

    def add(self, batch: BatchView) -> Section:
        section = batch.section(copy=False, max_decompressed_bytes=self.rest)
        if section.was_compressed:
            self.rest -= len(section.data)
        self.append(section)
        return section

    def open(self, batch: LegacyBatch) -> tuple[Section, list[MessagePosition]]:
        section, positions = batch.positions(max_decompressed_bytes=self.rest)
        if section.was_compressed:
            self.rest -= len(section.data)
        return section, positions

    def append(self, section: Section) -> None:
        self.parts.append(section.data)
        self.end += len(section.data)
        self.ends.append(self.end)
        if self.end > POSITION_MAX:
            section.refuse("", 0, f"the chunk has more than {POSITION_MAX} bytes after decompression")

    def data(self) -> bytes:
        return b"".join(self.parts)


def control_type(batch: BatchView, max_decompressed_bytes: int) -> int:
    """The type of the first record of a control batch; -1 if the batch is empty."""
    records = batch.records(max_decompressed_bytes=max_decompressed_bytes)
    return read_control_type(records[0].key) if records else -1


def decode_pure(chunk: Buffer, options: Options) -> Columns:
    """The same as `ottla.wire.columns.decode_columns`, by the pure readers."""
    import numpy as np

    joined = Joined(options.max_decompressed_bytes)
    batches = [_Opened(batch, joined) for batch in _checked(chunk, options)]
    table = np.array([batch.header for batch in batches], np.int64).reshape(-1, len(BATCH_FIELDS)).T
    types = np.array([batch.control_type for batch in batches], np.int64)
    columns = BatchColumns(table, np.zeros(len(batches) + 1, np.int64), types)
    rows: list[tuple[int, ...]] = []
    for index, (batch, is_chosen) in enumerate(zip(batches, options.chosen(columns), strict=True)):
        if is_chosen:
            rows += batch.rows(joined)
        columns.record_start[index + 1] = len(rows)
    cells = np.array(rows, np.int64).reshape(-1, 8).T
    offset, timestamp = cells[:2].copy()
    keys, values, headers = cells[2:].astype(np.int32).reshape(3, 2, -1)
    end_position = batches[-1].end_position if batches else 0
    data = read_only(joined.data())
    positions = (keys[0], keys[1], values[0], values[1], headers[0], headers[1])
    return Columns(data, columns, offset, timestamp, *positions, end_position, is_compiled=False)


def _checked(chunk: Buffer, options: Options) -> Iterable[AnyBatch]:
    for batch in split_batches(chunk):
        if options.check_crc:
            batch.check_crc()
        yield batch


class _Opened:
    """A batch with the values of its entry in `Columns.batches`.

    A wrapper of magic 0 or 1 must be decompressed for that.
    """

    def __init__(self, batch: AnyBatch, joined: Joined) -> None:
        self.batch = batch
        self.end_position = batch.position + batch.size_bytes
        self.control_type = -1
        self.inner: tuple[Section, list[MessagePosition]] | None = None
        if isinstance(batch, LegacyBatch):
            self.inner = joined.open(batch)
            self.header = _legacy_header(batch, self.inner[1])
        else:
            self.header = tuple(getattr(batch, name) for name in BATCH_FIELDS)
            if batch.is_control:
                self.control_type = control_type(batch, joined.rest)

    def rows(self, joined: Joined) -> Iterable[tuple[int, ...]]:
        if isinstance(self.batch, BatchView):
            return _v2_rows(self.batch, joined)
        assert self.inner is not None
        return _legacy_rows(*self.inner, joined)


def _legacy_header(batch: LegacyBatch, positions: list[MessagePosition]) -> tuple[int, ...]:
    """A message or a wrapper in the fields of a batch; missing fields are -1."""
    known = {
        "position": batch.position,
        "base_offset": positions[0].offset,
        "batch_length": batch.message_size,
        "magic": batch.magic,
        "crc": batch.crc,
        "attributes": batch.attributes,
        "last_offset_delta": wrap_int64(batch.offset - positions[0].offset),
        "base_timestamp": batch.timestamp,
        "max_timestamp": batch.timestamp,
        "record_count": len(positions),
    }
    return tuple(known.get(name, -1) for name in BATCH_FIELDS)


def _v2_rows(batch: BatchView, joined: Joined) -> Iterable[tuple[int, ...]]:
    base = joined.end
    section = joined.add(batch)
    has_append_time = bool(batch.attributes & LOG_APPEND_TIME_BIT)
    for position in walk(section, batch.record_count):
        yield (
            wrap_int64(batch.base_offset + position.offset_delta),
            batch.max_timestamp if has_append_time else wrap_int64(batch.base_timestamp + position.timestamp_delta),
            base + position.key_start,
            position.key_length,
            base + position.value_start,
            position.value_length,
            base + position.headers_start,
            position.header_count,
        )


def _legacy_rows(section: Section, positions: list[MessagePosition], joined: Joined) -> Iterable[tuple[int, ...]]:
    base = joined.end
    joined.append(section)
    for offset, timestamp, key_start, key_length, value_start, value_length in positions:
        yield offset, timestamp, base + key_start, key_length, base + value_start, value_length, joined.end, 0


class PureLoops:
    """The loops that columns need later, for machines without numba."""

    def walk_headers(self, data: Octets, headers_start: Int32s, header_count: Int32s, *positions: Int32s) -> None:
        section = Section(data.data, "", 0, was_compressed=False)
        index = 0
        for start, count in zip(headers_start.tolist(), header_count.tolist(), strict=True):
            for header in walk_headers(section, start, count):
                for column, value in zip(positions, header, strict=True):
                    column[index] = value
                index += 1

    def copy_runs(self, data: Octets, starts: Int32s, lengths: Int32s, ends: Int32s, output: Octets) -> None:
        at = 0
        for row, (start, length) in enumerate(zip(starts.tolist(), lengths.tolist(), strict=True)):
            if length > 0:
                output[at : at + length] = data[start : start + length]
                at += length
            ends[row + 1] = at
