"""The records of a dead-letter queue: their headers, and the key and value of the original record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ottla.broker.share.edge import Source
from ottla.core.share.partition.events import DeadLetters
from ottla.log.errors import LogError
from ottla.log.read import Isolation
from ottla.wire.batch import HEADER_BYTES, BatchBuilder, Record, split_batches
from ottla.wire.dead_letter import HEADER_PREFIX
from ottla.wire.fault import WireError

__all__ = ["letters_for"]

COPY_MAX_BYTES: Final = 1 << 20
"""Bytes of the source log that are read for one range of letters."""
_RECORD_OVERHEAD_BYTES: Final = 64

Header = tuple[str, bytes]


def letters_for(
    group_id: str, source: Source, letters: DeadLetters, *, now_ms: int, batch_max_bytes: int, copies: bool
) -> list[bytes]:
    """Batches with a dead letter for each record of a range. None is larger than the queue accepts."""
    originals = dict(_originals(source, letters)) if copies else {}
    built: list[bytes] = []
    batch = BatchBuilder()
    for offset in range(letters.first_offset, letters.last_offset + 1):
        headers = _headers(group_id, source, letters, offset)
        key, value = _copied(originals.get(offset), batch_max_bytes - HEADER_BYTES - _size(headers))
        size = _size(headers) + len(key or b"") + len(value or b"")
        if len(batch) and batch.size_bytes + size > batch_max_bytes:
            built.append(batch.build())
            batch = BatchBuilder()
        batch.append(now_ms, key, value, headers)
    return [*built, batch.build()]


def _headers(group_id: str, source: Source, letters: DeadLetters, offset: int) -> list[Header]:
    topic, partition = source.topic_partition
    told = {
        "topic": topic,
        "partition": partition,
        "offset": offset,
        "group": group_id,
        "delivery.count": letters.delivery_count,
        "message": letters.cause.value,
    }
    return [(HEADER_PREFIX + name, str(value).encode()) for name, value in told.items()]


def _size(headers: list[Header]) -> int:
    return _RECORD_OVERHEAD_BYTES + sum(len(name) + len(value) + 4 for name, value in headers)


def _copied(original: Record | None, room_bytes: int) -> tuple[bytes | None, bytes | None]:
    """Key and value of a record, if they can be read and fit."""
    if original is None or len(original.key or b"") + len(original.value or b"") > room_bytes:
        return None, None
    key, value = original.key, original.value
    return None if key is None else bytes(key), None if value is None else bytes(value)


def _originals(source: Source, letters: DeadLetters) -> Iterator[tuple[int, Record]]:
    """The records of a range that can still be read. A record that is gone becomes a letter without content."""
    offset, left_bytes = letters.first_offset, COPY_MAX_BYTES
    try:
        while offset <= letters.last_offset and left_bytes > 0:
            region = source.log.read(offset, left_bytes, Isolation.HIGH_WATERMARK, min_one_batch=True)
            if region.file is None or not region.length:
                return
            left_bytes -= region.length
            for batch in split_batches(region.file.handle().read(region.length, region.position)):
                if batch.base_offset > letters.last_offset:
                    return
                offset = batch.last_offset + 1
                yield from ((record.offset, record) for record in batch.records() if not batch.is_control)
    except (LogError, WireError, OSError):
        return
