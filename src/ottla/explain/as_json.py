"""Trees as JSON, in two forms.

`body_json` has the shape of Kafka's own JsonConverter: field names with their first letter lower, bytes in base64,
uuids as 22 characters; tagged fields at their default are absent. The content of opened bytes replaces them, and
`holds` names it; a secret is `{"withheld_bytes": n}`.

`tree_json` adds positions: each node has `start` and `end`, and its fields below it.
"""

from __future__ import annotations

from base64 import b64encode
from math import isfinite
from typing import Any

from ottla.explain.tree import NOTHING, Node
from ottla.explain.values_text import error_name
from ottla.wire.values import uuid_text

__all__ = ["body_json", "tree_json"]

Json = Any


def body_json(node: Node) -> Json:
    """The content of a node, without positions."""
    if node.withheld:
        return {"withheld_bytes": node.end - node.start}
    if node.value is not NOTHING:
        return _scalar(node)
    if node.kind == "array" or node.type.startswith("records"):
        return [body_json(child) for child in node.fields()]
    fields: dict[str, Json] = {"holds": node.holds} if node.holds else {}
    if node.name == "Rest":
        fields["rest_bytes"] = node.end - node.start
    return fields | {_json_name(child.name): body_json(child) for child in node.fields()}


def tree_json(node: Node) -> Json:
    """A node with its position, its value and its children."""
    found: dict[str, Json] = {"name": node.name, "type": node.type, "start": node.start, "end": node.end}
    if node.layer:
        found["layer"] = node.layer
    if node.holds:
        found["holds"] = node.holds
    if node.withheld:
        found["withheld"] = True
    if node.value is not NOTHING:
        found["value"] = _scalar(node)
        if node.name.endswith("ErrorCode") and isinstance(node.value, int):
            found["error"] = error_name(node.value)
    if node.note:
        found["note"] = node.note
    if node.children:
        found["fields"] = [tree_json(child) for child in node.children]
    return found


def _scalar(node: Node) -> Json:
    value = node.value
    if isinstance(value, bytes):
        return uuid_text(value) if node.type.startswith("uuid") else b64encode(value).decode()
    if isinstance(value, float) and not isfinite(value):
        return str(value)  # JSON has no such numbers
    return value


def _json_name(name: str) -> str:
    return name[0].lower() + name[1:]
