"""A partition under any sequence of appends, rolls, truncations, deletions, stops and crashes, beside a plain list."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ottla.log.config import LogConfig
from ottla.log.disk import OsDisk
from ottla.log.errors import OffsetOutOfRangeError
from ottla.log.files import LogStorage, OpenFiles
from ottla.log.names import TopicPartition
from ottla.log.partition import Partition, create_partition_directory
from ottla.log.read import MAX_TIMESTAMP, Isolation
from ottla.log.recovery import LoadRequest, load
from ottla.wire.batch import BatchBuilder, split_batches, stamp

NOW = 1_700_000_000_000
TOPIC = TopicPartition("orders", 0)

sizes = st.lists(st.integers(0, 110), min_size=1, max_size=4)
times = st.integers(-50, 50)


class Stored(NamedTuple):
    """A batch of the model."""

    base_offset: int
    last_offset: int
    timestamps: tuple[int, ...]
    epoch: int
    data: bytes


def built(value_sizes: list[int], time: int) -> tuple[bytearray, tuple[int, ...]]:
    builder = BatchBuilder()
    stamps = tuple(NOW + time + size % 7 for size in value_sizes)
    for size, timestamp in zip(value_sizes, stamps, strict=True):
        builder.append(timestamp, b"key", bytes(size))
    return bytearray(builder.build()), stamps


class PartitionMachine(RuleBasedStateMachine):
    @initialize(
        segment_bytes=st.sampled_from([600, 1500, 10_000]),
        interval=st.sampled_from([0, 300, 4096]),
        index_bytes=st.sampled_from([60, 10 << 20]),
        open_files=st.sampled_from([1, 3, 50]),
        policy=st.sampled_from(["delete", "compact"]),
    )
    def open_new(self, segment_bytes: int, interval: int, index_bytes: int, open_files: int, policy: str) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="ottla-log-")) / "orders-0"
        self.config = LogConfig(
            segment_bytes=segment_bytes,
            index_interval_bytes=interval,
            segment_index_bytes=index_bytes,
            segment_ms=60,
            cleanup_policy=frozenset((policy,)),
            message_timestamp_after_max_ms=10**6,
        )
        self.open_files = open_files
        create_partition_directory(OsDisk(durable=False), str(self.path), b"0123456789abcdef")
        self.batches: list[Stored] = []
        self.start = 0
        self.end = 0
        self.epoch = 0
        self.load(is_clean=True, recovery_point=0)

    def load(self, *, is_clean: bool, recovery_point: int) -> None:
        disk = OsDisk(durable=False)
        storage = LogStorage(disk, open_files=OpenFiles(disk, self.open_files))
        request = LoadRequest(str(self.path), TOPIC, self.config, is_clean, self.start, recovery_point)
        self.log, self.report = load(storage, request, NOW)
        self.log.update_high_watermark(self.log.log_end_offset)

    def teardown(self) -> None:
        if hasattr(self, "path"):
            self.log.storage.open_files.close_all()
            shutil.rmtree(self.path.parent)

    # --- what can be done ---------------------------------------------------------------------------------------------

    @rule(value_sizes=sizes, time=times)
    def append(self, value_sizes: list[int], time: int) -> None:
        data, stamps = built(value_sizes, time)
        info = self.log.append_as_leader(data, self.epoch, NOW)
        assert info.base_offset == self.end
        self.remember(bytes(data), stamps)
        self.log.update_high_watermark(self.log.log_end_offset)

    @rule(many=st.lists(st.tuples(sizes, times), min_size=2, max_size=6))
    def append_together(self, many: list[tuple[list[int], int]]) -> None:
        made = [built(*one) for one in many]
        for data, stamps in made:
            self.log.stage_as_leader(data, self.epoch, NOW)
            self.remember(bytes(data), stamps)
        self.log.write()
        self.log.update_high_watermark(self.log.log_end_offset)

    @rule(value_sizes=sizes, time=times, hole=st.integers(0, 5))
    def append_as_follower(self, value_sizes: list[int], time: int, hole: int) -> None:
        data, stamps = built(value_sizes, time)
        if self.config.is_compacted:  # elsewhere a gap would mean a loss
            self.end += hole
        stamp(data, base_offset=self.end, partition_leader_epoch=self.epoch)
        self.log.append_as_follower(bytes(data), self.epoch, NOW)
        self.remember(bytes(data), stamps)
        self.log.update_high_watermark(self.log.log_end_offset)

    def remember(self, data: bytes, stamps: tuple[int, ...]) -> None:
        last_offset = self.end + len(stamps) - 1
        self.batches.append(Stored(self.end, last_offset, stamps, self.epoch, data))
        self.end = last_offset + 1

    @rule()
    def lead_anew(self) -> None:
        self.epoch += 1
        self.log.become_leader(self.epoch)

    @rule()
    def roll(self) -> None:
        self.log.roll(NOW)

    @rule()
    def flush(self) -> None:
        self.log.flush()
        assert self.log.recovery_point == self.end

    @rule(share=st.floats(0, 1.1))
    def truncate(self, share: float) -> None:
        target = round(self.end * share)
        is_below = target < self.log.segments[0].base_offset
        self.log.truncate_to(target, NOW)
        self.epoch += 1
        if is_below:
            self.batches, self.start, self.end = [], target, target
            return
        if target < self.end:
            gone = [one for one in self.batches if one.last_offset >= target]
            self.batches = [one for one in self.batches if one.last_offset < target]
            self.end = min([target, *(one.base_offset for one in gone)])
            self.start = min(self.start, self.end)

    @rule(share=st.floats(0, 1.2))
    def delete_records(self, share: float) -> None:
        offset = round(self.end * share)
        if offset > self.end:
            with pytest.raises(OffsetOutOfRangeError):
                self.log.delete_records(offset)
        else:
            self.start = max(self.start, offset)
            assert self.log.delete_records(offset) == self.start

    @rule(count=st.integers(1, 3))
    def delete_segments(self, count: int) -> None:
        self.log.delete_oldest_segments(count, NOW)
        self.start = max(self.start, self.log.segments[0].base_offset)

    @rule()
    def stop_and_start(self) -> None:
        self.log.close()
        self.load(is_clean=True, recovery_point=self.log.recovery_point)
        assert self.report.cuts == []
        self.forget_holes()

    @rule(knows_recovery_point=st.booleans())
    def crash_and_start(self, knows_recovery_point: bool) -> None:
        self.log.storage.open_files.close_all()
        point = self.log.recovery_point if knows_recovery_point else 0
        self.load(is_clean=False, recovery_point=point)
        assert self.report.cuts == []
        self.forget_holes()

    @precondition(
        lambda self: (
            self.batches and self.batches[-1].base_offset >= max(self.start, self.log.active_segment.base_offset)
        )
    )
    @rule(share=st.floats(0.01, 0.99))
    def crash_in_the_middle_of_a_write(self, share: float) -> None:
        self.log.storage.open_files.close_all()
        torn = self.batches.pop()
        file = Path(self.log.active_segment.file.path)
        file.write_bytes(file.read_bytes()[: -max(1, round(len(torn.data) * share))])
        self.end = torn.base_offset
        self.load(is_clean=False, recovery_point=min(self.log.recovery_point, torn.base_offset))
        assert self.log.log_end_offset <= torn.base_offset
        self.forget_holes()

    def forget_holes(self) -> None:
        """After a start the log ends behind its last batch, or where an empty last segment begins, or at its start."""
        last = self.batches[-1].last_offset + 1 if self.batches else 0
        end = max(last, self.log.active_segment.base_offset)
        if end < self.start:
            self.batches, end = [], self.start
        assert self.log.log_end_offset == end
        self.end = end
        self.start = max(self.start, self.log.segments[0].base_offset)

    # --- what must hold -----------------------------------------------------------------------------------------------

    def visible(self) -> list[Stored]:
        return [one for one in self.batches if one.last_offset >= self.start]

    @invariant()
    def offsets_agree(self) -> None:
        if hasattr(self, "path"):
            assert (self.log.log_start_offset, self.log.log_end_offset) == (self.start, self.end)
            assert self.start <= self.log.high_watermark <= self.end
            assert self.log.recovery_point <= self.end

    @invariant()
    def readers_see_the_model(self) -> None:
        if not hasattr(self, "path"):
            return
        offset, seen = self.start, []
        while offset < self.end:
            region = self.log.read(offset, 700, Isolation.LOG_END, min_one_batch=True)
            if region.file is None:
                break
            batches = list(split_batches(region.file.handle().read(region.length, region.position)))
            seen += [bytes(one.data) for one in batches]
            offset = batches[-1].next_offset
        assert seen == [one.data for one in self.visible()]

    @invariant()
    def indexes_lead_to_batches(self) -> None:
        if not hasattr(self, "path"):
            return
        for segment in self.log.segments:
            starts = dict(segment_batches(self.log, segment.base_offset))
            for relative, position in segment.offset_index.entries():
                assert starts[position] == segment.base_offset + relative
            entries = segment.time_index.entries()
            assert entries == sorted(set(entries))
            assert [offset for _, offset in entries] == sorted({offset for _, offset in entries})

    @invariant()
    def times_are_found(self) -> None:
        if not hasattr(self, "path"):
            return
        records = [
            (one.base_offset + index, timestamp)
            for one in self.visible()
            for index, timestamp in enumerate(one.timestamps)
            if one.base_offset + index >= self.start
        ]
        for target in (NOW - 20, NOW, NOW + 30):
            expected = next(((offset, time) for offset, time in records if time >= target), None)
            found = self.log.offset_for_timestamp(target)
            assert (None if found is None else (found.offset, found.timestamp)) == expected
        newest = self.log.offset_for_timestamp(MAX_TIMESTAMP)
        everything = [time for segment in self.log.segments for time in segment_times(self.log, segment.base_offset)]
        assert (newest.timestamp if newest else None) == (max(everything) if everything else None)

    @invariant()
    def epochs_agree(self) -> None:
        if not hasattr(self, "path"):
            return
        for one in self.visible():
            assert self.log.epochs.epoch_for(max(one.base_offset, self.start)) == one.epoch


def segment_batches(log: Partition, base_offset: int) -> list[tuple[int, int]]:
    """Position and last offset of each batch of a segment, from the file itself."""
    segment = next(one for one in log.segments if one.base_offset == base_offset)
    data = Path(segment.file.path).read_bytes()
    assert len(data) == segment.size_bytes
    return [(one.position, one.last_offset) for one in split_batches(data, allow_partial_tail=False)]


def segment_times(log: Partition, base_offset: int) -> list[int]:
    segment = next(one for one in log.segments if one.base_offset == base_offset)
    return [one.max_timestamp for one in split_batches(Path(segment.file.path).read_bytes())]


PartitionMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=30, report_multiple_bugs=False)
TestPartition = PartitionMachine.TestCase
