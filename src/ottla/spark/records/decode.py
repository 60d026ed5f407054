"""Turns columns of records into rows of a table.

Most records of an internal topic have other types than the requested one. So the types are compared in bulk, and only
matching records are decoded, of them only the columns that a query reads, and no values of keys that its filters
reject. Unknown record versions, of a later Kafka, are never an error: a table has their keys, and the table of all
records their bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from ottla import wire
from ottla.spark.records.bytes import RecordBytes, is_of_types, read_frame
from ottla.spark.records.tables import COMMON, EPOCH, METADATA_TOPICS, Table, message_columns
from ottla.spark.records.types import Column, arrow_schema
from ottla.spark.records.values import Convert, ValueRules, converter
from ottla.spark.schemas import arrow_numbers, arrow_repeated
from ottla.wire import WireError
from ottla.wire.batch import Record, read_control_record
from ottla.wire.keyed import record_types

if TYPE_CHECKING:
    from ottla.wire.columns import Columns
    from ottla.wire.columns_table import Int32s, Int64s

__all__ = ["EVERYTHING", "Choice", "DecodedRows", "Decoder", "Places", "RecordDecoder", "Row", "Source"]

_INT16: Final = Struct(">h")
_MICROSECONDS: Final = 1000
KEYS_MAX: Final = 100_000
COMMON_NAMES: Final = frozenset(column.name for column in (*COMMON, EPOCH))


class Source(NamedTuple):
    """The partition of the records."""

    topic: str
    partition: int


class Choice(NamedTuple):
    """What a query reads of a table."""

    columns: frozenset[str] | None = None
    """Names of columns; None for all."""
    values: Mapping[str, frozenset[str | int]] = {}
    """The only values that a column may have; rows with others may be left out."""

    def has(self, column: str) -> bool:
        return self.columns is None or column in self.columns

    def checks(self, names: Sequence[str]) -> list[tuple[int, frozenset[str | int]]]:
        """The positions among columns whose values are checked, and the accepted values."""
        return [(names.index(name), accepted) for name, accepted in self.values.items() if name in names]


EVERYTHING: Final = Choice()


class DecodedRows(NamedTuple):
    rows: pa.RecordBatch
    keys: list[bytes]
    """The record's key, for each row; empty if records have none."""
    tombstones: list[bool]


Row = tuple[str | None, int | None, bool, tuple[Any, ...]]
"""The record type, the version, whether it is a tombstone, and the chosen cells of the other columns."""


class Places(NamedTuple):
    """Where rows come from, in columns."""

    offsets: Int64s
    timestamps: Int64s
    epochs: Int32s

    @classmethod
    def of(cls, columns: Columns, at: Int64s) -> Places:
        epochs = columns.batches.field("partition_leader_epoch").astype(np.int32)
        return cls(columns.offset[at], columns.timestamp[at], epochs[columns.batch_index[at]])


class Decoder:
    """The common part of both decoders."""

    def __init__(self, columns: tuple[Column, ...], choice: Choice, batch_rows: int) -> None:
        self.schema = arrow_schema(tuple(column for column in columns if choice.has(column.name)))
        self._batch_rows = batch_rows
        self._cell_names = [name for name in self.schema.names if name not in COMMON_NAMES]

    def chosen(self, source: Source, columns: Columns) -> Int64s:
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
        chosen = self.chosen(source, columns)
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
        arrow = self.arrow(source, Places.of(columns, chosen), rows)
        return DecodedRows(arrow, keys, [row[2] for row in rows])

    def arrow(self, source: Source, places: Places, rows: list[Row]) -> pa.RecordBatch:
        common: dict[str, Callable[[], pa.Array]] = {
            "_topic": lambda: arrow_repeated(source.topic, pa.string(), len(rows)),
            "_partition": lambda: arrow_repeated(source.partition, pa.int32(), len(rows)),
            "_offset": lambda: arrow_numbers(places.offsets, pa.int64()),
            "_timestamp": lambda: arrow_numbers(places.timestamps * _MICROSECONDS, pa.timestamp("us", tz="UTC")),
            "_record": lambda: pa.array([row[0] for row in rows], pa.string()),
            "_version": lambda: pa.array([row[1] for row in rows], pa.int32()),
            "_tombstone": lambda: pa.array([row[2] for row in rows], pa.bool_()),
            "_epoch": lambda: arrow_numbers(places.epochs, pa.int32()),
        }
        listed = list(zip(*(row[3] for row in rows), strict=True)) or [()] * len(self._cell_names)
        cells = dict(zip(self._cell_names, listed, strict=True))
        arrays = [
            common[field.name]() if field.name in common else pa.array(cells[field.name], field.type)
            for field in self.schema
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


# --- one table --------------------------------------------------------------------------------------------------------


class RecordDecoder(Decoder):
    """Rows of one record type."""

    def __init__(self, table: Table, rules: ValueRules, batch_rows: int, choice: Choice = EVERYTHING) -> None:
        super().__init__(table.columns, choice, batch_rows)
        self._table = table
        self._rules = rules
        self._choice = choice
        self._names = _RecordNames(table.topic)
        self._keys: dict[bytes, _Key | None] = {}
        self._converters: dict[tuple[str, int], tuple[Callable[..., Any], Convert] | None] = {}
        in_key = set() if table.key is None else {column.name for column in message_columns(table.key)}
        key_names = [name for name in self._cell_names if name in in_key]
        value_names = [name for name in self._cell_names if name not in in_key]
        self._nulls = (None,) * len(value_names)
        self._key_checks = choice.checks(key_names)
        self._value_checks = choice.checks(value_names)

    def chosen(self, source: Source, columns: Columns) -> Int64s:
        mask = columns.batches.is_control[columns.batch_index]
        if self._table.kind != "control":
            is_keyed = self._table.kind == "keyed"
            mask = ~mask & is_of_types(columns, self._table.record_types, is_keyed=is_keyed)
        found: Int64s = np.flatnonzero(mask)
        return found

    def row(self, source: Source, key: bytes | None, value: bytes | None) -> Row | None:
        if self._table.kind == "metadata":
            return self._metadata_row(value or b"")
        known = self._key(key or b"")
        if known is None:
            return None
        if value is None:
            return (known.record, None, True, known.cells + self._nulls)
        version = _INT16.unpack_from(value)[0] if len(value) >= _INT16.size else -1
        return (known.record, version, False, known.cells + self._value_cells(known.value, version, value, _INT16.size))

    def _key(self, key: bytes) -> _Key | None:
        """A key, decoded; None if it is none of this type, which only the table of all records has, or is rejected.

        Cached, because few keys are in most records.
        """
        try:
            return self._keys[key]
        except KeyError:
            if len(self._keys) >= KEYS_MAX:
                self._keys.clear()
            found = self._keys[key] = self._decoded_key(key)
            return found

    def _decoded_key(self, key: bytes) -> _Key | None:
        record_type = _INT16.unpack_from(key)[0]
        name = self._names.keys[record_type]
        try:
            cells = self._cells(self._table.key or "", name, wire.versions(name)[0], key, _INT16.size)
        except WireError:
            return None
        if not _passes(cells, self._key_checks):
            return None
        return _Key(name.removesuffix("Key"), self._names.values[record_type], cells)

    def _metadata_row(self, value: bytes) -> Row | None:
        frame = read_frame(value)
        if frame is None:
            return None
        _, version, start = frame
        cells = self._value_cells(self._table.value, version, value, start)
        return (self._table.name, version, False, cells) if _passes(cells, self._value_checks) else None

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

    def message_row(self, message: object, version: int) -> Row:
        """The row of a decoded message, with all fields of its newest version; it was stored in `version`."""
        found = self._converter(self._table.value, self._table.value, max(wire.versions(self._table.value)))
        assert found is not None
        return (self._table.name, version, False, found[1](message))

    def _value_cells(self, name: str, version: int, data: bytes, start: int) -> tuple[Any, ...]:
        """The cells of a value; nulls for an unknown version and for damaged values."""
        if not self._nulls:
            return ()
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
                (
                    wire.decoder(name, version),
                    converter(table_message, name, version, self._rules, self._choice.columns),
                )
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


class _Key(NamedTuple):
    record: str
    value: str
    """The name of the value's message."""
    cells: tuple[Any, ...]


def _passes(cells: tuple[Any, ...], checks: list[tuple[int, frozenset[str | int]]]) -> bool:
    return all(cells[index] in accepted for index, accepted in checks)
