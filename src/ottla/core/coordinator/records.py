"""Records of internal topics: made by cores, and to and from the bytes that stand in the log."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from struct import Struct
from typing import Any, Final

from ottla import wire
from ottla.wire.index import MESSAGES
from ottla.wire.keyed import KeyedRecord, decode_keyed

__all__ = ["RecordReader", "encode_record", "record", "tombstone"]

_INT16: Final = Struct(">h")
_Decode = Callable[..., Any]


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
def _key_encoder(name: str, version: int) -> tuple[bytes, Callable[[Any], bytes]]:
    """What stands before a key, and what writes it."""
    return _INT16.pack(MESSAGES[name].key), wire.encoder(name, version)


@cache
def _value_encoder(name: str, version: int) -> tuple[bytes, Callable[[Any], bytes]]:
    return _INT16.pack(version), wire.encoder(name, version)


def encode_record(keyed: KeyedRecord) -> tuple[bytes, bytes | None]:
    """Key and value as they stand in the log."""
    key, key_version, value, value_version = keyed
    prefix, encode = _key_encoder(type(key).__name__, key_version)
    written = prefix + encode(key)
    if value is None:
        return written, None
    prefix, encode = _value_encoder(type(value).__name__, value_version)
    return written, prefix + encode(value)


class RecordReader:
    """Reads the records of one topic as `decode_keyed` does. Which decoders a kind needs is looked up once."""

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._known: dict[bytes, tuple[_Decode, int, _Decode | None, int]] = {}
        """By the type of the key and the version of the value, as they stand before them."""

    def read(self, key: bytes, value: bytes | None) -> KeyedRecord:
        kind = key[:2] if value is None else key[:2] + value[:2]
        known = self._known.get(kind)
        if known is None:
            return self._read_first(kind, key, value)
        decode_key, key_version, decode_value, value_version = known
        if decode_value is None:
            return KeyedRecord(decode_key(key, 2), key_version, None, -1)
        return KeyedRecord(decode_key(key, 2), key_version, decode_value(value, 2), value_version)

    def _read_first(self, kind: bytes, key: bytes, value: bytes | None) -> KeyedRecord:
        keyed = decode_keyed(self._topic, key, value)
        decode_key = wire.decoder(type(keyed.key).__name__, keyed.key_version)
        decode_value = None if value is None else wire.decoder(type(keyed.value).__name__, keyed.value_version)
        self._known[kind] = (decode_key, keyed.key_version, decode_value, keyed.value_version)
        return keyed
