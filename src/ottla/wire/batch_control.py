"""Control records, which brokers and the quorum write between the data.

A batch with the control bit holds them. The key of such a record is its type (`int16 version, int16 type`), the value
depends on it:

======  ===============  ======================================================================
type    name             value
======  ===============  ======================================================================
0, 1    ABORT, COMMIT    `int16 version`, then EndTxnMarker: one record a batch, transactional
2       LEADER_CHANGE    LeaderChangeMessage, the first record of a leader's epoch
3, 4    SNAPSHOT_HEADER  SnapshotHeaderRecord and SnapshotFooterRecord, first and last of a snapshot
        SNAPSHOT_FOOTER
5       KRAFT_VERSION    KRaftVersionRecord
6       KRAFT_VOTERS     VotersRecord
======  ===============  ======================================================================

A transaction marker of a later version is read up to its unknown fields. An unknown type is no damage; its value is not
decoded. The codec decodes the values; it is loaded when the first one is read or written.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from enum import IntEnum
from typing import Any, Final

import msgspec

from ottla.wire.batch_build import BatchBuilder
from ottla.wire.batch_record import Record
from ottla.wire.batch_view import BatchView
from ottla.wire.fault import WireError

__all__ = [
    "ControlRecord",
    "ControlRecordType",
    "build_control_batch",
    "build_end_txn_marker",
    "read_control_batch",
    "read_control_record",
    "read_control_type",
]


class ControlRecordType(IntEnum):
    """The types of Kafka 4.4; UNKNOWN stands for all others."""

    UNKNOWN = -1
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


_KEY: Final = struct.Struct(">hh")
_INT16: Final = struct.Struct(">h")
_MARKER_BYTES: Final = 6
_MESSAGE_NAMES: Final = {
    ControlRecordType.ABORT: "EndTxnMarker",
    ControlRecordType.COMMIT: "EndTxnMarker",
    ControlRecordType.LEADER_CHANGE: "LeaderChangeMessage",
    ControlRecordType.SNAPSHOT_HEADER: "SnapshotHeaderRecord",
    ControlRecordType.SNAPSHOT_FOOTER: "SnapshotFooterRecord",
    ControlRecordType.KRAFT_VERSION: "KRaftVersionRecord",
    ControlRecordType.KRAFT_VOTERS: "VotersRecord",
}
_MARKERS: Final = (ControlRecordType.ABORT, ControlRecordType.COMMIT)


class ControlRecord(msgspec.Struct, frozen=True):
    """A decoded control record: `message` is the codec's message of the type's name, None if the type is unknown."""

    offset: int
    timestamp: int
    type: ControlRecordType
    type_id: int
    message: Any


def read_control_type(key: bytes | bytearray | memoryview | None) -> int:
    """The type's number in the key of a control record."""
    if key is None or len(key) < _KEY.size:
        size = "no" if key is None else str(len(key))
        raise WireError("ControlRecord.key", None, f"{size} bytes where the type takes {_KEY.size}")
    version, type_id = _KEY.unpack_from(key)
    if version < 0:
        raise WireError("ControlRecord.key.version", None, f"{version} is below zero")
    return int(type_id)


def read_control_record(record: Record) -> ControlRecord:
    """Decode one record of a control batch."""
    type_id = read_control_type(record.key)
    try:
        kind = ControlRecordType(type_id)
    except ValueError:
        kind = ControlRecordType.UNKNOWN
    message = None if kind is ControlRecordType.UNKNOWN else _read_message(kind, record.value)
    return ControlRecord(record.offset, record.timestamp, kind, type_id, message)


def read_control_batch(batch: BatchView) -> list[ControlRecord]:
    """Decode all records of a control batch."""
    if not batch.is_control:
        raise WireError("RecordBatch.attributes", batch.position, "the batch holds no control records")
    return [read_control_record(record) for record in batch.records()]


def _read_message(kind: ControlRecordType, value: bytes | bytearray | memoryview | None) -> object:
    from ottla import wire

    if value is None or len(value) < _INT16.size:
        raise WireError(f"ControlRecord.value.{kind.name}", None, "the value is missing or has no version")
    # All values begin with a version; that of a marker is before its message, the others are inside.
    (version,) = _INT16.unpack_from(value)
    if version < 0:
        raise WireError(f"ControlRecord.value.{kind.name}.version", None, f"{version} is below zero")
    name = _MESSAGE_NAMES[kind]
    if kind in _MARKERS:
        # A later version may add fields after the coordinator's epoch.
        return wire.decode(name, 0, bytes(value[_INT16.size : _MARKER_BYTES]))
    return wire.decode(name, min(version, max(wire.versions(name))), bytes(value))


def _encode_message(kind: ControlRecordType, message: object, version: int) -> bytes:
    from ottla import wire

    prefix = _INT16.pack(0) if kind in _MARKERS else b""
    return prefix + bytes(wire.encode(message, version))


def build_control_batch(
    messages: Iterable[tuple[ControlRecordType, Any]],
    *,
    base_offset: int,
    timestamp: int,
    partition_leader_epoch: int,
    version: int = 0,
) -> bytes:
    """A control batch of the quorum: one record for each type and message, all with one timestamp."""
    builder = BatchBuilder(base_offset)
    for kind, message in messages:
        builder.append(timestamp, _KEY.pack(0, kind), _encode_message(kind, message, version))
    return builder.build(partition_leader_epoch=partition_leader_epoch, is_control=True)


def build_end_txn_marker(
    *,
    committed: bool,
    coordinator_epoch: int,
    producer_id: int,
    producer_epoch: int,
    timestamp: int,
    base_offset: int = 0,
    partition_leader_epoch: int = -1,
) -> bytes:
    """The marker that ends a producer's transaction in one partition."""
    kind = ControlRecordType.COMMIT if committed else ControlRecordType.ABORT
    builder = BatchBuilder(base_offset)
    try:
        value = struct.pack(">hi", 0, coordinator_epoch)
    except struct.error as error:
        raise WireError("EndTxnMarker.coordinator_epoch", None, str(error)) from None
    builder.append(timestamp, _KEY.pack(0, kind), value)
    return builder.build(
        partition_leader_epoch=partition_leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=True,
        is_control=True,
    )
