"""The schema of one version in ottla's own notation, field by field with descriptions.

The notation is that of the schema files (`ottla.wire.text`), but without the parts for other versions, and with shared
structs written where they are used.
"""

from __future__ import annotations

from ottla.explain.diagram import lifetime
from ottla.explain.page import Prose, SchemaRow
from ottla.explain.prose import linked
from ottla.wire.schemas import field_about, message_schema
from ottla.wire.shape import FieldShape, Struct, Type, shape_of
from ottla.wire.text import Field, Message


def schema_rows(name: str, version: int) -> tuple[SchemaRow, ...]:
    message = message_schema(name)
    rows: list[SchemaRow] = []
    _struct(message, shape_of(message, version), 0, name, rows)
    return tuple(rows)


def _struct(message: Message, shape: Struct, depth: int, path: str, rows: list[SchemaRow]) -> None:
    for member in (*shape.plain, *shape.tagged):
        inner = f"{path}.{member.name}"
        rows.append(_row(message, member, depth, inner))
        element = member.type.element if member.type.kind == "array" else member.type
        if element is not None and element.struct is not None:
            _struct(message, element.struct, depth + 1, f"{inner}[]" if member.type.kind == "array" else inner, rows)


def _row(message: Message, member: FieldShape, depth: int, path: str) -> SchemaRow:
    return SchemaRow(
        depth=depth,
        name=member.name,
        signature=signature(member),
        versions=versions_text(message, member.field),
        nullable=member.type.nullable,
        tag=member.tag,
        about=_about(member.field, message.name),
        path=path,
    )


def _about(field: Field, message_name: str) -> Prose:
    return linked(field_about(field), besides=message_name)


def signature(member: FieldShape) -> str:
    """`string? = null (groupId)`: type, nullable, tag, default and entity as schema text writes them."""
    parts = [f"{_type_name(member.type)}{'?' if member.type.nullable else ''}"]
    field = member.field
    if member.tag is not None:
        parts.append(f"tag {member.tag}")
    if field.default is not None:
        parts.append(f"= {_default_text(field)}")
    if field.entity:
        parts.append(f"({field.entity})")
    return " ".join(parts)


def _type_name(shape: Type) -> str:
    if shape.kind == "array":
        assert shape.element is not None
        return f"[]{_type_name(shape.element)}"
    return shape.struct.name if shape.struct else shape.kind


def _default_text(field: Field) -> str:
    if isinstance(field.default, bool):
        return "true" if field.default else "false"
    return f'"{field.default}"' if field.type == "string" and field.default != "null" else str(field.default)


def versions_text(message: Message, field: Field) -> str:
    """The versions of the message that have the field."""
    low, high = lifetime(message, field)
    if high == message.versions.high:
        return f"{low}+"
    return str(low) if low == high else f"{low}-{high}"


def as_text(rows: tuple[SchemaRow, ...]) -> str:
    """The rows as lines of schema text without descriptions."""
    return "\n".join(f"{'  ' * row.depth}{row.name}: {row.signature}" for row in rows)
