"""Records of internal topics: made by cores, and as the bytes that stand in the log."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from struct import Struct
from typing import Any, Final

from ottla import wire
from ottla.wire.index import MESSAGES
from ottla.wire.keyed import KeyedRecord

__all__ = ["encode_record", "record", "tombstone"]

_INT16: Final = Struct(">h")


def record(key: Any, value: Any, version: int) -> KeyedRecord:  # noqa: ANN401 - any of the internal topics' classes
    """A record whose value is written in the given version."""
    return KeyedRecord(key, _key_version(type(key).__name__), value, version)


def tombstone(key: Any) -> KeyedRecord:  # noqa: ANN401
    """What removes the record with this key."""
    return KeyedRecord(key, _key_version(type(key).__name__), None, -1)


@cache
def _key_version(name: str) -> int:
    """Each key has exactly one layout; what stands in front of it is its type."""
    return wire.versions(name)[0]


@cache
def _encoder(name: str, version: int) -> Callable[[Any], bytes]:
    return wire.encoder(name, version)


@cache
def _prefix(name: str) -> bytes:
    return _INT16.pack(MESSAGES[name].key)


def encode_record(keyed: KeyedRecord) -> tuple[bytes, bytes | None]:
    """Key and value as they stand in the log."""
    name = type(keyed.key).__name__
    key = _prefix(name) + _encoder(name, keyed.key_version)(keyed.key)
    if keyed.value is None:
        return key, None
    value = _encoder(type(keyed.value).__name__, keyed.value_version)(keyed.value)
    return key, _INT16.pack(keyed.value_version) + value
