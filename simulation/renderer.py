"""Renders messages and records as one short line: values that are not defaults, with readable ids and times."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from ottla.testing.clock import WALL_START_MS
from ottla.wire import uuid_text
from ottla.wire.errors import ErrorCode
from ottla.wire.fault import WireError
from ottla.wire.keyed import KeyedRecord, decode_versioned

__all__ = ["Renderer"]

_ALWAYS: Final = frozenset({"partition", "partition_index", "partition_id", "committed_offset", "offset"})
"""Fields that are shown even at their default."""
_YEAR_MS: Final = 366 * 86_400_000
_UNSET: Final = object()


class Renderer:
    """`shorten` shortens ids; `topic_name` returns the name of a topic id."""

    def __init__(self, shorten: Callable[[str], str], topic_name: Callable[[bytes], str | None]) -> None:
        self._shorten = shorten
        self._topic_name = topic_name

    def message(self, message: Any) -> str:  # noqa: ANN401
        """The fields of a message as `name=value`, separated by spaces."""
        return " ".join(f"{name}={text}" for name, text in self._fields(message))

    def record(self, record: KeyedRecord) -> str:
        """`GroupMetadata group=g: protocol_type=consumer …`; a tombstone says `gone`."""
        name = type(record.key).__name__.removesuffix("Key")
        key = self.message(record.key)
        value = "gone" if record.value is None else self.message(record.value) or "empty"
        return f"{name} {key}: {value}"

    def _fields(self, message: Any) -> Iterable[tuple[str, str]]:  # noqa: ANN401
        for name, value, default in _parts(message):
            if value == default and name not in _ALWAYS:
                continue
            if name.endswith("error_code"):
                yield name.removesuffix("_code"), ErrorCode(value).name
            else:
                yield name, self.value(value, name)

    def value(self, value: Any, name: str = "") -> str:  # noqa: ANN401
        if isinstance(value, bool) or value is None:
            return str(value).lower() if value is not None else "null"
        if isinstance(value, ErrorCode):
            return value.name
        if isinstance(value, int):
            return _number(value)
        if isinstance(value, str):
            return self._text(self._shorten(value))
        if isinstance(value, bytes | bytearray | memoryview):
            return self._bytes(bytes(value), name)
        return self._compound(value)

    def _compound(self, value: Any) -> str:  # noqa: ANN401
        if isinstance(value, Mapping):
            entries = [f"{self.value(key)}: {self.value(each)}" for key, each in value.items()]
            # Names of fields keep their order; other keys may come from a set, which has none.
            is_named = all(isinstance(key, str) for key in value)
            return "{" + ", ".join(entries if is_named else sorted(entries)) + "}"
        if isinstance(value, msgspec.Struct) or hasattr(value, "_fields"):
            return "{" + ", ".join(f"{name}: {text}" for name, text in self._fields(value)) + "}"
        if isinstance(value, set | frozenset):
            value = sorted(value)
        if isinstance(value, list | tuple):
            return "[" + ", ".join(self.value(each) for each in value) + "]"
        return repr(value)

    def _text(self, text: str) -> str:
        return text if re.fullmatch(r"[^\s\"{}\[\],]+", text) else f'"{text}"'

    def _bytes(self, data: bytes, name: str) -> str:
        if len(data) == 16:
            known, text = self._topic_name(data), uuid_text(data)
            if known is not None or self._shorten(text) != text:
                return self._shorten(text) if known is None else f"id({known})"
        opened = _opened(data, name)
        if opened is not None:
            return opened
        text = data.decode("ascii", "replace")
        if text.isprintable() and "\ufffd" not in text:
            return self._text(self._shorten(text))
        return "0x" + data.hex()


_DEFAULTS: Final[dict[type, list[tuple[str, Any]]]] = {}
"""Class -> names and defaults of its fields; msgspec computes them at each call."""


def _parts(message: Any) -> Iterable[tuple[str, Any, Any]]:  # noqa: ANN401
    """Name, value and default of each field."""
    kind = type(message)
    if kind not in _DEFAULTS:
        _DEFAULTS[kind] = _defaults(kind)
    return [(name, getattr(message, name), default) for name, default in _DEFAULTS[kind]]


def _defaults(kind: type) -> list[tuple[str, Any]]:
    if issubclass(kind, msgspec.Struct):
        return [(each.name, each.default) for each in msgspec.structs.fields(kind)]
    names, known = getattr(kind, "_fields", ()), getattr(kind, "_field_defaults", {})
    return [(name, known.get(name, _UNSET)) for name in names]


def _number(value: int) -> str:
    """Times of the wall clock are relative to its start."""
    if abs(value - WALL_START_MS) < _YEAR_MS:
        return f"T{value - WALL_START_MS:+}"
    return str(value)


def _opened(data: bytes, name: str) -> str | None:
    """The content of a consumer's subscription or assignment, if the bytes are one."""
    kinds = {"assignment": "ConsumerProtocolAssignment", "metadata": "ConsumerProtocolSubscription"}
    kind = kinds.get("metadata" if name == "subscription" else name)
    if kind is None or len(data) < 6:
        return None
    try:
        message = decode_versioned(kind, data).message
    except WireError:
        return None
    if kind == "ConsumerProtocolAssignment":
        return f"assignment({_topics(message.assigned_partitions)})"
    parts = [*message.topics]
    if message.owned_partitions:
        owned = ", ".join(f"{each.topic}: {list(each.partitions)}" for each in message.owned_partitions)
        parts.append(f"owned={{{owned}}}")
    if message.generation_id >= 0:
        parts.append(f"generation={message.generation_id}")
    if message.rack_id is not None:
        parts.append(f"rack={message.rack_id}")
    return f"subscription({', '.join(parts)})"


def _topics(entries: Iterable[Any]) -> str:
    return ", ".join(f"{each.topic}={list(each.partitions)}" for each in entries)
