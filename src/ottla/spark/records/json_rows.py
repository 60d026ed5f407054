"""All records of internal topics, of any type, with key and value as JSON."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import numpy as np

from ottla import wire
from ottla.spark.records.decode import Decoder, Row, Source
from ottla.spark.records.tables import JSON_COLUMNS, METADATA_TOPICS, tables
from ottla.spark.records.types import arrow_schema
from ottla.spark.records.values import ValueRules, hide
from ottla.wire import WireError
from ottla.wire.batch import ControlRecordType, Record, read_control_record

if TYPE_CHECKING:
    from ottla.wire.columns import Columns
    from ottla.wire.columns_table import Int64s

__all__ = ["JsonDecoder"]


class JsonDecoder(Decoder):
    """One row for each record of any type, with key and value as JSON."""

    def __init__(self, rules: ValueRules, batch_rows: int) -> None:
        super().__init__(arrow_schema(JSON_COLUMNS), batch_rows)
        self._rules = rules
        self._control_names = {
            table.record_types[0]: table.name for table in tables().values() if table.kind == "control"
        }

    def chosen(self, columns: Columns) -> Int64s:
        return np.arange(len(columns))

    def row(self, source: Source, key: bytes | None, value: bytes | None) -> Row:
        try:
            if source.topic in METADATA_TOPICS:
                return self._metadata_row(source.topic, value or b"")
            return self._keyed_row(source.topic, key or b"", value)
        except WireError:
            return (None, None, value is None, (_raw(key), _raw(value)))

    def _keyed_row(self, topic: str, key: bytes, value: bytes | None) -> Row:
        found = wire.keyed.decode_keyed(topic, key, value)
        name = type(found.key).__name__.removesuffix("Key")
        text = None if found.value is None else self._text(found.value, found.value_version)
        version = None if found.value is None else found.value_version
        return (name, version, value is None, (self._text(found.key, found.key_version), text))

    def _metadata_row(self, topic: str, value: bytes) -> Row:
        found = wire.keyed.decode_metadata(topic, value)
        text = self._text(found.message, found.version)
        return (type(found.message).__name__, found.version, False, (None, text))

    def control_row(self, key: bytes | None, value: bytes | None) -> Row:
        try:
            control = read_control_record(Record(0, 0, key, value))
        except WireError:
            control = None
        if control is None or control.message is None:
            return (None, None, False, (_raw(key), _raw(value)))
        kind = ControlRecordType(control.type_id).name
        name = self._control_names.get(control.type_id, type(control.message).__name__)
        version = getattr(control.message, "version", 0)
        return (name, version, False, (json.dumps({"type": kind}), self._text(control.message, version)))

    def _text(self, message: Any, version: int) -> str:
        found = wire.to_json(message, version)
        return json.dumps(found if self._rules.secrets else hide(message, found), ensure_ascii=False)


def _raw(data: bytes | None) -> str | None:
    return None if data is None else json.dumps({"base64": base64.b64encode(data).decode()})
