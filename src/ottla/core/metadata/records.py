"""Metadata records in the batches of the metadata log.

A record has no key; its value is a frame (three varints: 1, the record's type, its version) and the message. All
records of a batch share one timestamp and have no headers. Readers in Kafka stop at anything else, so what is written
here keeps to it and what is read here is held to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from ottla.core.metadata.context import Result
from ottla.core.metadata.fault import MetadataFault, Reject, UnsupportedMetadataError
from ottla.core.metadata.topic_names import METADATA_TOPIC
from ottla.wire import WireError
from ottla.wire.batch import BatchBuilder, BatchView, Record
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import Versioned, decode_metadata, encode_framed

BATCH_RECORDS_MAX: Final = 10_000
BATCH_BYTES_MAX: Final = 8 * 1024 * 1024
_RECORD_OVERHEAD_BYTES: Final = 32  # more than a record takes beside its value


def build_batches(result: Result, *, base_offset: int, epoch: int, timestamp_ms: int) -> list[bytes]:
    """The batches to append for a result: one, unless it is too large for that and may come in pieces.

    Reject with POLICY_VIOLATION if it is too large and must not, and with INVALID_REQUEST if no record can hold it.
    """
    batches = []
    for part in split(map(_framed, result.records), BATCH_RECORDS_MAX):
        batches.append(build_data_batch(part, base_offset, epoch, timestamp_ms))
        base_offset += len(part)
    if result.is_atomic and len(batches) > 1:
        raise Reject(ErrorCode.POLICY_VIOLATION, "The change is too large to be made in one step.")
    return batches


def _framed(record: Versioned) -> bytes:
    try:
        return encode_framed(*record)
    except WireError as error:  # a text of the request is too long for it, together with what comes with it
        raise Reject(ErrorCode.INVALID_REQUEST, str(error)) from None


def split(values: Iterable[bytes], records_max: int) -> Iterator[list[bytes]]:
    """Values in portions that fit into a batch each."""
    part: list[bytes] = []
    size = 0
    for value in values:
        bytes_needed = len(value) + _RECORD_OVERHEAD_BYTES
        if part and (len(part) >= records_max or size + bytes_needed > BATCH_BYTES_MAX):
            yield part
            part, size = [], 0
        part.append(value)
        size += bytes_needed
    if part:
        yield part


def read_batch(batch: BatchView) -> list[Versioned]:
    """The records of a data batch, in order; the first has the batch's base offset.

    WireError for bytes that are damaged, UnsupportedMetadataError for types and versions of later software,
    MetadataFault for what no metadata log may hold.
    """
    if batch.is_control:
        raise MetadataFault(f"offset {batch.base_offset}: a control batch belongs to the quorum")
    return [_read(record, batch.base_timestamp) for record in batch.records()]


def build_data_batch(values: list[bytes], base_offset: int, epoch: int, timestamp_ms: int) -> bytes:
    """One batch of framed records."""
    builder = BatchBuilder(base_offset)
    for value in values:
        builder.append(timestamp_ms, None, value)
    return builder.build(partition_leader_epoch=epoch)


def _read(record: Record, timestamp_ms: int) -> Versioned:
    if record.key is not None or record.headers or record.timestamp != timestamp_ms or not record.value:
        raise MetadataFault(f"offset {record.offset}: a record with a key, headers, its own timestamp or no value")
    try:
        return decode_metadata(METADATA_TOPIC, bytes(record.value))
    except WireError as error:
        raise UnsupportedMetadataError(f"offset {record.offset}: {error}") from error
