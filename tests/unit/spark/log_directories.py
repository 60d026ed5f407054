"""Log directories for tests, written by our own log, and their rows as the tasks of `ottla-log` read them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ottla.log.checkpoint import format_offsets
from ottla.log.names import CLEAN_SHUTDOWN_FILE, HIGH_WATERMARK_CHECKPOINT, LOG_START_CHECKPOINT, TopicPartition
from ottla.log.partition import Partition
from ottla.log.producer_state import Verification
from ottla.spark.log.directory import PartitionFiles, find_partitions
from ottla.spark.log.plan import LogTask, PlanRules, plan_partition
from ottla.spark.log.read import ReadRules, TaskReport, read_columns
from ottla.spark.log.view import PartitionView
from ottla.spark.rows import RowMaker
from ottla.wire.properties import MetaProperties, write_meta_properties
from tests.unit.log.logs import NOW, append_as_coordinator, marker, open_partition, producer_batch, sized_batch

CLUSTER = "b3R0bGEtdW5pdC10ZXN0cw"
ORDERS = TopicPartition("orders", 0)


def new_directory(path: Path, *, cluster_id: str = CLUSTER) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    (path / "meta.properties").write_bytes(write_meta_properties(MetaProperties(cluster_id, 1), NOW))
    return path


def filled(path: Path, *, batches: int = 20, close: bool = True, **settings: Any) -> Partition:
    """Batches of 1,000 bytes with one record each and rising times, in segments of three."""
    directory = new_directory(path)
    log = open_partition(directory / "orders-0", **{"segment_bytes": 3000, "index_interval_bytes": 900} | settings)
    append(log, batches)
    if close:
        close_cleanly(path, log)
    return log


def append(log: Partition, batches: int) -> None:
    for _ in range(batches):
        log.append_as_leader(sized_batch(1000, timestamp=NOW + log.log_end_offset * 10), 0, NOW)


def in_transaction(log: Partition, producer_id: int, sequence: int, *, count: int = 1) -> None:
    records = producer_batch(producer_id, sequence, transactional=True, count=count)
    log.append_as_leader(records, 0, NOW, verification=Verification(0))


def end_transaction(log: Partition, producer_id: int, *, committed: bool) -> None:
    append_as_coordinator(log, marker(producer_id, committed=committed), 0, NOW)


def close_cleanly(path: Path, log: Partition) -> None:
    log.high_watermark = log.log_end_offset
    log.close()
    checkpoint(path, HIGH_WATERMARK_CHECKPOINT, log.log_end_offset)
    (path / CLEAN_SHUTDOWN_FILE).write_text('{"version":0,"brokerEpoch":5}')


def checkpoint(path: Path, name: str, offset: int) -> None:
    (path / name).write_bytes(format_offsets({ORDERS: offset}))


def set_log_start(path: Path, offset: int) -> None:
    checkpoint(path, LOG_START_CHECKPOINT, offset)


def only(path: Path) -> PartitionFiles:
    (found,) = find_partitions([str(path)], lambda _: True)
    return found


def view_of(path: Path, **rest: Any) -> PartitionView:
    return PartitionView(only(path), **rest)


def tasks(view: PartitionView, from_offset: int | None = None, until: int | None = None, **rules: Any) -> list[LogTask]:
    first = view.start_offset if from_offset is None else from_offset
    return plan_partition(view, first, view.end_offset if until is None else until, PlanRules(**rules))


def read_offsets(found: Iterable[LogTask], report: TaskReport | None = None, **rules: Any) -> list[int]:
    """The offsets of all rows of the tasks, in their order."""
    read: list[int] = []
    for task in found:
        maker = RowMaker(task.topic, task.partition)
        for columns, first, until in read_columns(task, ReadRules(**rules), report or TaskReport()):
            for rows in maker.batches(columns, first, until):
                read += rows.column("offset").to_pylist()
    return read


def segment_file(path: Path, base_offset: int, suffix: str = ".log") -> Path:
    return path / "orders-0" / f"{base_offset:020d}{suffix}"


def flip(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 0xFF
    path.write_bytes(data)
