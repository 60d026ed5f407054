"""Turns columns of records into rows of a table.

Most records of an internal topic have other types than the requested one. So the types are compared in bulk, and only
matching records are decoded. Unknown record versions, of a later Kafka, are never an error: a table has their keys, and
the table of all records their bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from ottla import wire
from ottla.spark.records.bytes import RecordBytes, is_of_types, read_frame
from ottla.spark.records.tables import EPOCH, METADATA_TOPICS, Table, message_columns
from ottla.spark.records.types import arrow_schema
from ottla.spark.records.values import Convert, ValueRules, converter
from ottla.wire import WireError
from ottla.wire.batch import Record, read_control_record
from ottla.wire.keyed import record_types

if TYPE_CHECKING:
    from ottla.wire.columns import Columns
    from ottla.wire.columns_table import Int64s

__all__ = ["DecodedRows", "Decoder", "RecordDecoder", "Row", "Source"]

_INT16: Final = Struct(">h")
_MICROSECONDS: Final = 1000
KEYS_MAX: Final = 100_000


class Source(NamedTuple):
    """The partition of the records."""

    topic: str
    partition: int


class DecodedRows(NamedTuple):
    rows: pa.RecordBatch
    keys: list[bytes]
    """The record's key, for each row; empty if records have none."""


Row = tuple[str | None, int | None, bool, tuple[Any, ...]]
"""The record type, the version, whether it is a tombstone, and the cells of the other columns."""


class Decoder:
    """The common part of both decoders."""

    def __init__(self, schema: pa.Schema, batch_rows: int) -> None:
        self.schema = schema
        self._batch_rows = batch_rows

    def chosen(self, columns: Columns) -> Int64s:
        """The rows to decode."""
        raise NotImplementedError

    def row(self, source: Source, key: bytes | None, value: bytes | None) -> Row | None:
        """The row of a record; None if it does not belong to the table."""
        raise NotImplementedError

    def control_row(self, key: bytes | None, value: bytes | None) -> Row | None:
        """The row of a record of a control batch."""
        raise NotImplementedError

    def batches(self, source: Source, columns: Columns, from_offset: int, until_offset: int) -> Iterator[DecodedRows]:
        """The table's rows among records whose offset lies in a range."""
        chosen = self.chosen(columns)
        offsets = columns.offset[chosen]
        chosen = chosen[(offsets >= from_offset) & (offsets < until_offset)]
        for start in range(0, len(chosen), self._batch_rows):
            found = self._batch(source, columns, chosen[start : start + self._batch_rows])
            if found.rows.num_rows:
                yield found

    def _batch(self, source: Source, columns: Columns, chosen: Int64s) -> DecodedRows:
        records = RecordBytes(columns, chosen)
        is_control = columns.batches.is_control[columns.batch_index[chosen]].tolist()
        found = [
            self.control_row(key, value) if control else self.row(source, key, value)
            for key, value, control in zip(records.keys, records.values, is_control, strict=True)
        ]
        rows = [row for row in found if row is not None]
        keys = [key or b"" for key, row in zip(records.keys, found, strict=True) if row is not None]
        if len(rows) < len(found):
            chosen = chosen[[row is not None for row in found]]
        return DecodedRows(self._arrow(source, columns, chosen, rows), keys)

    def _arrow(self, source: Source, columns: Columns, at: Int64s, rows: list[Row]) -> pa.RecordBatch:
        common = [
            pa.repeat(pa.scalar(source.topic, pa.string()), len(rows)),
            pa.repeat(pa.scalar(source.partition, pa.int32()), len(rows)),
            pa.array(columns.offset[at]),
            pa.array(columns.timestamp[at] * _MICROSECONDS).view(pa.timestamp("us", tz="UTC")),
            pa.array([row[0] for row in rows], pa.string()),
            pa.array([row[1] for row in rows], pa.int32()),
            pa.array([row[2] for row in rows], pa.bool_()),
        ]
        if EPOCH.name in self.schema.names:
            epochs = columns.batches.field("partition_leader_epoch").astype(np.int32)
            common.append(pa.array(epochs[columns.batch_index[at]]))
        types = [field.type for field in self.schema][len(common) :]
        cells = list(zip(*(row[3] for row in rows), strict=True)) or [()] * len(types)
        arrays = [pa.array(values, kind) for values, kind in zip(cells, types, strict=True)]
        return pa.RecordBatch.from_arrays([*common, *arrays], schema=self.schema)


# --- one table --------------------------------------------------------------------------------------------------------


class RecordDecoder(Decoder):
    """Rows of one record type."""

    def __init__(self, table: Table, rules: ValueRules, batch_rows: int) -> None:
        super().__init__(arrow_schema(table.columns), batch_rows)
        self._table = table
        self._rules = rules
        self._names = _RecordNames(table.topic)
        self._keys: dict[bytes, tuple[str, str, tuple[Any, ...]]] = {}
        self._converters: dict[tuple[str, int], tuple[Callable[..., Any], Convert] | None] = {}
        key_count = 0 if table.key is None else len(message_columns(table.key))
        self._nulls = (None,) * (len(table.columns) - _common_count(table) - key_count)

    def chosen(self, columns: Columns) -> Int64s:
        mask = columns.batches.is_control[columns.batch_index]
        if self._table.kind != "control":
            is_keyed = self._table.kind == "keyed"
            mask = ~mask & is_of_types(columns, self._table.record_types, is_keyed=is_keyed)
        found: Int64s = np.flatnonzero(mask)
        return found

    def row(self, source: Source, key: bytes | None, value: bytes | None) -> Row | None:
        if self._table.kind == "metadata":
            return self._metadata_row(value or b"")
        key_cells = self._key_cells(key or b"")
        if key_cells is None:
            return None  # not a valid key of this type; the table of all records has it
        name, value_name, cells = key_cells
        if value is None:
            return (name, None, True, cells + self._nulls)
        version = _INT16.unpack_from(value)[0] if len(value) >= _INT16.size else -1
        return (name, version, False, cells + self._value_cells(value_name, version, value, _INT16.size))

    def _key_cells(self, key: bytes) -> tuple[str, str, tuple[Any, ...]] | None:
        """Record type, message of the value and cells of a key. Cached, because few keys are in most records."""
        found = self._keys.get(key)
        if found is not None:
            return found
        record_type = _INT16.unpack_from(key)[0]
        key_name = self._names.keys[record_type]
        try:
            cells = self._cells(self._table.key or "", key_name, wire.versions(key_name)[0], key, _INT16.size)
        except WireError:
            return None
        if len(self._keys) >= KEYS_MAX:
            self._keys.clear()
        found = self._keys[key] = (key_name.removesuffix("Key"), self._names.values[record_type], cells)
        return found

    def _metadata_row(self, value: bytes) -> Row | None:
        frame = read_frame(value)
        if frame is None:
            return None
        _, version, start = frame
        return (self._table.name, version, False, self._value_cells(self._table.value, version, value, start))

    def control_row(self, key: bytes | None, value: bytes | None) -> Row | None:
        try:
            control = read_control_record(Record(0, 0, key, value))
        except WireError:
            return None
        if control.type_id not in self._table.record_types or control.message is None:
            return None
        found = self._converter(self._table.value, self._table.value, control.message.version)
        cells = self._nulls if found is None else found[1](control.message)
        return (self._table.name, control.message.version, False, cells)

    def _value_cells(self, name: str, version: int, data: bytes, start: int) -> tuple[Any, ...]:
        """The cells of a value; nulls for an unknown version and for damaged values."""
        try:
            return self._cells(self._table.value, name, version, data, start)
        except WireError:
            return self._nulls

    def _cells(self, table_message: str, name: str, version: int, data: bytes, start: int) -> tuple[Any, ...]:
        found = self._converter(table_message, name, version)
        if found is None:
            return self._nulls
        decode, convert = found
        cells: tuple[Any, ...] = convert(decode(data, start))
        return cells

    def _converter(self, table_message: str, name: str, version: int) -> tuple[Callable[..., Any], Convert] | None:
        key = (name, version)
        if key not in self._converters:
            is_known = version in wire.versions(name)
            self._converters[key] = (
                (wire.decoder(name, version), converter(table_message, name, version, self._rules))
                if is_known
                else None
            )
        return self._converters[key]


class _RecordNames:
    """The messages of a topic's record types."""

    def __init__(self, topic: str) -> None:
        is_metadata = topic in METADATA_TOPICS
        self.keys = {} if is_metadata else record_types(topic, "coordinator-key")
        self.values = record_types(topic, "metadata" if is_metadata else "coordinator-value")


def _common_count(table: Table) -> int:
    return sum(column.name.startswith("_") for column in table.columns)
