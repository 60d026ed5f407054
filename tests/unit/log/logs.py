"""Partitions for tests: how to make one, fill it, and read back everything it holds."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ottla.log.append import NOT_VERIFIED, AppendInfo
from ottla.log.config import LogConfig
from ottla.log.disk import OsDisk
from ottla.log.files import LogStorage, OpenFiles
from ottla.log.names import TopicPartition
from ottla.log.partition import Partition, create_partition_directory
from ottla.log.producer_state import Verification
from ottla.log.read import FetchRegion, Isolation
from ottla.log.recovery import LoadRequest, RecoveryReport, load
from ottla.wire.batch import AnyBatch, BatchBuilder, build_end_txn_marker, split_batches, stamp

TOPIC = TopicPartition("orders", 0)
TOPIC_ID = bytes(range(16))
NOW = 1_700_000_000_000


def new_storage(*, open_files_max: int = 64) -> LogStorage:
    disk = OsDisk(durable=False)
    return LogStorage(disk, open_files=OpenFiles(disk, open_files_max))


def config(**settings: Any) -> LogConfig:
    return LogConfig(**settings)


def open_partition(
    path: Path,
    *,
    storage: LogStorage | None = None,
    is_clean: bool = True,
    log_start_offset: int = 0,
    recovery_point: int = 0,
    now_ms: int = NOW,
    **settings: Any,
) -> Partition:
    return load_partition(
        path,
        storage=storage,
        is_clean=is_clean,
        log_start_offset=log_start_offset,
        recovery_point=recovery_point,
        now_ms=now_ms,
        **settings,
    )[0]


def load_partition(
    path: Path,
    *,
    storage: LogStorage | None = None,
    is_clean: bool = True,
    log_start_offset: int = 0,
    recovery_point: int = 0,
    now_ms: int = NOW,
    **settings: Any,
) -> tuple[Partition, RecoveryReport]:
    storage = storage or new_storage()
    if not path.exists():
        create_partition_directory(storage.disk, str(path), TOPIC_ID)
    request = LoadRequest(str(path), TOPIC, config(**settings), is_clean, log_start_offset, recovery_point)
    return load(storage, request, now_ms)


def batch(
    *values: bytes,
    timestamp: int = NOW,
    timestamps: Sequence[int] | None = None,
    keys: Sequence[bytes | None] | None = None,
    **header: Any,
) -> bytearray:
    """A produced batch with these values; keys count up unless given."""
    builder = BatchBuilder()
    for index, value in enumerate(values or (b"value",)):
        key = f"key-{index}".encode() if keys is None else keys[index]
        builder.append(timestamp if timestamps is None else timestamps[index], key, value)
    return bytearray(builder.build(**header))


def sized_batch(size_bytes: int, *, timestamp: int = NOW, **header: Any) -> bytearray:
    """A batch of one record that has exactly this many bytes."""
    value_bytes = size_bytes
    while True:
        made = batch(os.urandom(max(value_bytes, 0)), keys=[None], timestamp=timestamp, **header)
        if len(made) == size_bytes:
            return made
        value_bytes -= len(made) - size_bytes
        assert value_bytes >= 0, f"no batch has {size_bytes} bytes"


def producer_batch(
    producer_id: int, first_sequence: int, *, epoch: int = 0, count: int = 1, transactional: bool = False, **rest: Any
) -> bytearray:
    return batch(
        *[b"v"] * count,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=first_sequence,
        is_transactional=transactional,
        **rest,
    )


def append_as_coordinator(
    log: Partition, data: bytearray, leader_epoch: int, now_ms: int, *, verification: Verification = NOT_VERIFIED
) -> AppendInfo:
    info = log.stage_as_coordinator(data, leader_epoch, now_ms, verification=verification)
    log.write()
    return info


def marker(
    producer_id: int, *, committed: bool, epoch: int = 0, coordinator_epoch: int = 0, timestamp: int = NOW
) -> bytearray:
    return bytearray(
        build_end_txn_marker(
            committed=committed,
            coordinator_epoch=coordinator_epoch,
            producer_id=producer_id,
            producer_epoch=epoch,
            timestamp=timestamp,
        )
    )


def region_bytes(region: FetchRegion) -> bytes:
    if region.file is None:
        return b""
    return region.file.handle().read(region.length, region.position)


def all_batches(partition: Partition, *, isolation: Isolation = Isolation.LOG_END) -> list[AnyBatch]:
    """Everything a reader gets, fetch by fetch, checked."""
    found: list[AnyBatch] = []
    offset = partition.log_start_offset
    while True:
        batches = list(split_batches(region_bytes(partition.read(offset, 5000, isolation, min_one_batch=True))))
        if not batches:
            return found
        for one in batches:
            one.check_crc()
        found += batches
        offset = batches[-1].next_offset


def offsets(partition: Partition) -> list[int]:
    """The offsets of all records."""
    return [record.offset for one in all_batches(partition) for record in one.records()]


def values(batches: Iterable[AnyBatch]) -> list[bytes | None]:
    return [None if record.value is None else bytes(record.value) for one in batches for record in one.records()]


def file_sizes(path: Path) -> dict[str, int]:
    return {entry.name: entry.stat().st_size for entry in sorted(path.iterdir())}


def contents(path: Path, suffix: str = "") -> dict[str, bytes]:
    return {entry.name: entry.read_bytes() for entry in sorted(path.iterdir()) if entry.name.endswith(suffix)}


def legacy_message(offset: int, value: bytes, *, magic: int = 1, timestamp: int = NOW) -> bytes:
    """A message of magic 0 or 1, as brokers before Kafka 0.11 wrote them."""
    body = bytes((magic, 0))
    if magic == 1:
        body += timestamp.to_bytes(8, "big", signed=True)
    body += b"\xff\xff\xff\xff" + len(value).to_bytes(4, "big") + value
    crc = zlib.crc32(body).to_bytes(4, "big")
    return offset.to_bytes(8, "big") + (len(body) + 4).to_bytes(4, "big") + crc + body


def transaction(log: Any, producer_id: int, sequence: int, *, leader_epoch: int = 0, **rest: Any) -> None:
    guard = log.producers.verification_guard(producer_id)
    data = producer_batch(producer_id, sequence, transactional=True, **rest)
    log.append_as_leader(data, leader_epoch, NOW, verification=Verification(guard))


def led(*pieces: tuple[int, int], count: int = 2) -> bytearray:
    """Batches as a leader stores them, from (base offset, epoch)."""
    data = bytearray()
    for base_offset, epoch in pieces:
        made = batch(*[b"v"] * count)
        stamp(made, base_offset=base_offset, partition_leader_epoch=epoch)
        data += made
    return data
