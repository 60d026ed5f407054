"""Examples: a plausible value of a message, encoded by the real codec, with every byte labelled.

A value is made field by field: from the scene of the message, else by the rules for the entity type or the name, else
the default of the type. The interpreter encodes and traces the result, which for one message is faster than compiling a
codec. Both reject a value that a version cannot carry, so the codec can encode every example.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ottla import wire
from ottla.explain import cast
from ottla.explain.diagram import FRAME_PATH, FRAMING_ROWS, SIZE_PATH, header_of
from ottla.explain.page import Example
from ottla.explain.raw_span import RawSpan
from ottla.explain.rules import NO_RULE, players, rule_value
from ottla.explain.scene import Scene, scene_of
from ottla.explain.spans import labelled, traced_spans
from ottla.wire.compile import classes_of, message_shape
from ottla.wire.index import MESSAGES
from ottla.wire.keyed import framing
from ottla.wire.shape import FieldShape, Struct, Type
from ottla.wire.trace import Classes, encode_slowly, uvarint

CORRELATION_ID = 7
VERSION_WORD = "$version"
METADATA_FRAME_VERSION = 1


class Made(NamedTuple):
    """A message of an example and the scene it comes from."""

    message: Any
    scene: Scene


def make(name: str, version: int) -> Made:
    """The value of the example."""
    scene = scene_of(name)
    maker = _Maker(name, version, classes_of(name))
    return Made(maker.struct(message_shape(name, version), scene.overrides(version), name), scene)


def example(name: str, version: int) -> Example:
    """The whole example: value, bytes and spans, with frame and header, or with the framing of a stored record."""
    message, scene = make(name, version)
    body = encode_slowly(message_shape(name, version), message)
    before, header = _before(name, version, scene, body)
    spans = [*before.spans, *traced_spans(name, version, body, at=len(before.data))]
    return Example(
        caption=scene.caption(version),
        value=wire.to_json(message, version),
        header=header,
        hex=(before.data + body).hex(),
        spans=labelled(spans),
        body_at=len(before.data),
    )


class _Before(NamedTuple):
    data: bytes
    spans: list[RawSpan]


def _before(name: str, version: int, scene: Scene, body: bytes) -> tuple[_Before, dict[str, Any] | None]:
    """The bytes before the body, and the header in them."""
    header = header_of(name, version)
    if header is None:
        return _stored(name, version), None
    header_name, header_version = header
    made = _header(name, version, header_name, scene)
    data = encode_slowly(message_shape(header_name, header_version), made)
    spans = traced_spans(header_name, header_version, data, at=len(_size(0)))
    return _framed(data, len(data) + len(body), spans), wire.to_json(made, header_version)


def _size(value: int) -> bytes:
    return value.to_bytes(4, "big")


def _framed(header: bytes, size: int, spans: list[RawSpan]) -> _Before:
    raw = _size(size)
    return _Before(raw + header, [RawSpan(0, len(raw), SIZE_PATH, "value", "int32", str(size)), *spans])


def _header(name: str, version: int, header_name: str, scene: Scene) -> Any:
    types = classes_of(header_name)
    if header_name == "ResponseHeader":
        return types(header_name)(correlation_id=CORRELATION_ID)
    return types(header_name)(
        request_api_key=MESSAGES[name].key,
        request_api_version=version,
        correlation_id=CORRELATION_ID,
        client_id=_resolved(scene.client_id(version) or f"${players(name).client}"),
    )


def _stored(name: str, version: int) -> _Before:
    """The framing before a record on disk; empty for data that has none."""
    form = framing(name)
    if form is None:
        return _Before(b"", [])
    data = b""
    spans = []
    for row, kind, _ in FRAMING_ROWS[form]:
        number = _framing_number(row, name, version)
        raw = number.to_bytes(2, "big") if kind == "int16" else uvarint(number)
        spans.append(RawSpan(len(data), len(data) + len(raw), f"{FRAME_PATH}.{row}", "value", kind, str(number)))
        data += raw
    return _Before(data, spans)


def _framing_number(row: str, name: str, version: int) -> int:
    if row == "Version":
        return version
    return METADATA_FRAME_VERSION if row == "FrameVersion" else MESSAGES[name].key or 0


def _resolved(value: Any) -> Any:
    """A scene's value, with its $words replaced by values of the cast."""
    return cast.value(value[1:]) if isinstance(value, str) and value.startswith("$") else value


class _Maker:
    """Makes a value of a shape, field by field."""

    def __init__(self, name: str, version: int, classes: Classes) -> None:
        self.name = name
        self.version = version
        self.classes = classes

    def struct(self, shape: Struct, given: dict[str, Any], path: str) -> Any:
        values = {}
        for member in (*shape.plain, *shape.tagged):
            value = given.get(member.name, NO_RULE)
            if value is NO_RULE and member.tag is not None:
                continue  # a tagged field at its default is not sent
            values[member.attr] = self.member(member, value, f"{path}.{member.name}")
        return self.classes(shape.class_name)(**values)

    def member(self, member: FieldShape, given: Any, path: str) -> Any:
        shape = member.type
        element = shape.element if shape.kind == "array" else shape
        assert element is not None
        if element.struct is not None:
            return self.structs(member, element.struct, given, path)
        if given is NO_RULE:
            given = rule_value(member, element, self.name)
        if given is NO_RULE:
            return member.default
        if given == VERSION_WORD:
            return self.version
        if shape.kind == "array" and given is not None:
            return tuple([leaf(element, item, path) for item in given])
        return leaf(shape, given, path)

    def structs(self, member: FieldShape, struct: Struct, given: Any, path: str) -> Any:
        """A struct, or an array of them: by default one that the rules make, or none if it is optional."""
        if given is NO_RULE:
            if member.type.nullable and member.default in (None, ()):
                return None if member.default is None else ()
            given = {}
        if given is None:
            return None
        if member.type.kind != "array":
            return self.struct(struct, given, path)
        elements = given if isinstance(given, list) else [given]
        return tuple([self.struct(struct, element, f"{path}[]") for element in elements])


def leaf(shape: Type, given: Any, path: str) -> Any:
    """A scene's value, converted to the type that the codec expects."""
    value = _resolved(given)
    if value is None or isinstance(value, bytes):
        return value
    if shape.kind == "uuid":
        return wire.uuid_bytes(value)
    assert shape.kind not in ("bytes", "records"), f"{path}: bytes come from the cast, not {value!r}"
    return float(value) if shape.kind == "float64" else value
