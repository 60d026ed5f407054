"""Opens record batches: header, records, and the messages in the records of internal topics.

Damage is contained: a batch with a wrong checksum is opened and marked, a record that cannot be read ends its batch and
not the message, and a truncated last batch (usual in fetch responses) is named as such.

The topic says how keys and values are read. If it is unknown, the content decides: if every record of a batch reads to
its last byte as a record of the same internal topic, it is taken to be one.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Final

from ottla.explain.open_fields import Grow
from ottla.explain.redact import RULES
from ottla.explain.tree import NOTHING, Node
from ottla.wire import keyed
from ottla.wire.batch import AnyBatch, BatchView, ControlRecordType, LegacyBatch, TimestampType, split_batches
from ottla.wire.batch_record import RecordPosition, Section, walk, walk_headers
from ottla.wire.fault import WireError
from ottla.wire.index import MESSAGES
from ottla.wire.legacy import MessagePosition
from ottla.wire.support import Refused, read_varint
from ottla.wire.varint import wrap_int64

__all__ = ["METADATA_TOPIC", "METADATA_TOPIC_ID", "open_batches"]

METADATA_TOPIC: Final = "__cluster_metadata"
METADATA_TOPIC_ID: Final = bytes(15) + b"\x01"
"""The metadata topic has this id in every cluster."""
DECOMPRESSED: Final = "decompressed"

_V2_FIELDS: Final = (
    ("BaseOffset", "base_offset", "int64"),
    ("BatchLength", "batch_length", "int32"),
    ("PartitionLeaderEpoch", "partition_leader_epoch", "int32"),
    ("Magic", "magic", "int8"),
    ("Crc", "crc", "uint32"),
    ("Attributes", "attributes", "int16"),
    ("LastOffsetDelta", "last_offset_delta", "int32"),
    ("BaseTimestamp", "base_timestamp", "int64"),
    ("MaxTimestamp", "max_timestamp", "int64"),
    ("ProducerId", "producer_id", "int64"),
    ("ProducerEpoch", "producer_epoch", "int16"),
    ("BaseSequence", "base_sequence", "int32"),
    ("RecordCount", "record_count", "int32"),
)
_LEGACY_FIELDS: Final = (
    ("Offset", "offset", "int64"),
    ("MessageSize", "message_size", "int32"),
    ("Crc", "crc", "uint32"),
    ("Magic", "magic", "int8"),
    ("Attributes", "attributes", "int8"),
)
_WIDTHS: Final = {"int8": 1, "int16": 2, "int32": 4, "uint32": 4, "int64": 8}
_CONTROL_VALUES: Final = {
    ControlRecordType.ABORT: "EndTxnMarker",
    ControlRecordType.COMMIT: "EndTxnMarker",
    ControlRecordType.LEADER_CHANGE: "LeaderChangeMessage",
    ControlRecordType.SNAPSHOT_HEADER: "SnapshotHeaderRecord",
    ControlRecordType.SNAPSHOT_FOOTER: "SnapshotFooterRecord",
    ControlRecordType.KRAFT_VERSION: "KRaftVersionRecord",
    ControlRecordType.KRAFT_VOTERS: "VotersRecord",
}
_SNIFFED_RECORDS_MAX: Final = 50

Bytes = bytes | memoryview


def open_batches(
    data: Bytes, offset: int, topic: str | None, grow: Grow, *, with_records: bool = True
) -> Iterator[Node]:
    """One node for each batch in `data`, which begins at `offset` of the input."""
    at = 0
    try:
        for batch in split_batches(data):
            yield _open_batch(batch, offset, topic, grow, with_records=with_records)
            at = batch.position + batch.size_bytes
    except WireError as error:
        note = f"no batch: {error.reason}"
        yield Node("Rest", "bytes", offset + at, offset + len(data), note=note)
        return
    if at < len(data):
        note = f"the first {len(data) - at} bytes of a batch that is cut off"
        yield Node("Rest", "bytes", offset + at, offset + len(data), note=note)


def _open_batch(batch: AnyBatch, offset: int, topic: str | None, grow: Grow, *, with_records: bool) -> Node:
    start = offset + batch.position
    kind = f"RecordBatch v{batch.magic}" if batch.magic == 2 else f"MessageSet v{batch.magic}"
    node = Node("Batch", kind, start, start + batch.size_bytes, "struct", note=_batch_note(batch))
    names = _V2_FIELDS if isinstance(batch, BatchView) else _LEGACY_FIELDS
    at = start
    for name, attr, kind in names:
        node.children.append(Node(name, kind, at, at + _WIDTHS[kind], value=getattr(batch, attr)))
        at += _WIDTHS[kind]
    _annotate_header(batch, node)
    if with_records:
        node.children.append(_open_section(batch, at, node.end, offset, topic, grow))
    return node


def _batch_note(batch: AnyBatch) -> str:
    if isinstance(batch, LegacyBatch):
        return f"offset {batch.offset}, {_codec_text(batch)}"
    words = [f"offsets {batch.base_offset} to {batch.last_offset}", f"{batch.record_count} records", _codec_text(batch)]
    if batch.is_transactional:
        words.append("transactional")
    if batch.is_control:
        words.append("control")
    return ", ".join(words)


def _codec_text(batch: AnyBatch) -> str:
    try:
        return "not compressed" if not batch.is_compressed else batch.compression.name.lower()
    except WireError as error:
        return error.reason


def _annotate_header(batch: AnyBatch, node: Node) -> None:
    crc, attributes = node.child("Crc"), node.child("Attributes")
    assert crc is not None
    assert attributes is not None
    crc.note = "fits" if batch.is_valid else "WRONG: the bytes have another checksum"
    if not batch.is_valid:
        node.note += ", wrong checksum"
    words = [_codec_text(batch)]
    if batch.timestamp_type is TimestampType.LOG_APPEND_TIME:
        words.append("append time")
    if isinstance(batch, BatchView):
        words += [
            word
            for word, is_so in (
                ("transactional", batch.is_transactional),
                ("control", batch.is_control),
                ("delete horizon", batch.delete_horizon_ms is not None),
            )
            if is_so
        ]
    attributes.note = ", ".join(words)


# --- records ----------------------------------------------------------------------------------------------------------


def _open_section(batch: AnyBatch, start: int, end: int, offset: int, topic: str | None, grow: Grow) -> Node:
    """The records of a batch, as one array."""
    node = Node("Records", "[]Record", start, end, "array")
    try:
        if isinstance(batch, BatchView):
            _open_v2(batch, node, offset, topic, grow)
        else:
            _open_legacy(batch, node, offset, topic, grow)
    except WireError as error:
        node.note = f"incomplete: {error}"
    return node


def _open_v2(batch: BatchView, node: Node, offset: int, topic: str | None, grow: Grow) -> None:
    section = batch.section(copy=True)
    base, layer = (0, DECOMPRESSED) if section.was_compressed else (node.start, "")
    if layer:
        node.note = f"{len(batch.body)} bytes, {len(section.data)} decompressed"
    if batch.record_count == 0:
        return
    typed = _Typed(batch.is_control, topic or (None if batch.is_control else _sniffed_topic(section, batch)), grow)
    for index, place in enumerate(walk(section, batch.record_count)):
        record = Node(f"[{index}]", "Record", base + place.start, base + place.end, "struct", layer=layer)
        record_offset = wrap_int64(batch.base_offset + place.offset_delta)
        timestamp = wrap_int64(batch.base_timestamp + place.timestamp_delta)
        if batch.timestamp_type is TimestampType.LOG_APPEND_TIME:
            timestamp = batch.max_timestamp
        record.children = [
            Node("Offset", "int64", record.start, record.start, "derived", value=record_offset, layer=layer),
            Node("Timestamp", "int64", record.start, record.start, "derived", value=timestamp, layer=layer),
        ]
        _add_key_and_value(record, section.data, place, base)
        _add_headers(record, section, place, base)
        typed.open(record)
        node.children.append(record)


def _add_key_and_value(record: Node, data: Bytes, place: RecordPosition | MessagePosition, base: int) -> None:
    key, value = (place.key_start, place.key_length), (place.value_start, place.value_length)
    for name, (start, length) in (("Key", key), ("Value", value)):
        end = start + max(length, 0)
        held = None if length < 0 else bytes(data[start:end])
        record.children.append(Node(name, "bytes?", base + start, base + end, value=held, layer=record.layer))


def _add_headers(record: Node, section: Section, place: RecordPosition, base: int) -> None:
    if not place.header_count:
        return
    headers = Node("Headers", "[]Header", base + place.headers_start, record.end, "array", layer=record.layer)
    places = walk_headers(section, place.headers_start, place.header_count)
    for number, (key, key_length, value, value_length) in enumerate(places):
        text = bytes(section.data[key : key + key_length]).decode("utf-8", "replace")
        end = value + max(value_length, 0)
        held = None if value_length < 0 else bytes(section.data[value:end])
        header = Node(f"[{number}]", "Header", base + key, base + end, "struct", layer=record.layer)
        header.children = [
            Node("Key", "string", base + key, base + key + key_length, value=text, layer=record.layer),
            Node("Value", "bytes?", base + value, base + end, value=held, layer=record.layer),
        ]
        headers.children.append(header)
    record.children.append(headers)


def _open_legacy(batch: LegacyBatch, node: Node, offset: int, topic: str | None, grow: Grow) -> None:
    section, places = batch.positions()
    base, layer = (0, DECOMPRESSED) if section.was_compressed else (offset + batch.position, "")
    typed = _Typed(False, topic, grow)
    for index, place in enumerate(places):
        end = place.value_start + max(place.value_length, 0)
        record = Node(f"[{index}]", "Message", base + place.key_start, base + end, "struct", layer=layer)
        record.children = [
            Node("Offset", "int64", record.start, record.start, "derived", value=place.offset, layer=layer)
        ]
        if batch.magic > 0:
            timestamp = Node(
                "Timestamp", "int64", record.start, record.start, "derived", value=place.timestamp, layer=layer
            )
            record.children.append(timestamp)
        _add_key_and_value(record, section.data, place, base)
        typed.open(record)
        node.children.append(record)


# --- records of internal topics ---------------------------------------------------------------------------------------


class _Typed:
    """Opens keys and values of records whose type is known from the topic or the control bit."""

    def __init__(self, is_control: bool, topic: str | None, grow: Grow) -> None:
        self.is_control = is_control
        self.topic = topic
        self.grow = grow

    def open(self, record: Node) -> None:
        key, value = record.child("Key"), record.child("Value")
        assert key is not None
        assert value is not None
        if self.is_control:
            self.open_control(record, key, value)
        elif self.topic in keyed.FAMILIES:
            if _is_coordinator(self.topic or ""):
                self.open_keyed(record, key, value)
            else:
                self.open_metadata(record, value)
            if self.topic == METADATA_TOPIC and isinstance(value.value, bytes):
                value.withhold()  # it may be a credential

    def open_control(self, record: Node, key: Node, value: Node) -> None:
        if not self.attach(key, "ControlRecordTypeSchema", 2):
            return
        number = key.child("Type")
        kind = _control_type(number.value if number is not None else None)
        record.note = kind.name
        name = _CONTROL_VALUES.get(kind)
        if name == "EndTxnMarker":
            self.attach(value, name, 2)
        elif name is not None and isinstance(value.value, bytes):
            version = int.from_bytes(value.value[:2], "big", signed=True)
            self.attach(value, name, 0, min(max(version, 0), MESSAGES[name].high))

    def open_keyed(self, record: Node, key: Node, value: Node) -> None:
        if not isinstance(key.value, bytes) or len(key.value) < 2:
            return
        record_type = int.from_bytes(key.value[:2], "big", signed=True)
        assert self.topic is not None
        key_name = keyed.record_types(self.topic, "coordinator-key").get(record_type)
        value_name = keyed.record_types(self.topic, "coordinator-value").get(record_type)
        if key_name is None or value_name is None:
            key.note = f"record type {record_type} is not known"
            return
        record.note = key_name.removesuffix("Key")
        self.attach(key, key_name, 2, MESSAGES[key_name].low)
        if value.value is None:
            record.note += ", tombstone"
        else:
            self.attach(value, value_name, 2)

    def open_metadata(self, record: Node, value: Node) -> None:
        framed = _read_frame(value.value)
        if framed is None:
            return
        record_type, version, at = framed
        assert self.topic is not None
        name = keyed.record_types(self.topic, "metadata").get(record_type)
        if name is None:
            value.note = f"record type {record_type} is not known"
            return
        record.note = name
        self.attach(value, name, at, version)

    def attach(self, node: Node, name: str, prefix: int, version: int | None = None) -> bool:
        """Open a key or value after a prefix, which holds its version if none is given."""
        data = node.value
        if not isinstance(data, bytes) or len(data) < prefix:
            return False
        if version is None:
            version = int.from_bytes(data[:prefix], "big", signed=True)
        if not MESSAGES[name].low <= version <= MESSAGES[name].high:
            node.note = f"{name} v{version} is not known"
            return False
        opened = self.grow(name, version, data[prefix:], node.start + prefix)
        if opened is None:
            node.note = f"is no {name} v{version}"
            return False
        for inner in opened.walk():
            inner.layer = node.layer
        node.children, node.value, node.holds = opened.children, NOTHING, f"{name} v{version}"
        return True


def _control_type(number: object) -> ControlRecordType:
    is_known = isinstance(number, int) and number in ControlRecordType._value2member_map_
    return ControlRecordType(number) if is_known else ControlRecordType.UNKNOWN  # type: ignore[arg-type]


def _read_frame(data: object) -> tuple[int, int, int] | None:
    """Type, version and start of a record of the metadata log."""
    if not isinstance(data, bytes):
        return None
    try:
        frame_version, at = read_varint(data, 0)
        record_type, at = read_varint(data, at)
        version, at = read_varint(data, at)
    except (IndexError, Refused):
        return None
    return (record_type, version, at) if frame_version == 1 else None


@cache
def _is_coordinator(topic: str) -> bool:
    return bool(keyed.record_types(topic, "coordinator-key"))


def _sniffed_topic(section: Section, batch: BatchView) -> str | None:
    """The only internal topic to which all of the first records can belong; None if there is none."""
    data = bytes(section.data)
    pairs = []
    for place in walk(section, batch.record_count):
        key = None if place.key_length < 0 else data[place.key_start : place.key_start + place.key_length]
        value = None if place.value_length < 0 else data[place.value_start : place.value_start + place.value_length]
        pairs.append((key, value))
        if len(pairs) == _SNIFFED_RECORDS_MAX:
            break
    if any(_is_secret(value) for _, value in pairs):
        return METADATA_TOPIC
    fitting = [topic for topic in keyed.FAMILIES if all(_fits(topic, key, value) for key, value in pairs)]
    return fitting[0] if len(fitting) == 1 else None


def _is_secret(value: bytes | None) -> bool:
    """Whether a value reads as a record of the metadata log that may hold a secret."""
    framed = _read_frame(value)
    if framed is None or value is None or not _fits(METADATA_TOPIC, None, value):
        return False
    return keyed.record_types(METADATA_TOPIC, "metadata")[framed[0]] in RULES


def _fits(topic: str, key: bytes | None, value: bytes | None) -> bool:
    try:
        if _is_coordinator(topic):
            return key is not None and keyed.decode_keyed(topic, key, value) is not None
        return key is None and value is not None and keyed.decode_metadata(topic, value) is not None
    except WireError:
        return False
