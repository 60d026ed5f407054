"""Keys and values of records as text, as JSON and for filters."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ottla.client import ConsumerRecord

Bytes = bytes | bytearray | memoryview
FORMS: Final = ("auto", "utf8", "json", "int", "hex")
_INT_BYTES: Final = (1, 2, 4, 8)
_KEYED_TOPICS: Final = ("__consumer_offsets", "__transaction_state", "__share_group_state")


def decoded(data: Bytes | None, form: str) -> dict[str, Any]:
    """Bytes as `{as, text, bytes_len}`. Bytes that do not have the wanted form are shown as hex."""
    if data is None:
        return {"as": "null", "text": None, "bytes_len": 0, "truncated": False}
    kind, text = _read(bytes(data), form)
    return {"as": kind, "text": text, "bytes_len": len(data), "truncated": False}


def _read(data: bytes, form: str) -> tuple[str, str]:
    if form == "int" and len(data) in _INT_BYTES:
        return "int", str(int.from_bytes(data, "big", signed=True))
    if form in ("auto", "utf8", "json"):
        try:
            text = data.decode()
        except UnicodeDecodeError:
            return "hex", data.hex()
        if form == "json":
            return _json(text)
        if form == "utf8" or _is_printable(text):
            return "utf8", text
    return "hex", data.hex()


def _json(text: str) -> tuple[str, str]:
    try:
        return "json", json.dumps(json.loads(text), ensure_ascii=False)
    except ValueError:
        return "utf8", text


def _is_printable(text: str) -> bool:
    return all(char.isprintable() or char in "\t\r\n" for char in text)


def row_json(record: ConsumerRecord, form: str) -> dict[str, Any]:
    """A record in the JSON form of the console."""
    shown: dict[str, Any] = {
        "p": record.partition,
        "offset": record.offset,
        "ts_ms": record.timestamp_ms,
        "ts_type": record.timestamp_type.name,
        "key": decoded(record.key, form),
        "value": decoded(record.value, form),
        "headers": [{"k": key, "v": decoded(value, form)} for key, value in record.headers],
    }
    opened = internal(record)
    if opened is not None:
        shown["value"] = {**shown["value"], "as": "ottla-record", "record": opened}
    return shown


def internal(record: ConsumerRecord) -> dict[str, Any] | None:
    """A decoded record of one of Kafka's internal topics; None for any other."""
    if record.topic not in _KEYED_TOPICS or record.key is None:
        return None
    from ottla.wire import WireError, to_json
    from ottla.wire.keyed import decode_keyed

    try:
        read = decode_keyed(record.topic, bytes(record.key), None if record.value is None else bytes(record.value))
    except WireError as error:
        return {"error": str(error)}
    return {
        "type": type(read.key).__name__.removesuffix("Key"),
        "version": read.value_version,
        "key": to_json(read.key, read.key_version),
        "json": None if read.value is None else to_json(read.value, read.value_version),
    }


def filter_row(record: ConsumerRecord) -> dict[str, Any]:
    """A record for filters: JSON objects and lists are parsed, everything else is text."""
    opened = internal(record)
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp_ms,
        "size": len(record.key or b"") + len(record.value or b""),
        "key": _opened(record.key) if opened is None else opened.get("key"),
        "value": _opened(record.value) if opened is None else opened.get("json"),
        "headers": {key: _opened(value) for key, value in record.headers},
    }


def _opened(data: Bytes | None) -> Any:  # noqa: ANN401
    if data is None:
        return None
    text = bytes(data).decode(errors="replace")
    if text[:1] not in ("{", "["):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text
