"""Batches of two writers side by side, without the times at which they were written."""

from typing import Any

from ottla.wire.batch import BatchView, build_batch, split_batches

SNAPSHOT_HEADER_KEY = b"\x00\x00\x00\x03"


def timeless(data: bytes) -> list[Any]:
    """Batches without their times: those of the snapshot's header, and of the batches with their checksums."""
    plain = []
    for batch in split_batches(data):
        assert isinstance(batch, BatchView)
        records = [(record.key, record.value) for record in batch.records()]
        if batch.is_control and records[0][0] == SNAPSHOT_HEADER_KEY:
            header = records[0][1]
            assert isinstance(header, bytes)
            records[0] = (records[0][0], header[:2] + header[10:])
        plain.append((batch.base_offset, batch.partition_leader_epoch, batch.attributes, batch.size_bytes, records))
    return plain


def restamped(data: bytes, timestamp: int) -> bytes:
    """The same batches with one time, byte for byte otherwise."""
    rebuilt = []
    for batch in split_batches(data):
        assert isinstance(batch, BatchView)
        records = [type(record)(record.offset, timestamp, record.key, record.value) for record in batch.records()]
        rebuilt.append(
            build_batch(
                records,
                base_offset=batch.base_offset,
                partition_leader_epoch=batch.partition_leader_epoch,
                is_control=batch.is_control,
            )
        )
    return b"".join(rebuilt)
