"""A label for some bytes, before it gets its colour, and values as text."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from typing import NamedTuple

from ottla.wire import uuid_text
from ottla.wire.errors import ErrorCode
from ottla.wire.frames import api_names

EPOCH_MS = range(946_684_800_000, 4_102_444_800_000)
"""64-bit numbers that are shown as times: milliseconds in the years 2000 to 2099."""
_HEX_MAX = 40


class RawSpan(NamedTuple):
    """Bytes `start` to `end`; see `ottla.explain.page.Span` for the fields."""

    start: int
    end: int
    path: str
    role: str
    type: str
    value: str


def value_text(value: object, kind: str, name: str = "") -> str:
    """A value for people: text in quotes, uuids as Kafka prints them, bytes as hex, numbers with their meaning."""
    if kind == "uuid" and isinstance(value, bytes):
        return uuid_text(value)
    if isinstance(value, bytes | bytearray | memoryview):
        raw = bytes(value).hex()
        return f"0x{raw}" if len(raw) <= _HEX_MAX else f"0x{raw[:_HEX_MAX]}…"
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, bool):
        return "true" if value else "false"
    meaning = _meaning(value, kind, name) if isinstance(value, int) else ""
    return f"{value} ({meaning})" if meaning else str(value)


@cache
def _error_names() -> dict[int, str]:
    return {error.value: error.name for error in ErrorCode}


def _meaning(value: int, kind: str, name: str) -> str:
    """The meaning of a number, if it has one."""
    if name.endswith("ErrorCode"):
        return _error_names().get(value, "")
    if name == "RequestApiKey":
        return api_names().get(value, "")
    if kind == "int64" and value in EPOCH_MS:
        return datetime.fromtimestamp(value / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return ""
