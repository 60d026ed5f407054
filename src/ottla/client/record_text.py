"""Keys and values of records as text, as JSON and for filters."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from ottla.client.fetcher import ConsumerRecord

__all__ = ["FORMS", "Decoded", "RecordRow", "TypedRecord", "decoded", "filter_row", "record_row", "typed"]

Bytes = bytes | bytearray | memoryview
FORMS: Final = ("auto", "utf8", "json", "int", "hex")
_INT_BYTES: Final = (1, 2, 4, 8)
_KEYED_TOPICS: Final = ("__consumer_offsets", "__transaction_state", "__share_group_state")


class TypedRecord(msgspec.Struct, frozen=True):
    """A record of one of Kafka's internal topics. `json` is None for a tombstone."""

    type: str
    version: int
    key: Any
    json: Any


class Decoded(msgspec.Struct, frozen=True, omit_defaults=True):
    """Bytes as text."""

    form: str = msgspec.field(name="as")
    """What they were read as: null, utf8, json, int, hex or ottla-record."""
    text: str | None
    bytes_len: int
    truncated: bool
    """Whether the text is only the beginning."""
    record: TypedRecord | None = None
    error: str | None = None
    """Why they do not have the wanted form."""


class HeaderRow(msgspec.Struct, frozen=True):
    k: str
    v: Decoded


class RecordRow(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A record as the console and the command line give it to programs."""

    p: int
    offset: int
    ts_ms: int
    ts_type: str
    key: Decoded
    value: Decoded
    headers: tuple[HeaderRow, ...]
    size: int | None = None
    """The bytes of key, value and headers."""
    producer_id: int | None = None
    txn: bool = False
    """Whether it was written in a transaction."""
    control: str | None = None
    """What a record that a broker wrote between the data says: COMMIT, ABORT."""


def decoded(data: Bytes | None, form: str, longest: int | None = None) -> Decoded:
    """Bytes in a form. Those that do not have it are shown as text or hex; a text longer than `longest` is cut."""
    if data is None:
        return Decoded("null", None, 0, False)
    kind, text, error = _read(bytes(data), form)
    is_cut = longest is not None and len(text) > longest
    return Decoded(kind, text[:longest] if is_cut else text, len(data), is_cut, error=error)


def _read(data: bytes, form: str) -> tuple[str, str, str | None]:
    if form == "hex":
        return "hex", data.hex(), None
    if form == "int":
        if len(data) in _INT_BYTES:
            return "int", str(int.from_bytes(data, "big", signed=True)), None
        return "hex", data.hex(), f"is not an integer: it has {len(data)} bytes"
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        return "hex", data.hex(), None if form == "auto" else f"is not UTF-8: at byte {error.start}"
    if form == "json":
        return _json(text)
    is_text = form == "utf8" or _is_printable(text)
    return ("utf8", text, None) if is_text else ("hex", data.hex(), None)


def _json(text: str) -> tuple[str, str, str | None]:
    try:
        shown = json.dumps(json.loads(text), ensure_ascii=False)
    except json.JSONDecodeError as error:
        return "utf8", text, f"is not JSON: at byte {len(text[: error.pos].encode())}: {error.msg}"
    except (ValueError, RecursionError) as error:
        return "utf8", text, f"is not read as JSON: {error}"
    # JSON can hold half a surrogate pair, which no text in UTF-8 can.
    return "json", shown.encode(errors="backslashreplace").decode(), None


def _is_printable(text: str) -> bool:
    return all(char.isprintable() or char in "\t\r\n" for char in text)


def record_row(
    record: ConsumerRecord, key_form: str, value_form: str, header_form: str = "auto", longest: int | None = None
) -> RecordRow:
    """A record for people and programs; texts longer than `longest` are cut."""
    value = decoded(record.value, value_form, longest)
    try:
        opened = typed(record)
    except ValueError as error:
        value = msgspec.structs.replace(value, error=str(error))
    else:
        if opened is not None:
            value = msgspec.structs.replace(value, form="ottla-record", record=opened)
    return RecordRow(
        p=record.partition,
        offset=record.offset,
        ts_ms=record.timestamp_ms,
        ts_type=record.timestamp_type.name,
        key=decoded(record.key, key_form, longest),
        value=value,
        headers=tuple(HeaderRow(key, decoded(value, header_form, longest)) for key, value in record.headers),
    )


def typed(record: ConsumerRecord) -> TypedRecord | None:
    """A record of one of Kafka's internal topics, decoded; None for any other. WireError if it is damaged."""
    if record.topic not in _KEYED_TOPICS or record.key is None:
        return None
    from ottla.wire import to_json
    from ottla.wire.keyed import decode_keyed

    read = decode_keyed(record.topic, bytes(record.key), None if record.value is None else bytes(record.value))
    return TypedRecord(
        type(read.key).__name__.removesuffix("Key"),
        read.value_version,
        to_json(read.key, read.key_version),
        None if read.value is None else to_json(read.value, read.value_version),
    )


def filter_row(record: ConsumerRecord) -> dict[str, Any]:
    """A record for filters: JSON objects and lists are parsed, everything else is text."""
    try:
        opened = typed(record)
    except ValueError:
        opened = None
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp_ms,
        "size": len(record.key or b"") + len(record.value or b""),
        "key": _opened(record.key) if opened is None else opened.key,
        "value": _opened(record.value) if opened is None else opened.json,
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
    except (ValueError, RecursionError):
        return text
