"""The golden batches, and our batches in the same form."""

import base64
import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

from ottla import wire
from ottla.wire.batch import (
    AnyBatch,
    BatchView,
    ControlRecordType,
    LegacyBatch,
    Record,
    TimestampType,
    read_control_record,
    split_batches,
)

VECTORS = Path(__file__).parents[2] / "golden" / "wire" / "batches.jsonl.gz"
TIMESTAMP_TYPES = {
    TimestampType.NO_TIMESTAMP_TYPE: "NoTimestampType",
    TimestampType.CREATE_TIME: "CreateTime",
    TimestampType.LOG_APPEND_TIME: "LogAppendTime",
}


def filtered() -> list[Any]:
    """Batches, and what Java's log cleaner left of them."""
    with gzip.open(VECTORS.with_name("filtered_batches.jsonl.gz"), "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


@cache
def vectors() -> tuple[dict[str, Any], ...]:
    with gzip.open(VECTORS, "rt", encoding="utf-8") as lines:
        return tuple(json.loads(line) for line in lines)


def good() -> list[Any]:
    return [vector for vector in vectors() if vector["group"] != "invalid"]


def damaged(*, refused: bool) -> list[Any]:
    return [v for v in vectors() if v["group"] == "invalid" and (v["error"] is not None) is refused]


def raw(vector: dict[str, Any]) -> bytes:
    return bytes.fromhex(vector["hex"])


def read_all(data: bytes, *, copy: bool = True) -> list[dict[str, Any]]:
    """Everything that a reader can do with a buffer: split, check, iterate, open control records."""
    found = []
    for batch in split_batches(data):
        batch.check_crc()
        found.append(as_golden(batch, copy=copy))
    return found


def as_golden(batch: AnyBatch, *, copy: bool = True) -> dict[str, Any]:
    return _v2(batch, copy=copy) if isinstance(batch, BatchView) else _legacy(batch, copy=copy)


def _v2(batch: BatchView, *, copy: bool) -> dict[str, Any]:
    return {
        "position": batch.position,
        "sizeInBytes": batch.size_bytes,
        "baseOffset": batch.base_offset,
        "batchLength": batch.batch_length,
        "partitionLeaderEpoch": batch.partition_leader_epoch,
        "magic": batch.magic,
        "crc": batch.crc,
        "attributes": batch.attributes,
        "lastOffsetDelta": batch.last_offset_delta,
        "baseTimestamp": batch.base_timestamp,
        "maxTimestamp": batch.max_timestamp,
        "producerId": batch.producer_id,
        "producerEpoch": batch.producer_epoch,
        "baseSequence": batch.base_sequence,
        "recordCount": batch.record_count,
        "lastOffset": batch.last_offset,
        "lastSequence": batch.last_sequence,
        "compression": batch.compression.name.lower(),
        "timestampType": TIMESTAMP_TYPES[batch.timestamp_type],
        "isTransactional": batch.is_transactional,
        "isControlBatch": batch.is_control,
        "deleteHorizonMs": batch.delete_horizon_ms,
        "records": [_record(batch, record) for record in batch.records(copy=copy)],
    }


def _record(batch: BatchView, record: Record) -> dict[str, Any]:
    found = {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "sequence": batch.sequence_of(record.offset),
        "key": _base64(record.key),
        "value": _base64(record.value),
        "headers": [{"key": key, "value": _base64(value)} for key, value in record.headers],
    }
    if batch.is_control:
        found["control"] = _control(record)
    return found


def _control(record: Record) -> dict[str, Any]:
    control = read_control_record(record)
    found: dict[str, Any] = {"typeId": control.type_id, "type": control.type.name}
    if control.type is not ControlRecordType.UNKNOWN:
        found["message"] = wire.to_json(control.message, 0)
    return found


def _legacy(batch: LegacyBatch, *, copy: bool) -> dict[str, Any]:
    found = {
        "position": batch.position,
        "sizeInBytes": batch.size_bytes,
        "offset": batch.offset,
        "messageSize": batch.message_size,
        "crc": batch.crc,
        "magic": batch.magic,
        "attributes": batch.attributes,
        "compression": batch.compression.name.lower(),
        "timestampType": TIMESTAMP_TYPES[batch.timestamp_type],
        "baseOffset": batch.base_offset,
        "lastOffset": batch.last_offset,
        "maxTimestamp": batch.max_timestamp,
        "records": [
            {
                "offset": record.offset,
                "timestamp": record.timestamp,
                "key": _base64(record.key),
                "value": _base64(record.value),
            }
            for record in batch.records(copy=copy)
        ],
    }
    if batch.magic == 1:
        found["timestamp"] = batch.timestamp
    return found


def _base64(data: bytes | bytearray | memoryview | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()
