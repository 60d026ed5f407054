"""The tree of a message: its fields with their values and bytes.

The interpreter's spans are a flat list; a `Node` collects those of one field and of all fields below it. Bytes with a
content of their own (record batches, a consumer's subscription, an embedded request) get it as children; if it was
compressed, the children's offsets count decompressed bytes, and `layer` says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from ottla.wire.fault import WireError
from ottla.wire.shape import Struct, Type
from ottla.wire.trace import Span, Trace

__all__ = ["NOTHING", "Kind", "Node", "grow", "type_text"]

Kind = Literal["value", "struct", "array", "mark", "derived"]
"""`mark`: bytes without a value of their own, such as the count of tagged fields. `derived`: computed from other
fields, without bytes of its own, such as a record's offset."""


class _Nothing:
    def __repr__(self) -> str:
        return "NOTHING"


NOTHING = _Nothing()
"""The value of a node without one: a struct, or bytes that are not shown."""


@dataclass(slots=True)
class Node:
    """A field, an element, a struct or opened content."""

    name: str
    type: str
    start: int
    end: int
    kind: Kind = "value"
    value: object = NOTHING
    children: list[Node] = field(default_factory=list)
    note: str = ""
    holds: str = ""
    """The message that bytes were opened as, with its version."""
    layer: str = ""
    """Is "decompressed" if the offsets do not count bytes of the input."""
    withheld: bool = False
    """Whether the bytes are a secret and are never shown."""
    entity: str | None = None
    """The entity type in the schema: groupId, topicName, ..."""

    def child(self, name: str) -> Node | None:
        """The field of this name."""
        return next((node for node in self.children if node.name == name), None)

    def fields(self) -> list[Node]:
        """The children without the marks."""
        return [node for node in self.children if node.kind != "mark"]

    def walk(self) -> Iterator[Node]:
        """This node and all below it, in the order of the bytes."""
        yield self
        for node in self.children:
            yield from node.walk()

    def find(self, pattern: str, trail: tuple[Node, ...] = ()) -> Iterator[tuple[Node, tuple[Node, ...]]]:
        """The nodes at a path such as "Topics[].Configs[].Value", each with the structs around it, innermost last."""
        step, _, rest = pattern.partition(".")
        name, is_each, _ = step.partition("[")
        held = self.child(name)
        if held is None:
            return
        for node in held.fields() if is_each else [held]:
            if rest:
                yield from node.find(rest, (*trail, self))
            else:
                yield node, (*trail, self)

    def withhold(self) -> None:
        """Forget the value of the bytes; keep their position and size."""
        self.withheld = True
        self.value = NOTHING
        self.children.clear()


def type_text(shape: Type) -> str:
    """A type as the schema text writes it."""
    if shape.kind == "array":
        assert shape.element is not None
        return f"[]{type_text(shape.element)}{'?' if shape.nullable else ''}"
    name = shape.struct.name if shape.struct is not None else shape.kind
    return f"{name}?" if shape.nullable else name


def grow(shape: Struct, traced: Trace, offset: int = 0) -> Node:
    """The tree of the fields that the interpreter could read; `offset` is the position of its bytes in the input."""
    grower = _Grower(shape, offset)
    for span in traced.spans:
        grower.add(span)
    root = grower.nodes[shape.class_name]
    if traced.error is not None:
        root.note = _broken(traced.error)
    return root


def _broken(error: WireError) -> str:
    return f"incomplete: {error.reason}"


class _Grower:
    """Puts spans into a tree by their path. A struct's type determines its children."""

    def __init__(self, shape: Struct, offset: int) -> None:
        self.offset = offset
        self.nodes = {shape.class_name: Node(shape.name, "struct", offset, offset, "struct")}
        self.types = {shape.class_name: Type("struct", nullable=False, compact=False, struct=shape)}

    def add(self, span: Span) -> None:
        node = self.node(span.path)
        start, end = self.offset + span.start, self.offset + span.end
        self.extend(span.path, end)
        if span.role == "value":
            node.value = span.value
        elif span.role == "null":
            node.value = None
        elif span.role == "length" and span.value == 0:
            node.value = "" if node.type.startswith("string") else b""
        elif span.role == "count":
            node.note = "" if span.value else "empty"
        elif span.role == "tags":
            note = "" if span.value else "none"
            node.children.append(Node("tagged fields", "uvarint", start, end, "mark", span.value, note=note))

    def node(self, path: str) -> Node:
        found = self.nodes.get(path)
        if found is None:
            found = self.nodes[path] = self.sprout(path)
        return found

    def sprout(self, path: str) -> Node:
        """A new node below its parent, which is created if it is missing."""
        at = path.rindex("[") if path.endswith("]") else path.rindex(".")
        above, name = path[:at], path[at:].lstrip(".")
        parent = self.node(above)
        shape, entity = _member_type(self.types[above], name)
        self.types[path] = shape
        kind: Kind = "struct" if shape.kind == "struct" else "array" if shape.kind == "array" else "value"
        node = Node(name, type_text(shape), parent.end, parent.end, kind, entity=entity)
        parent.children.append(node)
        return node

    def extend(self, path: str, end: int) -> None:
        """The new span belongs to the node and to everything above it."""
        while True:
            self.nodes[path].end = end
            at = max(path.rfind("[") if path.endswith("]") else path.rfind("."), 0)
            if not at:
                return
            path = path[:at]


_BYTES = Type("bytes", nullable=False, compact=True)


def _member_type(above: Type, name: str) -> tuple[Type, str | None]:
    """The type of an element or field, and its entity type; unknown tagged fields are bytes."""
    if name.startswith("["):
        assert above.element is not None
        return above.element, None
    assert above.struct is not None
    for member in (*above.struct.plain, *above.struct.tagged):
        if member.name == name:
            return member.type, member.field.entity
    return _BYTES, None
