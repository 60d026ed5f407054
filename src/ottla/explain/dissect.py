"""Dissects bytes: turns a message, a frame or a run of record batches into trees that can be shown.

Every tree that this module returns has been opened (`open_records`, `open_fields`) and redacted (`redact`), so code
that prints one need not care about secrets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from struct import Struct
from typing import NamedTuple

from ottla.explain.guess import Wrapping
from ottla.explain.open_fields import Trail, open_fields
from ottla.explain.open_records import METADATA_TOPIC, METADATA_TOPIC_ID, open_batches
from ottla.explain.redact import redact
from ottla.explain.tree import NOTHING, Node, grow
from ottla.wire import frames
from ottla.wire.compile import message_shape
from ottla.wire.fault import WireError
from ottla.wire.index import MESSAGES
from ottla.wire.support import Refused, read_varint
from ottla.wire.trace import trace

__all__ = ["Dissection", "TopicLookup", "dissect", "dissect_message", "no_topic_names"]

_SIZE = Struct(">i")

TopicLookup = Callable[[bytes], str | None]
"""Topic id -> name of the topic; None if it is unknown."""


def no_topic_names(topic_id: bytes) -> str | None:
    """Knows only the topic of the metadata log, which has the same id in every cluster."""
    return METADATA_TOPIC if topic_id == METADATA_TOPIC_ID else None


class Dissection(NamedTuple):
    """Dissected bytes: the parts before the message (size, header), the message, and the error that ends it."""

    name: str
    version: int
    nodes: tuple[Node, ...]
    error: WireError | None
    """Its byte offset counts from the start of the input."""
    rest_bytes: int
    """How many bytes at the end no node covers."""


def dissect(
    data: bytes, name: str, version: int, wrapping: Wrapping, *, topic_names: TopicLookup = no_topic_names
) -> Dissection:
    """A message and what precedes it. The wrapping must be one that the message can have."""
    nodes: list[Node] = []
    at = 0
    if wrapping.has_size:
        (size,) = _SIZE.unpack_from(data)
        left = len(data) - _SIZE.size
        note = "" if size == left else f"{left} bytes are there"
        nodes.append(Node("Size", "int32", 0, _SIZE.size, value=size, note=note))
        at = _SIZE.size
    above, at, error = _dissect_before(data, at, name, version, wrapping)
    nodes += above
    if error is None:
        body, error = dissect_message(name, version, data[at:], at, topic_names=topic_names)
        body.name = name
        nodes.append(body)
    covered = max((node.end for node in nodes), default=0)
    return Dissection(name, version, tuple(nodes), error, len(data) - covered)


def dissect_message(
    name: str,
    version: int,
    data: bytes,
    offset: int = 0,
    *,
    topic_names: TopicLookup = no_topic_names,
    with_records: bool = True,
) -> tuple[Node, WireError | None]:
    """The tree of a bare message and, if it is incomplete, the error that ends it."""
    shape = message_shape(name, version)
    # The tree needs only spans, so the classes are not loaded.
    traced = trace(shape, lambda _: dict, data)
    root = grow(shape, traced, offset)
    _open_records(root, (), topic_names, with_records=with_records)
    open_fields(name, root, _grow_whole)
    redact(name, root)
    return root, None if traced.error is None else _shifted(traced.error, offset)


def _grow_whole(name: str, version: int, data: bytes, offset: int) -> Node | None:
    """The tree of a message inside another, for `open_fields` and `open_records`; None if it is incomplete."""
    root, error = dissect_message(name, version, data, offset)
    return root if error is None else None


def dissect_batches(data: bytes, topic: str | None = None) -> Iterator[Node]:
    """Bare record batches, such as a log segment: yields one tree for each."""
    return open_batches(data, 0, topic, _grow_whole)


def _shifted(error: WireError, offset: int) -> WireError:
    return WireError(error.path, None if error.byte_offset is None else error.byte_offset + offset, error.reason)


# --- what stands before a message -------------------------------------------------------------------------------------


def _dissect_before(
    data: bytes, at: int, name: str, version: int, wrapping: Wrapping
) -> tuple[list[Node], int, WireError | None]:
    """The nodes of header or prefix, the position of the body, and the error if header or prefix are incomplete."""
    if wrapping.before in ("request header", "response header"):
        return _dissect_header(data, at, name, version, wrapping)
    if wrapping.before == "frame":
        return _dissect_varints(data, at)
    if wrapping.before in ("type", "version"):
        label = "RecordType" if wrapping.before == "type" else "Version"
        if len(data) < at + 2:
            return [], at, WireError(name, at, f"the {label} is cut off")
        number = int.from_bytes(data[at : at + 2], "big", signed=True)
        return [Node(label, "int16", at, at + 2, value=number)], at + 2, None
    return [], at, None


def _dissect_header(
    data: bytes, at: int, name: str, version: int, wrapping: Wrapping
) -> tuple[list[Node], int, WireError | None]:
    key = MESSAGES[name].key
    assert key is not None
    if wrapping.before == "request header":
        header, header_version = "RequestHeader", frames.request_header_version(key, version)
    else:
        header, header_version = "ResponseHeader", frames.response_header_version(key, version)
    shape = message_shape(header, header_version)
    traced = trace(shape, lambda _: dict, data[at:], allow_rest=True)
    node = grow(shape, traced, at)
    return [node], node.end, None if traced.error is None else _shifted(traced.error, at)


def _dissect_varints(data: bytes, at: int) -> tuple[list[Node], int, WireError | None]:
    nodes: list[Node] = []
    for label in ("FrameVersion", "RecordType", "Version"):
        try:
            value, end = read_varint(data, at)
        except (IndexError, Refused):
            return nodes, at, WireError(label, at, "is cut off")
        nodes.append(Node(label, "uvarint", at, end, value=value))
        at = end
    return nodes, at, None


# --- records inside messages ------------------------------------------------------------------------------------------


def _open_records(node: Node, trail: Trail, topic_names: TopicLookup, *, with_records: bool) -> None:
    if isinstance(node.value, memoryview):
        _open_field(node, trail, topic_names, with_records=with_records)
    inner = (*trail, node) if node.kind == "struct" else trail
    for child in node.children:
        if child.children or isinstance(child.value, memoryview):
            _open_records(child, inner, topic_names, with_records=with_records)


def _open_field(node: Node, trail: Trail, topic_names: TopicLookup, *, with_records: bool) -> None:
    assert isinstance(node.value, memoryview)
    data = bytes(node.value)
    topic = _topic_of(trail, topic_names)
    position = trail[-1].child("Position") if trail else None
    if node.name == "UnalignedRecords" and (position is None or position.value != 0):
        node.withhold()  # part of a snapshot, which may hold credentials
        return
    node.children = list(open_batches(data, node.end - len(data), topic, _grow_whole, with_records=with_records))
    node.value = NOTHING if node.children else b""
    counts = [batch.child("RecordCount") for batch in node.children]
    records = sum(count.value for count in counts if count is not None and isinstance(count.value, int))
    node.note = f"{len(node.children)} batches, {records} records" if node.children else ""


def _topic_of(trail: Trail, topic_names: TopicLookup) -> str | None:
    """The topic in the nearest enclosing struct that has a name or an id of a topic."""
    for struct in reversed(trail):
        for field in struct.children:
            if field.entity == "topicName" and isinstance(field.value, str) and field.value:
                return field.value
            if field.type == "uuid" and field.name == "TopicId" and isinstance(field.value, bytes):
                return topic_names(field.value)
    return None
