"""Values as text: errors by name, times as dates, ids as Kafka writes them, bytes as text if they are readable."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from ottla.explain.likelihood import EPOCH_MS
from ottla.explain.tree import NOTHING, Node
from ottla.wire.errors import ErrorCode
from ottla.wire.frames import api_names
from ottla.wire.values import uuid_text

__all__ = ["bytes_text", "count_text", "error_name", "value_text"]


def value_text(node: Node) -> str:
    """The value of a node; "" if it has none."""
    value = node.value
    if node.withheld:
        return f"withheld ({node.end - node.start} bytes)"
    if value is NOTHING:
        return ""
    if value is None:
        return "null"
    if isinstance(value, bytes):
        return uuid_text(value) if node.type.startswith("uuid") else bytes_text(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, bool):
        return str(value).lower()
    return _number_text(node, value) if isinstance(value, int) else str(value)


def _number_text(node: Node, value: int) -> str:
    if node.name.endswith("ErrorCode"):
        return f"{value} {error_name(value)}"
    if node.name.endswith("ApiKey"):
        return f"{value} {api_names().get(value, 'unknown API')}"
    if node.type == "int64" and value in EPOCH_MS:
        moment = datetime.fromtimestamp(value / 1000, UTC)
        return f"{value} ({moment.isoformat(sep=' ', timespec='milliseconds').removesuffix('+00:00')})"
    return f"{value:#010x}" if node.name == "Crc" else str(value)


def error_name(code: int) -> str:
    """The name of an error; an unknown code says so."""
    try:
        return ErrorCode(code).name
    except ValueError:
        return "unknown error"


def bytes_text(raw: bytes) -> str:
    """Readable bytes in quotes, others as hex."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return f"0x{raw.hex()}"
    return json.dumps(text, ensure_ascii=False) if text.isprintable() else f"0x{raw.hex()}"


def count_text(count: int, noun: str) -> str:
    """ "1 byte", "1,234 bytes"."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
