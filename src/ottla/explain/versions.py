"""The changes in each version of a message: the schema's notes, and the differences of the layouts.

Differences are computed from the shapes of neighbouring versions, so they are complete even if a note is not. The
compact lengths of the first flexible version are mentioned once, not for every field.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.explain.page import FieldChange, VersionRow
from ottla.explain.prose import linked
from ottla.explain.schema_text import signature
from ottla.wire.index import MESSAGES
from ottla.wire.schemas import message_schema
from ottla.wire.shape import Struct, shape_of

FLEXIBLE_DETAIL = "compact lengths, a tagged section after each struct"


class _FieldLayout(NamedTuple):
    type: str
    nullable: bool
    tag: int | None
    signature: str


def version_rows(name: str, shown: int) -> tuple[VersionRow, ...]:
    """All versions, newest first."""
    message = message_schema(name)
    entry = MESSAGES[name]
    rows = []
    previous: Struct | None = None
    for version in range(entry.low, entry.high + 1):
        shape = shape_of(message, version)
        rows.append(
            VersionRow(
                version=version,
                notes=tuple(linked(note.text, besides=name) for note in message.notes if note.key == f"v{version}"),
                changes=() if previous is None else changes(previous, shape),
                flexible=shape.flexible,
                unstable=entry.unstable and version == entry.high,
                shown=version == shown,
            )
        )
        previous = shape
    return tuple(reversed(rows))


def changes(old: Struct, new: Struct) -> tuple[FieldChange, ...]:
    """The fields that were added, removed or changed between two versions, in their order."""
    before, after = field_layouts(old), field_layouts(new)
    found = []
    if new.flexible and not old.flexible:
        found.append(FieldChange("changed", new.class_name, FLEXIBLE_DETAIL))
    for path, layout in after.items():
        if path not in before:
            if not _parent_among(path, after.keys() - before.keys()):
                found.append(FieldChange("added", path, layout.signature))
        elif detail := _difference(before[path], layout):
            found.append(FieldChange("changed", path, detail))
    for path, layout in before.items():
        if path not in after and not _parent_among(path, before.keys() - after.keys()):
            found.append(FieldChange("removed", path, layout.signature))
    return tuple(found)


def field_layouts(shape: Struct) -> dict[str, _FieldLayout]:
    """Every field by its path."""
    found: dict[str, _FieldLayout] = {}
    _collect(shape, shape.class_name, found)
    return found


def _collect(shape: Struct, path: str, found: dict[str, _FieldLayout]) -> None:
    for member in (*shape.plain, *shape.tagged):
        inner = f"{path}.{member.name}"
        text = signature(member)
        found[inner] = _FieldLayout(text.split()[0].rstrip("?"), member.type.nullable, member.tag, text)
        element = member.type.element if member.type.kind == "array" else member.type
        if element is not None and element.struct is not None:
            _collect(element.struct, f"{inner}[]" if member.type.kind == "array" else inner, found)


def _parent_among(path: str, paths: set[str]) -> bool:
    """Whether a struct around the field is itself among the added (or removed) fields."""
    parents = path.split(".")[:-1]
    return any(".".join(parents[:depth]).removesuffix("[]") in paths for depth in range(1, len(parents) + 1))


def _difference(old: _FieldLayout, new: _FieldLayout) -> str:
    parts = []
    if old.type != new.type:
        parts.append(f"{old.type} → {new.type}")
    if old.nullable != new.nullable:
        parts.append("nullable" if new.nullable else "no longer nullable")
    if old.tag != new.tag:
        parts.append("in line" if new.tag is None else f"tag {new.tag}")
    return ", ".join(parts)
