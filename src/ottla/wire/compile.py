"""Codecs per (message, version): their source is written from the shape, compiled at first use and kept.

They are neither committed nor cached on disk: one takes about a millisecond to make, and a broker needs few.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from typing import Any

from ottla.wire.decoder_writer import DecoderWriter
from ottla.wire.encoder_writer import EncoderWriter
from ottla.wire.fault import WireError
from ottla.wire.index import MESSAGES
from ottla.wire.schemas import message_schema
from ottla.wire.shape import Struct, shape_of
from ottla.wire.trace import Classes, encode_slowly, trace

Decoder = Callable[..., Any]
"""`decode(data, start=0, whole=True)`: the message in `data` from `start` on, to its end unless `whole` is false."""
Encoder = Callable[[Any], bytes]
PartEncoder = Callable[[Any], list[Any]]
"""Like an Encoder, but the parts are not joined: records may be any object with a length, such as a file region."""

_OUR_BUG = "the compiled codec refuses what the interpreter accepts; please report it with these bytes"


def classes_of(name: str) -> Classes:
    """Finds the classes of a message and of its structs."""
    module = import_module(f"ottla.wire.types.{MESSAGES[name].module}")

    def find(class_name: str) -> type:
        found: type = getattr(module, class_name)
        return found

    return find


def decoder_source(name: str, version: int) -> str:
    return DecoderWriter(message_shape(name, version), classes_of(name)).source()


def encoder_source(name: str, version: int) -> str:
    return EncoderWriter(message_shape(name, version), classes_of(name)).source()


@lru_cache(maxsize=1_000)
def message_shape(name: str, version: int) -> Struct:
    return shape_of(message_schema(name), version)


def compile_decoder(name: str, version: int) -> Decoder:
    shape, classes = message_shape(name, version), classes_of(name)
    writer = DecoderWriter(shape, classes)

    def explain(data: bytes, start: int, whole: bool) -> WireError:
        error = trace(shape, classes, data[start:], allow_rest=not whole).error
        if error is None:
            return WireError(name, start, _OUR_BUG)
        at = None if error.byte_offset is None else start + error.byte_offset
        return WireError(error.path, at, error.reason)

    decode: Decoder = _compiled(writer.source(), writer.env | {"explain": explain}, f"{name} v{version} decoder")
    return decode


def compile_encoder(name: str, version: int, *, joined: bool = True) -> Any:
    """An Encoder, or a PartEncoder if the parts are not to be joined."""
    shape = message_shape(name, version)
    writer = EncoderWriter(shape, classes_of(name))

    def explain(message: object) -> WireError:
        try:
            encode_slowly(shape, message)
        except WireError as error:
            return error
        return WireError(name, None, _OUR_BUG)

    label = f"{name} v{version} {'encoder' if joined else 'part encoder'}"
    return _compiled(writer.source(joined=joined), writer.env | {"explain": explain}, label)


def _compiled(source: str, env: dict[str, Any], label: str) -> Any:
    """Run a source that defines one function, and return the function."""
    filename = f"<ottla {label}>"
    # So tracebacks and profilers show the generated lines.
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    exec(compile(source, filename, "exec"), env)
    return env.get("decode") or env["encode"]
