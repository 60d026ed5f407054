"""Records of Kafka's internal topics and files: their framing and their type.

There are three forms. A coordinator's key begins with an int16 record type, its value with an int16 version. Metadata
records begin with three unsigned varints: the frame version 1, the record type, the version. Some data structures begin
with an int16 version; the rest have no framing. The meaning of a record type depends on the topic.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from struct import Struct
from typing import Any, NamedTuple

from ottla import wire
from ottla.wire.fault import WireError
from ottla.wire.index import MESSAGES
from ottla.wire.support import Refused, read_varint
from ottla.wire.trace import uvarint

GROUP_TOPIC = "__consumer_offsets"
SHARE_TOPIC = "__share_group_state"
FAMILIES: dict[str, tuple[str, ...]] = {
    GROUP_TOPIC: ("group_classic", "group_consumer", "group_share", "group_streams"),
    "__transaction_state": ("transaction_log",),
    SHARE_TOPIC: ("share_state",),
    "__cluster_metadata": ("cluster_metadata",),
    "__remote_log_metadata": ("remote_log",),
}
"""Topic -> the schema files whose record types it holds."""
_VERSIONED_DATA = frozenset(
    {
        "AbortedTxn",
        "ConsumerProtocolAssignment",
        "ConsumerProtocolSubscription",
        "ControlRecordTypeSchema",
        "DefaultPrincipalData",
        "EndTxnMarker",
        "ProducerSnapshot",
    }
)
_INT16 = Struct(">h")
_METADATA_FRAME_VERSION = 1


class KeyedRecord(NamedTuple):
    """A coordinator's record. `value` is None for a tombstone; the version of a missing part is -1."""

    key: Any
    key_version: int
    value: Any | None
    value_version: int


class Versioned(NamedTuple):
    message: Any
    version: int


@cache
def framing(name: str) -> str | None:
    """type16, version16, frame-varints, or None for a message without framing."""
    kind = MESSAGES[name].kind
    forms = {"coordinator-key": "type16", "coordinator-value": "version16", "metadata": "frame-varints"}
    return "version16" if name in _VERSIONED_DATA else forms.get(kind)


@cache
def record_types(topic: str, kind: str) -> dict[int, str]:
    """Record type -> message name, for one internal topic and one kind of message."""
    families = FAMILIES.get(topic)
    if families is None:
        raise WireError(topic, None, f"is not an internal topic with typed records; those are {', '.join(FAMILIES)}")
    return {
        entry.key: name
        for name, entry in MESSAGES.items()
        if entry.file in families and entry.kind == kind and entry.key is not None
    }


def encode_framed(message: object, version: int) -> bytes:
    """The message with its framing, as Kafka stores it."""
    body = wire.encode(message, version)
    return _frame(type(message).__name__, version) + body


@cache
def _frame(name: str, version: int) -> bytes:
    """What stands before a message."""
    form = framing(name)
    if form == "type16":
        return _INT16.pack(MESSAGES[name].key)
    if form == "version16":
        return _INT16.pack(version)
    if form == "frame-varints":
        return b"".join(map(uvarint, (_METADATA_FRAME_VERSION, MESSAGES[name].key or 0, version)))
    return b""


def decode_versioned(name: str, data: bytes) -> Versioned:
    """A message with its int16 version before it, such as a coordinator's value or an EndTxnMarker."""
    if len(data) < _INT16.size:
        raise WireError(name, 0, "the version before the message is cut off")
    (version,) = _INT16.unpack_from(data)
    return Versioned(wire.decoder(name, version)(data, _INT16.size), version)


@cache
def versioned_decoder(name: str) -> Callable[[bytes], Any]:
    """A function that decodes what `decode_versioned` does, without its version, for many messages of one name."""
    decoders: dict[bytes, Callable[[bytes, int], Any]] = {}

    def decode(data: bytes) -> Any:
        decoder = decoders.get(data[: _INT16.size])
        if decoder is not None:
            return decoder(data, _INT16.size)
        found = decode_versioned(name, data)
        decoders[data[: _INT16.size]] = wire.decoder(name, found.version)
        return found.message

    return decode


def decode_keyed(topic: str, key: bytes, value: bytes | None) -> KeyedRecord:
    """A record of __consumer_offsets, __transaction_state or __share_group_state."""
    record_type, key_name = _type_of(topic, key)
    decoded_key, key_version = key_decoder(topic)(key), wire.versions(key_name)[0]
    if value is None:
        return KeyedRecord(decoded_key, key_version, None, -1)
    decoded_value = decode_versioned(record_types(topic, "coordinator-value")[record_type], value)
    return KeyedRecord(decoded_key, key_version, decoded_value.message, decoded_value.version)


@cache
def key_decoder(topic: str) -> Callable[[bytes], Any]:
    """A function that decodes the keys of a topic, for many of them."""
    decoders: dict[bytes, Callable[[bytes, int], Any]] = {}

    def decode(key: bytes) -> Any:
        decoder = decoders.get(key[: _INT16.size])
        if decoder is None:
            _, name = _type_of(topic, key)
            # The int16 before a key is its type; each key has exactly one layout.
            decoder = decoders[key[: _INT16.size]] = wire.decoder(name, wire.versions(name)[0])
        return decoder(key, _INT16.size)

    return decode


def _type_of(topic: str, key: bytes) -> tuple[int, str]:
    """The record type of a key, and the name of such keys."""
    if len(key) < _INT16.size:
        raise WireError(topic, 0, "the record type before the key is cut off")
    (record_type,) = _INT16.unpack_from(key)
    name = record_types(topic, "coordinator-key").get(record_type)
    if name is None:
        raise WireError(topic, 0, f"there is no record type {record_type}")
    return record_type, name


def decode_metadata(topic: str, data: bytes) -> Versioned:
    """A record of __cluster_metadata or __remote_log_metadata."""
    try:
        frame_version, at = read_varint(data, 0)
        record_type, at = read_varint(data, at)
        version, at = read_varint(data, at)
    except (IndexError, Refused):
        raise WireError(topic, len(data), "the frame before the record is cut off") from None
    if topic == "__cluster_metadata" and frame_version != _METADATA_FRAME_VERSION:
        raise WireError(topic, 0, f"frame version {frame_version} is not {_METADATA_FRAME_VERSION}")
    name = record_types(topic, "metadata").get(record_type)
    if name is None:
        raise WireError(topic, 1, f"there is no record type {record_type}")
    return Versioned(wire.decoder(name, version)(data, at), version)
