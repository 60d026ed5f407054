"""The resolved tree of one message in one version.

Schema text describes all versions; a shape describes one. Decoder, encoder, interpreter, JSON, diagram and example
maker all walk this one tree, so they cannot disagree about a version.
"""

from __future__ import annotations

import keyword
import re
from typing import NamedTuple

from ottla.wire.text import Field, Message

FIXED_FORMATS = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
    "uuid": "16s",
}
FIXED_SIZES = {
    "bool": 1,
    "int8": 1,
    "int16": 2,
    "uint16": 2,
    "int32": 4,
    "uint32": 4,
    "int64": 8,
    "float64": 8,
    "uuid": 16,
}
INTEGER_LIMITS = {
    "int8": (-(1 << 7), (1 << 7) - 1),
    "int16": (-(1 << 15), (1 << 15) - 1),
    "uint16": (0, (1 << 16) - 1),
    "int32": (-(1 << 31), (1 << 31) - 1),
    "uint32": (0, (1 << 32) - 1),
    "int64": (-(1 << 63), (1 << 63) - 1),
}
STRING_MAX_BYTES = 32767
"""Java rejects longer strings, also in the compact form."""
ZERO_UUID = bytes(16)


class Type(NamedTuple):
    """`kind` is a primitive's name, "string", "bytes", "records", "struct" or "array"."""

    kind: str
    nullable: bool
    compact: bool
    element: Type | None = None
    struct: Struct | None = None

    @property
    def is_fixed(self) -> bool:
        return self.kind in FIXED_FORMATS


class FieldShape(NamedTuple):
    """A field in this version; `tag` is None for one that is not tagged."""

    name: str
    attr: str
    json_name: str
    type: Type
    tag: int | None
    default: object
    field: Field


class Struct(NamedTuple):
    name: str
    class_name: str
    flexible: bool
    plain: tuple[FieldShape, ...]
    tagged: tuple[FieldShape, ...]
    absent: tuple[FieldShape, ...]
    """Fields of other versions: never on the wire in this one, and rejected in encoding unless default or ignorable."""
    attrs: tuple[str, ...]
    """All attributes of the class, in order; a class that is flexible in some version ends with `unknown_tags`."""

    @property
    def min_size(self) -> int:
        """The least size of this struct in bytes; it is above 0, so loops over structs end with the input."""
        return self.flexible + sum(min_size(member.type) for member in self.plain)


class DefaultStruct(NamedTuple):
    """The default "a fresh struct", because classes are not known here."""

    class_name: str


def min_size(shape: Type) -> int:
    if shape.kind in FIXED_SIZES:
        return FIXED_SIZES[shape.kind]
    if shape.kind == "struct":
        assert shape.struct is not None
        return 1 if shape.nullable else shape.struct.min_size
    if shape.compact:
        return 1
    return 2 if shape.kind == "string" else 4


_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def snake_case(name: str) -> str:
    return _WORD_START.sub("_", name).lower()


def attribute_name(field_name: str) -> str:
    attr = snake_case(field_name)
    return f"{attr}_" if keyword.iskeyword(attr) else attr


def class_name(message: Message, struct_name: str | None) -> str:
    """Structs belong to their message: two messages may use one name for different things."""
    return message.name if struct_name is None else f"{message.name}{struct_name}"


def is_ever_flexible(message: Message) -> bool:
    return message.flexible.low <= min(message.flexible.high, message.versions.high)


def default_value(message: Message, field: Field) -> object:
    """The value of a field that was not set: a plain Python value, or DefaultStruct."""
    if field.default == "null":
        return None
    if field.default is not None:
        return field.default
    if field.is_array:
        return ()
    zeros = {"string": "", "bytes": b"", "records": None, "uuid": ZERO_UUID, "bool": False, "float64": 0.0}
    if field.type in zeros:
        return zeros[field.type]
    return 0 if field.type in INTEGER_LIMITS else DefaultStruct(class_name(message, field.type))


def shape_of(message: Message, version: int) -> Struct:
    """The tree of `message` in `version`, which must be one that the message has."""
    assert version in message.versions, (message.name, version)
    return _struct(message, None, message.fields, version)


def _struct(message: Message, name: str | None, fields: tuple[Field, ...], version: int) -> Struct:
    plain: list[FieldShape] = []
    tagged: list[FieldShape] = []
    absent: list[FieldShape] = []
    for field in fields:
        is_tagged = version in field.tagged
        if not is_tagged and version not in field.versions:
            absent.append(_member(message, field, version, None, is_present=False))
        elif is_tagged:
            tagged.append(_member(message, field, version, field.tag))
        else:
            plain.append(_member(message, field, version, None))
    attrs = [attribute_name(field.name) for field in fields]
    if is_ever_flexible(message):
        attrs.append("unknown_tags")
    return Struct(
        name=name or message.name,
        class_name=class_name(message, name),
        flexible=version in message.flexible,
        plain=tuple(plain),
        tagged=tuple(sorted(tagged, key=lambda member: member.tag or 0)),
        absent=tuple(absent),
        attrs=tuple(attrs),
    )


def _member(message: Message, field: Field, version: int, tag: int | None, *, is_present: bool = True) -> FieldShape:
    flexible = version in (message.flexible if field.flexible is None else field.flexible)
    nullable = version in field.nullable
    element = _base_type(message, field, version, flexible, nullable and not field.is_array, is_present)
    return FieldShape(
        name=field.name,
        attr=attribute_name(field.name),
        json_name=field.name[0].lower() + field.name[1:],
        type=Type("array", nullable, flexible, element=element) if field.is_array else element,
        tag=tag,
        default=default_value(message, field),
        field=field,
    )


def _base_type(message: Message, field: Field, version: int, flexible: bool, nullable: bool, is_present: bool) -> Type:
    if field.type in FIXED_FORMATS or field.type in ("string", "bytes", "records"):
        return Type(field.type, nullable, flexible)
    fields = message.struct_fields(field.type)
    assert fields is not None, (message.name, field.type)
    # An absent field's inner layout is never needed, and its struct may not exist in this version.
    struct = _struct(message, field.type, fields, version) if is_present else None
    return Type("struct", nullable, flexible, struct=struct)
