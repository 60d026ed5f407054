"""Kafka's protocol: every message and record type, in every version, as bytes, typed values and JSON.

    from ottla import wire

    message = wire.decode("MetadataRequest", 12, data)       # bytes -> value
    data = wire.encode(message, 12)                          # value -> the same bytes
    wire.to_json(message, 12)                                # the form of Kafka's own JsonConverter classes

`name` is Kafka's: "ShareFetchRequest", "StreamsGroupMetadataValue". Values are frozen structs, one class per message
for all versions, in `wire.types`. Bad bytes and values raise `WireError` with the field's path and the byte's offset.

Importing this package is cheap: types, schemas and codecs are loaded when the first message asks for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.wire.fault import WireError
from ottla.wire.index import MESSAGES

if TYPE_CHECKING:
    from ottla.wire import batch, columns, errors, frames, keyed, legacy, types
    from ottla.wire.compile import Decoder, Encoder, PartEncoder
    from ottla.wire.values import Json

__all__ = [
    "WireError",
    "batch",
    "columns",
    "decode",
    "decoder",
    "encode",
    "encoder",
    "errors",
    "frames",
    "from_json",
    "keyed",
    "legacy",
    "names",
    "part_encoder",
    "to_json",
    "types",
    "uuid_bytes",
    "uuid_text",
    "versions",
]

_SUBMODULES = frozenset({"batch", "columns", "errors", "frames", "keyed", "legacy", "types"})
# By name or class, then version: two lookups are cheaper than making a tuple for one.
_decoders: dict[str, dict[int, Decoder]] = {}
_encoders: dict[type, dict[int, Encoder]] = {}
_part_encoders: dict[str, dict[int, PartEncoder]] = {}


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        from importlib import import_module

        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def names() -> tuple[str, ...]:
    """All messages and record types, by API key and family."""
    return tuple(MESSAGES)


def versions(name: str) -> range:
    """The versions of a message, as a range: `12 in wire.versions("MetadataRequest")`."""
    entry = MESSAGES.get(name)
    if entry is None:
        raise _unknown_name(name)
    return range(entry.low, entry.high + 1)


def decode(name: str, version: int, data: bytes | bytearray | memoryview) -> Any:
    """The message of that name and version that `data` holds, no more and no less. Raises WireError."""
    try:
        codec = _decoders[name][version]
    except KeyError:
        codec = decoder(name, version)
    return codec(data)


def encode(message: object, version: int) -> bytes:
    """The bytes of a message in a version, without header or size before them. Raises WireError."""
    try:
        codec = _encoders[type(message)][version]
    except KeyError:
        codec = encoder(type(message).__name__, version)
    return codec(message)


def decoder(name: str, version: int) -> Decoder:
    """The compiled function behind `decode`, called with `(data, start=0, whole=True)`.

    It reads the message that lies in `data` from `start` to the end; without `whole`, bytes may follow the message.
    """
    _check(name, version)
    codecs = _decoders.setdefault(name, {})
    if version not in codecs:
        from ottla.wire.compile import compile_decoder

        codecs[version] = compile_decoder(name, version)
    return codecs[version]


def encoder(name: str, version: int) -> Encoder:
    """The compiled function behind `encode`, for messages of one name."""
    _check(name, version)
    from ottla.wire.compile import classes_of, compile_encoder

    codecs = _encoders.setdefault(classes_of(name)(name), {})
    if version not in codecs:
        codecs[version] = compile_encoder(name, version)
    return codecs[version]


def part_encoder(name: str, version: int) -> PartEncoder:
    """An encoder that returns the parts of the message instead of joining them.

    The value of a records field goes into the list as it is. It only needs a length, so that a broker can answer with
    a region of a file and send the bytes from there.
    """
    _check(name, version)
    codecs = _part_encoders.setdefault(name, {})
    if version not in codecs:
        from ottla.wire.compile import compile_encoder

        codecs[version] = compile_encoder(name, version, joined=False)
    return codecs[version]


def to_json(message: object, version: int) -> dict[str, Json]:
    """The message as Kafka's JsonConverter writes it in that version, without unknown tagged fields."""
    from ottla.wire.compile import message_shape
    from ottla.wire.values import struct_to_json

    name = type(message).__name__
    _check(name, version)
    return struct_to_json(message_shape(name, version), message, name)


def from_json(name: str, version: int, obj: Json) -> Any:
    """The message that `to_json` would write as `obj`. Raises WireError for a value that does not fit."""
    from ottla.wire.compile import classes_of, message_shape
    from ottla.wire.values import struct_from_json

    _check(name, version)
    return struct_from_json(message_shape(name, version), classes_of(name), obj, name)


def uuid_text(raw: bytes) -> str:
    """16 bytes as Kafka writes a uuid: 22 characters of URL-safe base64."""
    from ottla.wire import values

    return values.uuid_text(raw)


def uuid_bytes(text: str) -> bytes:
    """The 16 bytes of a uuid in Kafka's text form; ValueError for anything else."""
    from ottla.wire import values

    return values.uuid_bytes(text)


def _check(name: str, version: int) -> None:
    entry = MESSAGES.get(name)
    if entry is None:
        raise _unknown_name(name)
    if not entry.low <= version <= entry.high:
        raise WireError(name, None, f"there is no version {version}; it has {entry.low} to {entry.high}")


def _unknown_name(name: str) -> WireError:
    from difflib import get_close_matches

    near = get_close_matches(name, MESSAGES, n=1, cutoff=0.0)[0]
    return WireError(str(name), None, f"there is no message of this name; the nearest is {near}")
