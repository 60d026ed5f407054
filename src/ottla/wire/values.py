"""Messages as JSON values, in the form of Kafka's own JsonConverter classes, and uuids as text.

A key is the field's name with its first letter in lower case. A tagged field at its default is left out, every other
field of the version is present. bytes and records are base64; a uuid is 22 characters of URL-safe base64, as Kafka
prints it.
"""

from __future__ import annotations

import base64
import binascii

from ottla.wire.fault import WireError
from ottla.wire.shape import FIXED_SIZES, INTEGER_LIMITS, Struct, Type
from ottla.wire.trace import Classes, is_default

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


def uuid_text(raw: bytes) -> str:
    """16 bytes in Kafka's text form of a uuid."""
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def uuid_bytes(text: str) -> bytes:
    """The inverse of uuid_text; ValueError for anything that is not 16 bytes."""
    raw = base64.b64decode(text + "==", altchars=b"-_", validate=True)
    if len(raw) != FIXED_SIZES["uuid"]:
        raise ValueError(f"{text!r} is not 16 bytes of URL-safe base64")
    return raw


def struct_to_json(shape: Struct, message: object, path: str) -> dict[str, Json]:
    for member in shape.absent:
        if not member.field.ignorable and not is_default(getattr(message, member.attr), member):
            raise WireError(f"{path}.{member.name}", None, "is set, but this version has no such field")
    found: dict[str, Json] = {}
    for member in (*shape.plain, *shape.tagged):
        value = getattr(message, member.attr)
        if member.tag is None or not is_default(value, member):
            found[member.json_name] = _to_json(member.type, value, f"{path}.{member.name}")
    return found


def _to_json(shape: Type, value: object, path: str) -> Json:
    if value is None:
        if not shape.nullable:
            raise WireError(path, None, "null is not allowed here in this version")
        return None
    if shape.kind == "struct":
        assert shape.struct is not None
        return struct_to_json(shape.struct, value, path)
    if shape.kind == "array":
        assert shape.element is not None
        elements: tuple[object, ...] = value  # type: ignore[assignment]  # the generated classes say so
        return [_to_json(shape.element, element, f"{path}[{index}]") for index, element in enumerate(elements)]
    if shape.kind == "uuid":
        return uuid_text(value)  # type: ignore[arg-type]
    if shape.kind in ("bytes", "records"):
        return base64.b64encode(value).decode()  # type: ignore[arg-type]
    return value  # type: ignore[return-value]


def struct_from_json(shape: Struct, classes: Classes, obj: Json, path: str) -> object:
    if not isinstance(obj, dict):
        raise WireError(path, None, f"an object is needed, not {obj!r}")
    members = {member.json_name: member for member in (*shape.plain, *shape.tagged)}
    for key in obj:
        if key not in members:
            raise WireError(f"{path}.{key}", None, f"this version has no such field; it has {', '.join(members)}")
    values: dict[str, object] = {}
    for key, member in members.items():
        if key in obj:
            values[member.attr] = _from_json(member.type, classes, obj[key], f"{path}.{member.name}")
        elif member.tag is None:
            raise WireError(f"{path}.{member.name}", None, f"the key {key!r} is missing")
    return classes(shape.class_name)(**values)


def _from_json(shape: Type, classes: Classes, value: Json, path: str) -> object:
    if value is None:
        if not shape.nullable:
            raise WireError(path, None, "null is not allowed here in this version")
        return None
    if shape.kind == "struct":
        assert shape.struct is not None
        return struct_from_json(shape.struct, classes, value, path)
    if shape.kind == "array":
        assert shape.element is not None
        if not isinstance(value, list):
            raise WireError(path, None, f"an array is needed, not {value!r}")
        return tuple([_from_json(shape.element, classes, item, f"{path}[{i}]") for i, item in enumerate(value)])
    return _scalar_from_json(shape, value, path)


def _scalar_from_json(shape: Type, value: Json, path: str) -> object:
    if shape.kind in INTEGER_LIMITS:
        low, high = INTEGER_LIMITS[shape.kind]
        if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
            return value
    elif shape.kind == "float64":
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
    elif shape.kind == "bool":
        if isinstance(value, bool):
            return value
    elif isinstance(value, str):
        return _text_from_json(shape, value, path)
    raise WireError(path, None, f"{value!r} is not of type {shape.kind}")


def _text_from_json(shape: Type, value: str, path: str) -> object:
    if shape.kind == "string":
        return value
    try:
        return uuid_bytes(value) if shape.kind == "uuid" else base64.b64decode(value, validate=True)
    except (ValueError, binascii.Error) as error:
        raise WireError(path, None, f"{value!r} is not {shape.kind} in base64: {error}") from None
