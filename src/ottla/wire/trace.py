"""The slow codec: an interpreter that walks a shape and knows the field of each byte.

It is the reference for the compiled codecs and has three more uses: it finds the path and the byte of an error that
compiled code has only detected, it labels every byte for annotated hex, and it reads an incomplete message as far as
possible. Each byte of the input belongs to exactly one span.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final, NamedTuple

from ottla.wire.fault import WireError
from ottla.wire.shape import (
    FIXED_FORMATS,
    FIXED_SIZES,
    INTEGER_LIMITS,
    STRING_MAX_BYTES,
    DefaultStruct,
    FieldShape,
    Struct,
    Type,
)

VARINT_MAX_BYTES = 5
CLASSIC_STRING_FORMAT = "h"
CLASSIC_LENGTH_FORMAT = "i"

Classes = Callable[[str], type]
"""Finds the class of a struct by its name."""


class Span(NamedTuple):
    """`role` is the role of the bytes in their field: value, length, count, null (a marker), tags, tag, tag size."""

    start: int
    end: int
    path: str
    role: str
    type: str
    value: object


class Trace(NamedTuple):
    """The whole message, or the spans up to the error."""

    message: object | None
    spans: list[Span]
    error: WireError | None


def trace(shape: Struct, classes: Classes, data: bytes, *, allow_rest: bool = False) -> Trace:
    """Decode and label; a damaged message gives the spans up to the error. `allow_rest`: other bytes may follow."""
    reader = _Reader(data, classes)
    try:
        message = reader.struct(shape, shape.class_name)
        if reader.at != len(data) and not allow_rest:
            reader.fail(shape.class_name, reader.at, f"{len(data) - reader.at} bytes follow the end of the message")
    except WireError as error:
        return Trace(None, reader.spans, error)
    return Trace(message, reader.spans, None)


def decode_slowly(shape: Struct, classes: Classes, data: bytes) -> object:
    """Decode through the interpreter; raises WireError."""
    traced = trace(shape, classes, data)
    if traced.error is not None:
        raise traced.error
    return traced.message


class _Reader:
    def __init__(self, data: bytes, classes: Classes) -> None:
        self.data = data
        self.classes = classes
        self.at = 0
        self.spans: list[Span] = []

    def fail(self, path: str, at: int, reason: str) -> None:
        raise WireError(path, at, reason)

    def label(self, start: int, path: str, role: str, type_name: str, value: object) -> None:
        self.spans.append(Span(start, self.at, path, role, type_name, value))

    def take(self, size: int, path: str, what: str) -> bytes:
        left = len(self.data) - self.at
        if size > left:
            self.fail(path, self.at, f"{what} needs {size} bytes, {left} are left")
        self.at += size
        return self.data[self.at - size : self.at]

    def fixed(self, kind: str, path: str) -> object:
        value: object = struct.unpack(">" + FIXED_FORMATS[kind], self.take(FIXED_SIZES[kind], path, kind))[0]
        return value

    def varint(self, path: str, what: str) -> int:
        start = self.at
        value = 0
        for index in range(VARINT_MAX_BYTES):
            byte = self.take(1, path, what)[0]
            value |= (byte & 0x7F) << (7 * index)
            if byte < 0x80:
                if value >> 31:  # Java collects the bits in an int, where this is negative or truncated
                    self.fail(path, start, f"{what} {value} does not fit into 31 bits")
                return value
        self.fail(path, start, f"{what} is a varint of more than {VARINT_MAX_BYTES} bytes")
        raise AssertionError

    def length(self, shape: Type, path: str, role: str) -> int | None:
        """The length or count before a value; None for null."""
        start = self.at
        if shape.compact:
            length, form = self.varint(path, role) - 1, "uvarint"
        else:
            form = "int16" if shape.kind == "string" else "int32"
            length = int(self.fixed(form, path))  # type: ignore[call-overload]
        if length < -1 or (length == -1 and not shape.nullable):
            self.fail(path, start, "null is not allowed here" if length == -1 else f"{role} {length} is negative")
        if shape.kind == "string" and length > STRING_MAX_BYTES:
            self.fail(path, start, f"a string of {length} bytes is longer than {STRING_MAX_BYTES}")
        self.label(start, path, "null" if length == -1 else role, form, length)
        return None if length == -1 else length

    def value(self, shape: Type, path: str) -> object:
        start = self.at
        if shape.is_fixed:
            value = self.fixed(shape.kind, path)
            self.label(start, path, "value", shape.kind, value)
            return value
        if shape.kind == "struct":
            assert shape.struct is not None
            return self.nullable_struct(shape.struct, path) if shape.nullable else self.struct(shape.struct, path)
        if shape.kind == "array":
            return self.array(shape, path)
        return self.text_or_bytes(shape, path)

    def text_or_bytes(self, shape: Type, path: str) -> object:
        length = self.length(shape, path, "length")
        if length is None:
            return None
        start = self.at
        raw = self.take(length, path, shape.kind)
        value: object = raw
        if shape.kind == "string":
            try:
                value = raw.decode()
            except UnicodeDecodeError as error:
                self.fail(path, start + error.start, f"not UTF-8: {error.reason}")
        elif shape.kind == "records":
            value = memoryview(self.data)[start : self.at]
        if length:
            self.label(start, path, "value", shape.kind, value)
        return value

    def array(self, shape: Type, path: str) -> object:
        assert shape.element is not None
        start = self.at
        count = self.length(shape, path, "count")
        if count is None:
            return None
        left = len(self.data) - self.at
        if count > left:  # every element takes at least one byte
            self.fail(path, start, f"{count} elements cannot fit into the {left} bytes that are left")
        return tuple([self.value(shape.element, f"{path}[{index}]") for index in range(count)])

    def nullable_struct(self, shape: Struct, path: str) -> object:
        """A nullable struct that is not tagged has a signed byte before it: below 0 is null."""
        start = self.at
        marker = int(self.fixed("int8", path))  # type: ignore[call-overload]
        self.label(start, path, "null" if marker < 0 else "present", "int8", marker)
        return None if marker < 0 else self.struct(shape, path)

    def struct(self, shape: Struct, path: str) -> object:
        values = {member.attr: self.value(member.type, f"{path}.{member.name}") for member in shape.plain}
        if shape.flexible:
            values |= self.tags(shape, path)
        return self.classes(shape.class_name)(**values)

    def tags(self, shape: Struct, path: str) -> dict[str, object]:
        start = self.at
        count = self.varint(path, "tagged field count")
        self.label(start, path, "tags", "uvarint", count)
        known = {member.tag: member for member in shape.tagged}
        values: dict[str, object] = {}
        unknown: dict[int, bytes] = {}
        previous = -1
        for _ in range(count):
            start = self.at
            tag = self.varint(path, "tag")
            if tag <= previous:
                self.fail(path, start, f"tag {tag} does not come after tag {previous}")
            previous = tag
            member = known.get(tag)
            inner = f"{path}.{member.name}" if member else f"{path}.tag{tag}"
            self.label(start, inner, "tag", "uvarint", tag)
            if member:
                values[member.attr] = self.tagged_value(member, inner)
            else:
                unknown[tag] = self.unknown_value(inner)
        return values | ({"unknown_tags": unknown} if unknown else {})

    def tag_size(self, path: str) -> int:
        start = self.at
        size = self.varint(path, "size of a tagged field")
        if size > len(self.data) - self.at:
            self.fail(path, start, f"a tagged field of {size} bytes, {len(self.data) - self.at} are left")
        self.label(start, path, "tag size", "uvarint", size)
        return size

    def unknown_value(self, path: str) -> bytes:
        size = self.tag_size(path)
        start = self.at
        raw = self.take(size, path, "tagged field")
        if size:
            self.label(start, path, "value", "bytes", raw)
        return raw

    def tagged_value(self, member: FieldShape, path: str) -> object:
        size = self.tag_size(path)
        end = self.at + size
        shape = member.type
        if shape.kind == "struct" and shape.nullable:
            value = self.nullable_tagged_struct(shape, path)
        else:
            value = self.value(shape, path)
        if self.at != end:
            self.fail(path, self.at, f"the tagged field ends here, its size says byte {end}")
        return value

    def nullable_tagged_struct(self, shape: Type, path: str) -> object:
        """A nullable struct as a tagged field has a varint before it: 0 is null."""
        assert shape.struct is not None
        start = self.at
        marker = self.varint(path, "null marker")
        self.label(start, path, "present" if marker else "null", "uvarint", marker)
        return self.struct(shape.struct, path) if marker else None


def encode_slowly(shape: Struct, message: object) -> bytes:
    """Encode through the interpreter; raises WireError for a value that the version cannot carry."""
    writer = _Writer()
    writer.struct(shape, message, shape.class_name)
    return b"".join(writer.parts)


_ONE_BYTE: Final = [bytes([value]) for value in range(0x80)]


def uvarint(value: int) -> bytes:
    if 0 <= value <= 0x7F:
        return _ONE_BYTE[value]
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def is_default(value: object, member: FieldShape) -> bool:
    """Whether a tagged or absent field has its default."""
    default = member.default
    if isinstance(default, DefaultStruct):
        return value is not None and value == type(value)()
    if default == ():
        return value is not None and not value
    return value is None if default is None else value == default


class _Writer:
    def __init__(self) -> None:
        self.parts: list[bytes | memoryview] = []

    def fail(self, path: str, reason: str) -> None:
        raise WireError(path, sum(map(len, self.parts)), reason)

    def fixed(self, kind: str, value: object, path: str) -> None:
        if kind == "uuid":
            if not isinstance(value, bytes) or len(value) != FIXED_SIZES["uuid"]:
                self.fail(path, f"a uuid is 16 bytes, not {value!r}")
        elif kind == "bool":
            if value not in (True, False):
                self.fail(path, f"{value!r} is not a bool")
        elif kind in INTEGER_LIMITS:
            low, high = INTEGER_LIMITS[kind]
            if not isinstance(value, int) or not low <= value <= high:
                self.fail(path, f"{value!r} is not an {kind} ({low} to {high})")
        elif not isinstance(value, int | float):
            self.fail(path, f"{value!r} is not a number")
        self.parts.append(struct.pack(">" + FIXED_FORMATS[kind], value))

    def length(self, shape: Type, length: int) -> None:
        if shape.compact:
            self.parts.append(uvarint(length + 1))
        else:
            form = CLASSIC_STRING_FORMAT if shape.kind == "string" else CLASSIC_LENGTH_FORMAT
            self.parts.append(struct.pack(">" + form, length))

    def value(self, shape: Type, value: object, path: str) -> None:
        if shape.is_fixed:
            self.fixed(shape.kind, value, path)
        elif shape.kind == "struct":
            self.maybe_struct(shape, value, path)
        elif value is None:
            if not shape.nullable:
                self.fail(path, "null is not allowed here in this version")
            self.length(shape, -1)
        elif shape.kind == "array":
            self.array(shape, value, path)
        else:
            self.text_or_bytes(shape, value, path)

    def text_or_bytes(self, shape: Type, value: object, path: str) -> None:
        raw: bytes | memoryview = b""
        if shape.kind == "string":
            if not isinstance(value, str):
                self.fail(path, f"{value!r} is not a string")
            try:
                raw = str(value).encode()
            except UnicodeEncodeError as error:
                self.fail(path, f"cannot be written as UTF-8: {error.reason}")
            if len(raw) > STRING_MAX_BYTES:
                self.fail(path, f"a string of {len(raw)} bytes is longer than {STRING_MAX_BYTES}")
        elif isinstance(value, memoryview) and value.itemsize != 1:
            self.fail(path, f"a memoryview of bytes is needed, not of items of {value.itemsize} bytes")
        elif isinstance(value, bytes | bytearray | memoryview):
            raw = bytes(value)
        else:
            self.fail(path, f"{value!r} is not bytes")
        self.length(shape, len(raw))
        self.parts.append(raw)

    def array(self, shape: Type, value: object, path: str) -> None:
        assert shape.element is not None
        if not isinstance(value, tuple | list):
            self.fail(path, f"{value!r} is not a tuple or list")
            return
        self.length(shape, len(value))
        for index, element in enumerate(value):
            self.value(shape.element, element, f"{path}[{index}]")

    def maybe_struct(self, shape: Type, value: object, path: str) -> None:
        assert shape.struct is not None
        if value is None and not shape.nullable:
            self.fail(path, "null is not allowed here in this version")
        if shape.nullable:
            self.fixed("int8", -1 if value is None else 1, path)
        if value is not None:
            self.struct(shape.struct, value, path)

    def struct(self, shape: Struct, value: object, path: str) -> None:
        if type(value).__name__ != shape.class_name:
            self.fail(path, f"{value!r} is not a {shape.class_name}")
        for member in shape.absent:
            if not member.field.ignorable and not is_default(getattr(value, member.attr), member):
                self.fail(f"{path}.{member.name}", "is set, but this version has no such field")
        for member in shape.plain:
            self.value(member.type, getattr(value, member.attr), f"{path}.{member.name}")
        unknown = getattr(value, "unknown_tags", None)
        if shape.flexible:
            self.tags(shape, value, unknown or {}, path)
        elif unknown:
            self.fail(path, "has unknown tagged fields, but this version is not flexible")

    def tags(self, shape: Struct, value: object, unknown: dict[int, bytes], path: str) -> None:
        tagged: list[tuple[int, bytes]] = []
        for member in shape.tagged:
            held = getattr(value, member.attr)
            if member.tag in unknown:
                self.fail(f"{path}.{member.name}", f"tag {member.tag} stands among the unknown tags, too")
            if not is_default(held, member):
                tagged.append((member.tag or 0, self.tagged_value(member, held, f"{path}.{member.name}")))
        for tag, raw in unknown.items():
            if not 0 <= tag < 1 << 31 or len(raw) >= 1 << 31:
                self.fail(path, f"unknown tag {tag} with {len(raw)} bytes: neither may need more than 31 bits")
        tagged += unknown.items()
        self.parts.append(uvarint(len(tagged)))
        for tag, raw in sorted(tagged):
            self.parts += (uvarint(tag), uvarint(len(raw)), raw)

    def tagged_value(self, member: FieldShape, value: object, path: str) -> bytes:
        inner = _Writer()
        shape = member.type
        if shape.kind == "struct" and shape.nullable:
            inner.parts.append(uvarint(0 if value is None else 1))
            if value is not None:
                assert shape.struct is not None
                inner.struct(shape.struct, value, path)
        else:
            inner.value(shape, value, path)
        return b"".join(inner.parts)
