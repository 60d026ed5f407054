"""The wire diagram: every field in the order of its bytes, with type and size.

The rows of a struct follow the field that holds it, one level deeper, and its tagged section is its last row. So the
reader sees which section belongs to which struct.
"""

from __future__ import annotations

from ottla.explain.batch_spans import HEADER_FIELDS
from ottla.explain.page import Block, DiagramRow
from ottla.wire import frames
from ottla.wire.compile import message_shape
from ottla.wire.index import MESSAGES
from ottla.wire.keyed import framing
from ottla.wire.schemas import message_schema
from ottla.wire.shape import FIXED_SIZES, FieldShape, Struct, Type
from ottla.wire.text import Field, Message, Range

FRAME_PATH = "Frame"
SIZE_PATH = f"{FRAME_PATH}.Size"
TAGGED_SECTION = "tagged fields"
FRAMING_ROWS = {
    "type16": (("RecordType", "int16", "2"),),
    "version16": (("Version", "int16", "2"),),
    "frame-varints": (("FrameVersion", "uvarint", "1"), ("RecordType", "uvarint", "1"), ("Version", "uvarint", "1")),
}
"""The fields before a stored record, by the kind of framing."""
RECORDS_TYPES = ("records", "compact records")
RECORD_ROWS: tuple[tuple[int, str, str, str, tuple[str, ...]], ...] = (
    (0, "Records", "[]Record", "n×(…)", ()),
    (1, "Records[].Length", "varint", "1", ()),
    (1, "Records[].Attributes", "int8", "1", ()),
    (1, "Records[].TimestampDelta", "varint", "1", ()),
    (1, "Records[].OffsetDelta", "varint", "1", ()),
    (1, "Records[].Key", "bytes", "1+n", ("nullable",)),
    (1, "Records[].Value", "bytes", "1+n", ("nullable",)),
    (1, "Records[].Headers", "[]Header", "1+n×(…)", ()),
    (2, "Records[].Headers[].Key", "string", "1+n", ()),
    (2, "Records[].Headers[].Value", "bytes", "1+n", ("nullable",)),
)
"""Depth, path below the batch, type, size and marks; all lengths and counts in records are zigzag varints."""


def header_of(name: str, version: int) -> tuple[str, int] | None:
    """Name and version of the header of a message; None for a type that is not sent on its own."""
    entry = MESSAGES[name]
    if entry.kind == "request":
        assert entry.key is not None
        return "RequestHeader", frames.request_header_version(entry.key, version)
    if entry.kind == "response":
        assert entry.key is not None
        return "ResponseHeader", frames.response_header_version(entry.key, version)
    return None


def diagram(name: str, version: int) -> tuple[Block, ...]:
    """All blocks of a message in a version: frame and header, or the framing of a record, then the body."""
    blocks = []
    if header := header_of(name, version):
        blocks.append(Block("frame", "Frame", False, (DiagramRow(0, "Size", "int32", "4", (), SIZE_PATH),)))
        blocks.append(_message_block("header", *header))
    if form := framing(name):
        rows = [DiagramRow(0, row, kind, size, (), f"{FRAME_PATH}.{row}") for row, kind, size in FRAMING_ROWS[form]]
        blocks.append(Block("framing", "Before the record", False, tuple(rows)))
    body = _message_block("body", name, version)
    batches = [_batch_block(row.path, row.name) for row in body.rows if row.type in RECORDS_TYPES]
    return (*blocks, body, *batches)


def _batch_block(path: str, name: str) -> Block:
    """The content of a records field: the header of a batch, and its records if they are not compressed."""
    inner = f"{path}.Batch[]"
    rows = [
        DiagramRow(0, field, kind, str(FIXED_SIZES[kind]), (), f"{inner}.{field}") for field, kind, _ in HEADER_FIELDS
    ]
    rows += [
        DiagramRow(depth, path.rpartition(".")[2].removesuffix("[]"), kind, size, marks, f"{inner}.{path}")
        for depth, path, kind, size, marks in RECORD_ROWS
    ]
    return Block("batch", f"Inside {name}: a batch of records", False, tuple(rows))


def _message_block(kind: str, name: str, version: int) -> Block:
    shape = message_shape(name, version)
    rows = _Rows(message_schema(name))
    rows.struct(shape, 0, name, rows.message.versions)
    return Block(kind, f"{name} v{version}", shape.flexible, tuple(rows.found))  # type: ignore[arg-type]


class _Rows:
    def __init__(self, message: Message) -> None:
        self.message = message
        self.found: list[DiagramRow] = []

    def struct(self, shape: Struct, depth: int, path: str, around: Range) -> None:
        for member in shape.plain:
            self.member(member, depth, path, around)
        if shape.flexible:
            size = "1+…" if shape.tagged else "1"
            self.found.append(DiagramRow(depth, TAGGED_SECTION, "uvarint", size, (), path, is_tagged_section=True))
            for member in shape.tagged:
                self.member(member, depth + 1, path, around)

    def member(self, member: FieldShape, depth: int, path: str, around: Range) -> None:
        inner = f"{path}.{member.name}"
        found_marks = marks(self.message, member, around)
        row = DiagramRow(depth, member.name, type_text(member.type), size_text(member.type), found_marks, inner)
        self.found.append(row)
        element = member.type.element if member.type.kind == "array" else member.type
        if element is not None and element.struct is not None:
            inner = f"{inner}[]" if member.type.kind == "array" else inner
            self.struct(element.struct, depth + 1, inner, lifetime(self.message, member.field))


def type_text(shape: Type) -> str:
    """`compact string`, `compact []FetchTopic`, `int32`."""
    if shape.kind == "array":
        assert shape.element is not None
        prefix = "compact " if shape.compact else ""
        element = shape.element
        return f"{prefix}[]{element.struct.name if element.struct else element.kind}"
    if shape.struct is not None:
        return shape.struct.name
    return f"compact {shape.kind}" if shape.compact and not shape.is_fixed else shape.kind


def size_text(shape: Type) -> str:
    """The bytes of a value: its length and its content. The tag and size of a tagged field are not counted."""
    if shape.is_fixed:
        return str(FIXED_SIZES[shape.kind])
    if shape.kind == "struct":
        assert shape.struct is not None
        inner = struct_size_text(shape.struct)
        # The marker of a nullable struct is one byte: an int8, or in a tagged field a varint.
        return f"1+{inner}" if shape.nullable else inner
    if shape.kind == "array":
        assert shape.element is not None
        return f"{1 if shape.compact else 4}+{_elements_text(shape.element)}"
    prefix = 1 if shape.compact else 2 if shape.kind == "string" else 4
    return f"{prefix}+n"


def _elements_text(element: Type) -> str:
    if element.is_fixed:
        size = FIXED_SIZES[element.kind]
        return "n" if size == 1 else f"{size}n"
    inner = size_text(element)
    return f"n×{inner}" if inner.isdigit() or inner.startswith("(") else f"n×({inner})"


def struct_size_text(shape: Struct) -> str:
    """The size of a struct if all its values have one size, else (…). An empty tagged section is one byte."""
    sizes = [size_text(member.type) for member in shape.plain]
    if shape.tagged or not all(size.isdigit() for size in sizes):
        return "(…)"
    return str(sum(map(int, sizes)) + shape.flexible)


def lifetime(message: Message, field: Field) -> Range:
    """The first and the last version of the message that has the field, in line or tagged."""
    ranges = [field.versions] + ([field.tagged] if field.tag is not None else [])
    since = max(min(found.low for found in ranges), message.versions.low)
    return Range(since, min(max(found.high for found in ranges), message.versions.high))


def marks(message: Message, member: FieldShape, around: Range) -> tuple[str, ...]:
    """Notes on a field beside its type; `around` are the versions of the struct that holds it."""
    found = []
    field = member.field
    if member.type.nullable:
        found.append("nullable")
    if member.tag is not None:
        found.append(f"tag {member.tag}")
    since, until = lifetime(message, field)
    if since > around.low:
        found.append(f"since v{since}")
    if until < around.high:
        found.append(f"up to v{until}")
    if field.flexible is not None:
        found.append("not compact")
    return tuple(found)
