"""Any file of a log directory as lines: one dictionary each, ready to be printed as JSON.

A `.log` and a quorum snapshot give a line per batch and per record; records of internal topics are opened into their
types, control records too. An index gives a line per entry, a checkpoint a line per partition. What is damaged gives
a line with `error` and the position, and the dump goes on where it can. Nothing is changed, nothing is locked, and no
more than a chunk of a file is held in memory.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from struct import Struct
from typing import Any, Final, NamedTuple

from ottla import wire
from ottla.log.checkpoint import CheckpointError, parse_epochs, parse_offsets, parse_partition_metadata
from ottla.log.disk import Disk, File, read_all
from ottla.log.names import (
    CLEAN_SHUTDOWN_FILE,
    CLEANER_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LEADER_EPOCH_FILE,
    LOG_START_CHECKPOINT,
    PARTITION_METADATA_FILE,
    RECOVERY_POINT_CHECKPOINT,
    parse_directory_name,
    parse_file_name,
)
from ottla.log.producer_snapshot import SnapshotError, parse_snapshot
from ottla.log.scan import CHUNK_BYTES, find_sound_batches, read_batch
from ottla.wire import WireError, keyed
from ottla.wire.batch import AnyBatch, BatchView, Record, read_control_record
from ottla.wire.index import MESSAGES
from ottla.wire.properties import META_PROPERTIES_FILE, read_properties

__all__ = ["Line", "Options", "UnknownFileError", "dump"]

Line = dict[str, Any]

QUORUM_STATE_FILE: Final = "quorum-state"
SNAPSHOT_CHECKPOINT_SUFFIX: Final = ".checkpoint"
_METADATA_TOPICS: Final = frozenset({"__cluster_metadata", "__remote_log_metadata"})
_KEYED_TOPICS: Final = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
_OFFSET_ENTRY: Final = Struct(">ii")
_TIME_ENTRY: Final = Struct(">qi")
_TXN_ENTRY: Final = Struct(">hqqqq")
_ENTRY_BLOCK: Final = 4096


class UnknownFileError(ValueError):
    """A file of which nothing is known."""


class Options(NamedTuple):
    records: bool = True
    """Show records, not only batches."""
    topic: str | None = None
    """Whose records these are, where the directory's name does not tell."""


def dump(disk: Disk, path: str, options: Options = Options()) -> Iterator[Line]:  # noqa: B008  # a constant
    """The lines of a file, or of all files of a directory that are known."""
    parent, _, name = path.rstrip("/").rpartition("/")
    entries = {entry.name: entry for entry in disk.list_directory(parent or "." if name else "/")}
    if name in entries and not entries[name].is_directory:
        reader = _reader_of(name)
        if reader is None:
            raise UnknownFileError(f"{path} is not a file that Kafka or ottla keeps in a log directory")
        yield from reader(_Source(disk, path, name, options.topic or _topic_of(parent), options))
        return
    yield from _dump_directory(disk, path.rstrip("/"), options)


def _dump_directory(disk: Disk, path: str, options: Options) -> Iterator[Line]:
    for entry in sorted(disk.list_directory(path)):
        inner = f"{path}/{entry.name}"
        if entry.is_directory:
            if parse_directory_name(entry.name) is not None:
                yield from _dump_directory(disk, inner, options)
        elif _reader_of(entry.name) is not None:
            yield from dump(disk, inner, options)


class _Source(NamedTuple):
    disk: Disk
    path: str
    name: str
    topic: str | None
    options: Options

    def line(self, kind: str, **values: object) -> Line:
        return {"file": self.path, "kind": kind, **values}

    def error(self, reason: object, **values: object) -> Line:
        return self.line("error", error=str(reason), **values)


def _topic_of(parent: str) -> str | None:
    parsed = parse_directory_name(parent.rpartition("/")[2])
    return None if parsed is None else parsed[0].topic


def _reader_of(name: str) -> Callable[[_Source], Iterator[Line]] | None:
    if name in _TEXT_READERS:
        return _TEXT_READERS[name]
    if name.endswith(SNAPSHOT_CHECKPOINT_SUFFIX):
        return _dump_batches
    parsed = parse_file_name(name)
    return None if parsed is None else _SEGMENT_READERS.get(parsed.kind)


# --- batches and records ----------------------------------------------------------------------------------------------


def _dump_batches(source: _Source) -> Iterator[Line]:
    file = source.disk.open(source.path)
    try:
        steps = find_sound_batches(file, 0, file.size())
        while True:
            try:
                found = next(steps)
            except StopIteration as stop:
                if not stop.value:
                    yield source.error("too many invalid batches; the rest is not shown")
                return
            if found is None:
                continue
            position, batch = found
            if isinstance(batch, str):
                yield source.error(batch, position=position)
            else:
                yield from _batch_lines(source, file, position, batch)
    finally:
        file.close()


def _batch_lines(source: _Source, file: File, position: int, batch: AnyBatch) -> Iterator[Line]:
    try:
        values = _batch_values(batch)
    except WireError as error:  # of a codec that does not exist
        yield source.error(error, position=position)
        return
    yield source.line("batch", position=position, **values)
    if not source.options.records:
        return
    try:
        whole = read_batch(file, position, batch.size_bytes) if batch.size_bytes > CHUNK_BYTES else batch
        records = whole.records()
    except WireError as error:
        yield source.error(error, position=position)
        return
    for record in records:
        yield source.line("record", **_record_values(source.topic, batch, record))


def _batch_values(batch: AnyBatch) -> Line:
    values: Line = {"magic": batch.magic, "size_bytes": batch.size_bytes, "last_offset": batch.last_offset}
    if not isinstance(batch, BatchView):
        return values
    return {
        "base_offset": batch.base_offset,
        **values,
        "record_count": batch.record_count,
        "partition_leader_epoch": batch.partition_leader_epoch,
        "crc": batch.crc,
        "compression": batch.compression.name.lower(),
        "timestamp_type": batch.timestamp_type.name,
        "base_timestamp": batch.base_timestamp,
        "max_timestamp": batch.max_timestamp,
        "producer_id": batch.producer_id,
        "producer_epoch": batch.producer_epoch,
        "base_sequence": batch.base_sequence,
        "is_transactional": batch.is_transactional,
        "is_control": batch.is_control,
        "delete_horizon_ms": batch.delete_horizon_ms,
    }


def _record_values(topic: str | None, batch: AnyBatch, record: Record) -> Line:
    values: Line = {"offset": record.offset, "timestamp": record.timestamp}
    try:
        if batch.is_control:
            return values | _control_values(record)
        if topic in _KEYED_TOPICS and record.key is not None:
            return values | _keyed_values(topic or "", record)
        if topic in _METADATA_TOPICS and record.value is not None:
            found = keyed.decode_metadata(topic or "", bytes(record.value))
            return values | {"value": _typed(found.message, found.version)}
    except WireError as error:
        values["error"] = str(error)
    return values | _plain_values(record)


def _control_values(record: Record) -> Line:
    control = read_control_record(record)
    message = control.message
    version = 0 if message is None else MESSAGES[type(message).__name__].low
    return {
        "control_type": control.type.name,
        "value": None if message is None else _typed(message, version),
    }


def _keyed_values(topic: str, record: Record) -> Line:
    value = None if record.value is None else bytes(record.value)
    found = keyed.decode_keyed(topic, bytes(record.key or b""), value)
    return {
        "key": _typed(found.key, found.key_version),
        "value": None if found.value is None else _typed(found.value, found.value_version),
    }


def _typed(message: object, version: int) -> Line:
    return {"type": type(message).__name__, "version": version, "data": wire.to_json(message, version)}


def _plain_values(record: Record) -> Line:
    headers = [{"key": key, **_bytes_value("value", value)} for key, value in record.headers]
    return {**_bytes_value("key", record.key), **_bytes_value("value", record.value), "headers": headers}


def _bytes_value(name: str, data: bytes | bytearray | memoryview | None) -> Line:
    """Text as text, other bytes as base64 under a name that says so."""
    if data is None:
        return {name: None}
    raw = bytes(data)
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        text = "\x00"
    if text.isprintable() or all(part.isprintable() for part in text.split()):
        return {name: text}
    return {f"{name}_base64": base64.b64encode(raw).decode()}


# --- indexes and snapshots --------------------------------------------------------------------------------------------


def _dump_entries(source: _Source, entry: Struct, values: Callable[[tuple[int, ...], int], Line]) -> Iterator[Line]:
    """Entries of an index; what was never written of a file that was made in full size is left out."""
    parsed = parse_file_name(source.name)
    base_offset = parsed.offset if parsed else 0
    file = source.disk.open(source.path)
    try:
        size = file.size()
        for start in range(0, size - size % entry.size, entry.size * _ENTRY_BLOCK):
            data = file.read(min(entry.size * _ENTRY_BLOCK, size - size % entry.size - start), start)
            for number, fields in enumerate(entry.iter_unpack(data), start // entry.size):
                if number and not any(fields):
                    yield source.line("unused", from_entry=number, size_bytes=size - number * entry.size)
                    return
                yield source.line("entry", entry=number, **values(fields, base_offset))
        if size % entry.size:
            yield source.error(
                f"{size % entry.size} bytes at the end are not an entry", position=size - size % entry.size
            )
    finally:
        file.close()


def _dump_offset_index(source: _Source) -> Iterator[Line]:
    return _dump_entries(source, _OFFSET_ENTRY, lambda it, base: {"offset": base + it[0], "position": it[1]})


def _dump_time_index(source: _Source) -> Iterator[Line]:
    return _dump_entries(source, _TIME_ENTRY, lambda it, base: {"timestamp": it[0], "offset": base + it[1]})


def _dump_txn_index(source: _Source) -> Iterator[Line]:
    names = ("version", "producer_id", "first_offset", "last_offset", "last_stable_offset")
    return _dump_entries(source, _TXN_ENTRY, lambda it, _base: dict(zip(names, it, strict=True)))


def _dump_producers(source: _Source) -> Iterator[Line]:
    try:
        entries = parse_snapshot(read_all(source.disk, source.path))
    except SnapshotError as error:
        yield source.error(error)
        return
    if not entries:
        yield source.line("producers", producer_count=0)
    for entry in entries:
        yield source.line(
            "producer",
            producer_id=entry.producer_id,
            producer_epoch=entry.producer_epoch,
            last_sequence=entry.last_sequence,
            last_offset=entry.last_data_offset,
            last_timestamp=entry.last_timestamp,
            coordinator_epoch=entry.coordinator_epoch,
            current_txn_first_offset=entry.txn_first_offset,
        )


# --- small files ------------------------------------------------------------------------------------------------------


def _dump_offsets(source: _Source) -> Iterator[Line]:
    try:
        offsets = parse_offsets(read_all(source.disk, source.path))
    except CheckpointError as error:
        yield source.error(error)
        return
    for partition, offset in offsets.items():
        yield source.line("checkpoint", topic=partition.topic, partition=partition.partition, offset=offset)


def _dump_epochs(source: _Source) -> Iterator[Line]:
    try:
        entries = parse_epochs(read_all(source.disk, source.path))
    except CheckpointError as error:
        yield source.error(error)
        return
    for epoch, start_offset in entries:
        yield source.line("epoch", leader_epoch=epoch, start_offset=start_offset)


def _dump_partition_metadata(source: _Source) -> Iterator[Line]:
    try:
        topic_id = parse_partition_metadata(read_all(source.disk, source.path))
    except CheckpointError as error:
        yield source.error(error)
        return
    yield source.line("partition", topic_id=wire.uuid_text(topic_id))


def _dump_properties(source: _Source) -> Iterator[Line]:
    text = read_all(source.disk, source.path).decode("utf-8", "replace")
    yield source.line("properties", properties=read_properties(text))


def _dump_json(source: _Source) -> Iterator[Line]:
    try:
        yield source.line("json", content=json.loads(read_all(source.disk, source.path)))
    except ValueError as error:
        yield source.error(f"not JSON: {error}")


_TEXT_READERS: Final[dict[str, Callable[[_Source], Iterator[Line]]]] = {
    RECOVERY_POINT_CHECKPOINT: _dump_offsets,
    LOG_START_CHECKPOINT: _dump_offsets,
    HIGH_WATERMARK_CHECKPOINT: _dump_offsets,
    CLEANER_CHECKPOINT: _dump_offsets,
    LEADER_EPOCH_FILE: _dump_epochs,
    PARTITION_METADATA_FILE: _dump_partition_metadata,
    META_PROPERTIES_FILE: _dump_properties,
    QUORUM_STATE_FILE: _dump_json,
    CLEAN_SHUTDOWN_FILE: _dump_json,
}
_SEGMENT_READERS: Final[dict[str, Callable[[_Source], Iterator[Line]]]] = {
    ".log": _dump_batches,
    ".index": _dump_offset_index,
    ".timeindex": _dump_time_index,
    ".txnindex": _dump_txn_index,
    ".snapshot": _dump_producers,
}
