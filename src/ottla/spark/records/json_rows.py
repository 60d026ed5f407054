"""All records of internal topics, of any type, with key and value as JSON."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Container
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ottla import wire
from ottla.spark.records.bytes import is_of_types
from ottla.spark.records.decode import EVERYTHING, Choice, Decoder, Row, Source
from ottla.spark.records.tables import JSON_COLUMNS, METADATA_TOPICS, tables
from ottla.spark.records.values import ValueRules, hide
from ottla.wire import WireError
from ottla.wire.batch import ControlRecordType, Record, read_control_record
from ottla.wire.keyed import record_types

if TYPE_CHECKING:
    from ottla.wire.columns import Columns
    from ottla.wire.columns_table import Int64s

__all__ = ["JsonDecoder"]


class JsonDecoder(Decoder):
    """One row for each record of any type, with key and value as JSON."""

    def __init__(self, rules: ValueRules, batch_rows: int, choice: Choice = EVERYTHING) -> None:
        super().__init__(JSON_COLUMNS, choice, batch_rows)
        self._rules = rules
        self._names = choice.values.get("_record")
        self._is_read = (choice.has("key"), choice.has("value"))
        self._control_names = {
            table.record_types[0]: table.name for table in tables().values() if table.kind == "control"
        }

    def chosen(self, source: Source, columns: Columns) -> Int64s:
        if self._names is None:
            return np.arange(len(columns))
        is_control = columns.batches.is_control[columns.batch_index]
        types = _types_of(source.topic, self._names)
        is_named = is_of_types(columns, types, is_keyed=source.topic not in METADATA_TOPICS)
        found: Int64s = np.flatnonzero(is_control | is_named)
        return found

    def row(self, source: Source, key: bytes | None, value: bytes | None) -> Row:
        try:
            if source.topic in METADATA_TOPICS:
                return self._metadata_row(source.topic, value or b"")
            return self._keyed_row(source.topic, key or b"", value)
        except WireError:
            return (None, None, value is None, self._cells(partial(_raw, key), partial(_raw, value)))

    def _keyed_row(self, topic: str, key: bytes, value: bytes | None) -> Row:
        found = wire.keyed.decode_keyed(topic, key, value)
        name = type(found.key).__name__.removesuffix("Key")
        version = None if found.value is None else found.value_version
        key_text = partial(self._text, found.key, found.key_version)
        value_text = partial(self._text, found.value, found.value_version)
        return (name, version, value is None, self._cells(key_text, value_text))

    def _metadata_row(self, topic: str, value: bytes) -> Row:
        found = wire.keyed.decode_metadata(topic, value)
        cells = self._cells(partial(self._text, None), partial(self._text, found.message, found.version))
        return (type(found.message).__name__, found.version, False, cells)

    def control_row(self, key: bytes | None, value: bytes | None) -> Row:
        try:
            control = read_control_record(Record(0, 0, key, value))
        except WireError:
            control = None
        if control is None or control.message is None:
            return (None, None, False, self._cells(partial(_raw, key), partial(_raw, value)))
        kind = ControlRecordType(control.type_id).name
        name = self._control_names.get(control.type_id, type(control.message).__name__)
        version = getattr(control.message, "version", 0)
        cells = self._cells(partial(json.dumps, {"type": kind}), partial(self._text, control.message, version))
        return (name, version, False, cells)

    def _cells(self, *texts: Callable[[], str | None]) -> tuple[str | None, ...]:
        """The key and the value, unless a query reads only one of them."""
        return tuple(text() for text, is_read in zip(texts, self._is_read, strict=True) if is_read)

    def _text(self, message: Any, version: int = -1) -> str | None:
        if message is None:
            return None
        found = wire.to_json(message, version)
        return json.dumps(found if self._rules.secrets else hide(message, found), ensure_ascii=False)


def _types_of(topic: str, names: Container[object]) -> tuple[int, ...]:
    """The types of the records with some names."""
    messages = record_types(topic, "metadata" if topic in METADATA_TOPICS else "coordinator-key")
    return tuple(number for number, message in messages.items() if message.removesuffix("Key") in names)


def _raw(data: bytes | None) -> str | None:
    return None if data is None else json.dumps({"base64": base64.b64encode(data).decode()})
