"""The `.snapshot` files: what is known of each producer, up to the offset in the name.

::

    version   int16    1
    crc       uint32   CRC-32C of everything that follows
    count     int32
    entries   46 bytes each, see `ENTRY`

A snapshot keeps only the newest batch of a producer. It is written in place; the checksum tells a torn one, which is
deleted, and an older one, or the log itself, serves instead.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final

from ottla.log.producer_entry import BatchMetadata, ProducerEntry
from ottla.wire.batch import crc32c

__all__ = ["SnapshotError", "format_snapshot", "parse_snapshot"]

_VERSION: Final = 1
_HEAD: Final = struct.Struct(">hIi")
_CRC_END: Final = 6
# id, epoch, last sequence, last offset, offset delta, timestamp, coordinator epoch, first offset of the transaction
ENTRY: Final = struct.Struct(">qhiqiqiq")
_NONE: Final = -1


class SnapshotError(ValueError):
    """A producer snapshot that cannot be used."""


def format_snapshot(entries: Iterable[ProducerEntry]) -> bytes:
    packed = [_pack(entry) for entry in sorted(entries, key=lambda entry: entry.producer_id)]
    body = struct.pack(">i", len(packed)) + b"".join(packed)
    return struct.pack(">hI", _VERSION, crc32c(body)) + body


def _pack(entry: ProducerEntry) -> bytes:
    last = entry.batches[-1] if entry.batches else BatchMetadata(_NONE, _NONE, 0, _NONE)
    return ENTRY.pack(
        entry.producer_id,
        entry.producer_epoch,
        last.last_sequence,
        last.last_offset,
        last.offset_delta,
        entry.last_timestamp,
        entry.coordinator_epoch,
        entry.txn_first_offset,
    )


def parse_snapshot(data: bytes) -> list[ProducerEntry]:
    if len(data) < _HEAD.size:
        raise SnapshotError(f"{len(data)} bytes are no snapshot")
    version, crc, count = _HEAD.unpack_from(data)
    if version != _VERSION:
        raise SnapshotError(f"version {version} is not known")
    computed = crc32c(memoryview(data)[_CRC_END:])
    if crc != computed:
        raise SnapshotError(f"checksum {crc:#010x} is stored, {computed:#010x} computed")
    if len(data) != _HEAD.size + count * ENTRY.size:
        raise SnapshotError(f"{count} producers are announced, {len(data) - _HEAD.size} bytes follow")
    return [_unpack(values) for values in ENTRY.iter_unpack(memoryview(data)[_HEAD.size :])]


def _unpack(values: tuple[int, ...]) -> ProducerEntry:
    producer_id, epoch, sequence, last_offset, offset_delta, timestamp, coordinator_epoch, first_offset = values
    entry = ProducerEntry(producer_id)
    entry.producer_epoch = epoch
    entry.coordinator_epoch = coordinator_epoch
    entry.last_timestamp = timestamp
    entry.txn_first_offset = first_offset if first_offset >= 0 else _NONE
    if last_offset >= 0:
        entry.batches.append(BatchMetadata(sequence, last_offset, offset_delta, timestamp))
    return entry
