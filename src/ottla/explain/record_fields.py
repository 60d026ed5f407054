"""The fields of messages that hold records: how large they are, and the message without them."""

from __future__ import annotations

from collections.abc import Iterator, Sized
from functools import cache
from typing import Any

from ottla.wire.compile import message_shape
from ottla.wire.shape import Struct

__all__ = ["has_records", "records_in", "without_records"]


@cache
def has_records(name: str, version: int) -> bool:
    """Whether a message has fields for records."""
    return _has_records(message_shape(name, version))


def records_in(body: object, name: str, version: int) -> Iterator[Sized]:
    """What the fields for records hold, each with its length; it may be bytes, or a place in a file."""
    return _records(body, message_shape(name, version))


def without_records(body: Any, name: str, version: int) -> Any:
    """The message with empty fields in place of its records."""
    return _emptied(body, message_shape(name, version))


def _has_records(shape: Struct) -> bool:
    for member in (*shape.plain, *shape.tagged):
        inner = member.type.element or member.type
        if inner.kind == "records" or (inner.struct is not None and _has_records(inner.struct)):
            return True
    return False


def _records(value: object, shape: Struct) -> Iterator[Sized]:
    for member in (*shape.plain, *shape.tagged):
        inner, held = member.type.element or member.type, getattr(value, member.attr)
        if inner.kind == "records":
            if held is not None:
                yield held
        elif inner.struct is not None and held is not None and _has_records(inner.struct):
            for each in held if member.type.kind == "array" else (held,):
                yield from _records(each, inner.struct)


def _emptied(value: Any, shape: Struct) -> Any:
    from msgspec.structs import replace

    changes: dict[str, object] = {}
    for member in (*shape.plain, *shape.tagged):
        inner, held = member.type.element or member.type, getattr(value, member.attr)
        if inner.kind == "records":
            changes[member.attr] = None if inner.nullable else b""
        elif inner.struct is not None and held is not None and _has_records(inner.struct):
            is_array = member.type.kind == "array"
            changes[member.attr] = (
                tuple(_emptied(each, inner.struct) for each in held) if is_array else _emptied(held, inner.struct)
            )
    return replace(value, **changes) if changes else value
