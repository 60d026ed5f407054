"""One partition on a virtual disk, worked on and crashed from a seed, and judged after every restart.

The product's own code runs: `LogDirectory`, recovery, `Partition`, flushes, retention. A log remembers what it has
written and what it was promised, crashes in the middle of an operation, starts again from what the disk has left, and
checks the invariants:

* **kept**: nothing acknowledged is lost by a kill; nothing flushed by a power loss; with `fsync`, nothing acknowledged;
* **true**: every batch that is read back is one that was written, byte for byte, at its offset;
* **whole**: no offset twice and none missing between the log's start and its end;
* **indexed**: every index entry points at the batch that it names, and the time index rises;
* **producers**: each producer's last sequence is that of its last batch in the log;
* **set aside**: a whole batch that the disk has left is in the log after the restart, or in a file that keeps what
  recovery has cut, however often recovery itself is interrupted (`crash_recovery`).
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import NamedTuple

from ottla.log.config import LogConfig
from ottla.log.cuts import cut_offset
from ottla.log.directory import LogDirectory
from ottla.log.disk import read_all, replace_file
from ottla.log.errors import StorageError
from ottla.log.files import LogStorage
from ottla.log.names import TopicPartition
from ottla.log.partition import Partition, create_partition_directory
from ottla.log.read import Isolation
from ottla.log.recovery import load
from ottla.log.retention import apply_retention
from ottla.testing.disk import Crash, VirtualDisk
from ottla.wire.batch import BatchBuilder, BatchView, split_batches
from ottla.wire.properties import META_PROPERTIES_FILE, MetaProperties, write_meta_properties

ORDERS = TopicPartition("orders", 0)
ROOT = "/data"
START_MS = 1_700_000_000_000
CONFIG = LogConfig(segment_bytes=2_000, index_interval_bytes=100, segment_index_bytes=400)


class Violation(AssertionError):
    """An invariant does not hold; the message names it and the seed."""


class Promise(NamedTuple):
    """What a restart must not fall behind."""

    acknowledged_end: int = 0
    flushed_end: int = 0


class SimulatedLog:
    def __init__(
        self,
        seed: int,
        *,
        power_loss: bool,
        fsync: bool = False,
        capacity_bytes: int | None = None,
        crash_recovery: bool = False,
    ) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self.power_loss = power_loss
        self.fsync = fsync
        self.crash_recovery = crash_recovery
        self.disk = VirtualDisk(self.random, capacity_bytes=capacity_bytes)
        self.now_ms = START_MS
        self.written: dict[int, bytes] = {}
        """Base offset -> the batch as it was given to the log."""
        self.sequences: dict[int, int] = {}
        self.promise = Promise()
        self.crashes = 0
        self.recovery_crashes = 0
        self.kept_count = 0
        self._format()
        self.partition = self._start()

    def _format(self) -> None:
        self.disk.make_directory(ROOT)
        identity = write_meta_properties(MetaProperties("c", 1, bytes(range(16))), START_MS)
        replace_file(self.disk, f"{ROOT}/{META_PROPERTIES_FILE}", identity)
        create_partition_directory(self.disk, f"{ROOT}/{ORDERS}", bytes(range(16)))

    def _start(self) -> Partition:
        self.directory = LogDirectory.open(LogStorage(self.disk), ROOT)
        self.directory.begin()
        partition, self.report = load(self.directory.storage, self.directory.request_for(ORDERS, CONFIG), self.now_ms)
        partition.update_high_watermark(partition.log_end_offset)
        return partition

    # --- life ---------------------------------------------------------------------------------------------------------

    def run(self, crashes: int) -> None:
        """Work and crash so many times, checking after each restart."""
        for _ in range(crashes):
            self.disk.crash_at = self.disk.operations + self.random.randint(1, 80)
            try:
                while True:
                    self.step()
            except (Crash, StorageError):
                self.restart()

    def step(self) -> None:
        """Something that a broker does."""
        self.now_ms += self.random.randint(1, 1_000)
        self.disk.now_ms = self.now_ms
        action = self.random.random()
        if action < 0.70:
            self.produce()
        elif action < 0.82:
            self.flush()
        elif action < 0.90:
            self.directory.write_checkpoints([self.partition])
        elif action < 0.94:
            self.partition.roll(self.now_ms)
        elif action < 0.97:
            self.delete_records()
        else:
            self.restart_cleanly()

    def produce(self) -> None:
        """Stage some batches and write them at once; what the write has taken is acknowledged."""
        for _ in range(self.random.randint(1, 4)):
            producer_id = self.random.choice((-1, 1, 2))
            batch = self._batch(producer_id)
            info = self.partition.stage_as_leader(batch, 0, self.now_ms)
            self.written[info.base_offset] = bytes(batch)
        self.partition.write()
        self.partition.update_high_watermark(self.partition.log_end_offset)
        if self.fsync:
            self.flush()
        self.promise = self.promise._replace(acknowledged_end=self.partition.log_end_offset)

    def _batch(self, producer_id: int) -> bytearray:
        builder = BatchBuilder()
        count = self.random.randint(1, 3)
        for _ in range(count):
            builder.append(self.now_ms, b"k", self.random.randbytes(self.random.randint(1, 300)))
        if producer_id < 0:
            return bytearray(builder.build())
        sequence = self.sequences.get(producer_id, -1) + 1
        self.sequences[producer_id] = sequence + count - 1
        return bytearray(builder.build(producer_id=producer_id, producer_epoch=0, base_sequence=sequence))

    def flush(self) -> None:
        self.partition.flush(self.now_ms)
        self.promise = self.promise._replace(flushed_end=self.partition.recovery_point)

    def delete_records(self) -> None:
        low, high = self.partition.log_start_offset, self.partition.high_watermark
        self.partition.delete_records(self.random.randint(low, high))
        apply_retention(self.partition, self.now_ms)
        for path in self.directory.storage.due_deletions(self.now_ms + 100_000):
            if self.disk.exists(path):
                self.disk.unlink(path)

    def restart_cleanly(self) -> None:
        self.partition.close()
        self.directory.write_checkpoints([self.partition])
        self.directory.end(1)
        self.promise = Promise(self.partition.log_end_offset, self.partition.log_end_offset)
        self.partition = self._start()
        self.check()

    def restart(self) -> None:
        self.crashes += 1
        self.disk.crash_at = None
        self.disk = self.disk.crash(power_loss=self.power_loss)
        if self.disk.capacity_bytes is not None:
            self.disk.capacity_bytes += 50_000  # somebody made room
        logs = self._files(lambda name: name.endswith(".log"))
        left = [data for data in self.written.values() if any(data in log for log in logs)]
        self._recover()
        self._check_set_aside(left)
        self.check()

    def _recover(self) -> None:
        while True:
            if self.crash_recovery and self.random.random() < 0.7:
                self.disk.crash_at = self.disk.operations + self.random.randint(1, 25)
            try:
                self.partition = self._start()
                break
            except Crash:
                self.recovery_crashes += 1
                self.disk = self.disk.crash(power_loss=self.power_loss)
        self.disk.crash_at = None

    def _files(self, is_wanted: Callable[[str], bool]) -> list[bytes]:
        path = f"{ROOT}/{ORDERS}"
        names = [each.name for each in self.disk.list_directory(path)]
        return [read_all(self.disk, f"{path}/{name}") for name in names if is_wanted(name)]

    # --- judgement ----------------------------------------------------------------------------------------------------

    def check(self) -> None:
        end = self.partition.log_end_offset
        keeps_all = self.fsync or not self.power_loss
        promised = self.promise.acknowledged_end if keeps_all else self.promise.flushed_end
        self.hold("kept", end >= promised, f"{promised} was promised, the log ends at {end}")
        batches = self.read_all()
        self._check_batches(batches)
        self._check_indexes()
        self._check_producers(batches)
        # What was not promised and did not survive is as if it had never been.
        self.written = {base: data for base, data in self.written.items() if base < end}
        self.promise = Promise(end, self.partition.recovery_point)

    def _check_set_aside(self, left: list[bytes]) -> None:
        contents = self._files(lambda name: name.endswith(".log") or cut_offset(name) is not None)
        self.kept_count += len(self.report.kept)
        for data in left:
            (batch,) = split_batches(data)
            is_deleted = batch.last_offset < self.partition.log_start_offset
            is_there = any(data in content for content in contents)
            self.hold("set aside", is_there or is_deleted, f"the batch at {batch.base_offset} is gone")

    def hold(self, name: str, condition: bool, detail: str) -> None:
        if not condition:
            lines = "; ".join(self.report.lines())
            raise Violation(f"{name}: {detail} (seed {self.seed}, crash {self.crashes}, recovery: {lines})")

    def read_all(self) -> list[BatchView]:
        found: list[BatchView] = []
        offset = self.partition.log_start_offset
        while offset < self.partition.log_end_offset:
            region = self.partition.read(offset, 4_000, Isolation.LOG_END, min_one_batch=True)
            self.hold("whole", region.file is not None, f"nothing is found at offset {offset}")
            assert region.file is not None
            data = region.file.handle().read(region.length, region.position)
            batches = [batch for batch in split_batches(data) if isinstance(batch, BatchView)]
            self.hold("whole", bool(batches), f"no batch is found at offset {offset}")
            found += batches
            offset = batches[-1].next_offset
        return found

    def _check_batches(self, batches: list[BatchView]) -> None:
        expected = batches[0].base_offset if batches else 0
        for batch in batches:
            self.hold(
                "whole", batch.base_offset == expected, f"offset {batch.base_offset} comes where {expected} should"
            )
            self.hold(
                "true", batch.data == self.written.get(expected), f"the batch at {expected} is not what was written"
            )
            expected = batch.next_offset

    def _check_indexes(self) -> None:
        segments = self.partition.segments
        for index, segment in enumerate(segments):
            if index + 1 < len(segments) and segments[index + 1].base_offset <= self.partition.log_start_offset:
                continue  # below the log's start, where nobody reads, and due to be removed
            places = {}
            data = segment.file.handle().read(segment.size_bytes, 0)
            for batch in split_batches(data):
                places[batch.last_offset - segment.base_offset] = batch.position
            for relative, position in segment.offset_index.entries():
                self.hold("indexed", places.get(relative) == position, f"entry {relative} -> {position} is wrong")
            timestamps = [entry[0] for entry in segment.time_index.entries()]
            self.hold("indexed", timestamps == sorted(timestamps), "the time index falls")

    def _check_producers(self, batches: list[BatchView]) -> None:
        last = {batch.producer_id: batch.last_sequence for batch in batches if batch.has_producer_id}
        for producer_id, sequence in last.items():
            entry = self.partition.producers.entry(producer_id)
            known = None if entry is None else entry.last_sequence
            self.hold(
                "producers", known == sequence, f"producer {producer_id} is at {known}, its last batch at {sequence}"
            )
        for producer_id in self.sequences:
            entry = self.partition.producers.entry(producer_id)
            if entry is not None:  # else retention has dropped it, and any sequence is taken from it
                self.sequences[producer_id] = entry.last_sequence
