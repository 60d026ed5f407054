"""Rolling, truncating, deleting, flushing and closing a partition's log."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ottla.log.disk import Buffer, OsDisk, OsFile
from ottla.log.errors import OffsetOutOfRangeError, StorageError
from ottla.log.files import LogStorage
from ottla.log.flush import GroupCommit
from ottla.log.partition import Partition
from ottla.log.producer_state import Verification
from ottla.log.read import Isolation
from ottla.log.segment import Segment
from ottla.wire.errors import ErrorCode
from tests.unit.log.logs import (
    NOW,
    TOPIC_ID,
    all_batches,
    append_as_coordinator,
    batch,
    config,
    contents,
    file_sizes,
    led,
    marker,
    new_storage,
    offsets,
    open_partition,
    producer_batch,
    sized_batch,
    transaction,
)


def filled(path: Path, *, batches: int = 10, **settings: Any) -> Partition:
    """Batches of two records and about 150 bytes, in segments of two."""
    log = open_partition(path / "orders-0", **{"segment_bytes": 320, "index_interval_bytes": 0} | settings)
    for number in range(batches):
        log.append_as_leader(batch(b"x" * 30, b"y" * 30, timestamp=NOW + number), 0, NOW)
    return log


def bases(log: Partition) -> list[int]:
    return [segment.base_offset for segment in log.segments]


# --- rolling ----------------------------------------------------------------------------------------------------------


def test_a_full_segment_is_closed_and_the_next_begins(tmp_path: Path):
    log = filled(tmp_path, batches=5)
    assert bases(log) == [0, 4, 8]
    assert offsets(log) == list(range(10))
    sizes = file_sizes(tmp_path / "orders-0")
    assert sizes["00000000000000000000.index"] == 8
    assert sizes["00000000000000000000.timeindex"] == 12
    assert sizes["00000000000000000004.snapshot"] == 10
    # The newest entries are in memory; that there is an index file at all is for Apache Kafka's recovery.
    assert sizes["00000000000000000008.index"] == 0
    assert "00000000000000000008.timeindex" not in sizes


def test_a_segment_is_rolled_by_the_time_of_its_records(tmp_path: Path):
    log = open_partition(tmp_path / "orders-0", segment_ms=1000)
    for timestamp in (NOW, NOW + 1000, NOW + 1001, NOW + 1500, NOW + 99999):
        log.append_as_leader(batch(timestamp=timestamp), 0, NOW + 99999)
    assert bases(log) == [0, 2, 4]


def test_batches_that_wait_to_be_written_roll_a_segment_like_written_ones(tmp_path: Path):
    log = open_partition(tmp_path / "orders-0", segment_ms=1000, segment_bytes=500)
    for timestamp in (NOW, NOW + 1001, NOW + 1002):
        log.stage_as_leader(batch(timestamp=timestamp), 0, NOW)
    for _ in range(4):
        log.stage_as_leader(sized_batch(200, timestamp=NOW + 1003), 0, NOW)
    log.write()
    assert bases(log) == [0, 1, 4, 6]
    assert offsets(log) == list(range(7))
    assert all(segment.size_bytes <= 500 for segment in log.segments)


def test_a_follower_rolls_at_the_first_offset_it_is_given(tmp_path: Path):
    log = open_partition(tmp_path / "orders-0")
    log.append_as_follower(led((0, 0)), 0, NOW)
    log.append_as_follower(led((2**31 + 50, 0)), 0, NOW)
    assert bases(log) == [0, 2**31 + 50]
    assert log.producers.snapshot_offsets == [2**31 + 50]


def test_rolling_an_empty_segment_changes_nothing(tmp_path: Path):
    log = filled(tmp_path, batches=2)
    log.roll(NOW)
    log.roll(NOW)
    assert bases(log) == [0, 4]
    log.append_as_leader(batch(), 0, NOW)
    assert offsets(log) == [0, 1, 2, 3, 4]


def test_what_is_needed_of_producers_is_in_the_snapshot_of_the_roll(tmp_path: Path):
    log = open_partition(tmp_path / "orders-0")
    log.append_as_leader(producer_batch(7, 0, count=3), 0, NOW)
    log.roll(NOW)
    assert len(contents(tmp_path / "orders-0")["00000000000000000003.snapshot"]) == 56


# --- the start of the log ---------------------------------------------------------------------------------------------


def test_deleting_records_moves_the_start(tmp_path: Path):
    log = filled(tmp_path)
    log.update_high_watermark(15)
    assert log.delete_records(7) == 7
    assert log.delete_records(3) == 7
    assert log.delete_records(-1) == 15
    assert len(log.segments) == 5
    assert log.epochs.entries == ((0, 15),)
    for offset in (16, -2):
        with pytest.raises(OffsetOutOfRangeError) as caught:
            log.delete_records(offset)
        assert caught.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_deleting_the_oldest_segments(tmp_path: Path):
    log = filled(tmp_path)
    log.update_high_watermark(20)
    log.delete_oldest_segments(2, NOW)
    assert (bases(log), log.log_start_offset) == ([8, 12, 16], 8)
    names = file_sizes(tmp_path / "orders-0")
    assert "00000000000000000004.log.deleted" in names
    assert "00000000000000000004.snapshot.deleted" in names
    assert "00000000000000000004.log" not in names
    assert log.storage.due_deletions(NOW + 59_999) == []
    due = log.storage.due_deletions(NOW + 60_000)
    assert {Path(path).name for path in due if Path(path).exists()} == {name for name in names if "deleted" in name}


def test_a_log_keeps_one_segment(tmp_path: Path):
    log = filled(tmp_path)
    log.update_high_watermark(20)
    log.delete_oldest_segments(99, NOW)
    assert (bases(log), log.log_start_offset, log.log_end_offset) == ([20], 20, 20)
    log.delete_oldest_segments(99, NOW)
    assert bases(log) == [20]
    assert log.append_as_leader(batch(), 0, NOW).base_offset == 20


def test_a_start_past_whole_segments_is_kept(tmp_path: Path):
    log = filled(tmp_path)
    log.update_high_watermark(20)
    log.delete_records(11)
    log.delete_oldest_segments(2, NOW)
    assert (bases(log), log.log_start_offset) == ([8, 12, 16], 11)


# --- truncation -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "end", "segments"),
    [(20, 20, 5), (99, 20, 5), (19, 18, 5), (18, 18, 5), (16, 16, 5), (15, 14, 4), (12, 12, 4), (1, 0, 1), (0, 0, 1)],
)
def test_truncation(tmp_path: Path, target: int, end: int, segments: int):
    log = filled(tmp_path)
    log.update_high_watermark(17)
    log.flush()
    assert log.truncate_to(target, NOW) is (end < 20)
    assert log.log_end_offset == log.next_offset == end
    assert len(log.segments) == segments
    assert offsets(log) == list(range(end))
    assert log.high_watermark == min(17, end)
    assert log.recovery_point == end
    assert log.append_as_leader(batch(), 1, NOW).base_offset == end
    assert offsets(log) == list(range(end + 1))


def test_truncation_reaches_the_files(tmp_path: Path):
    log = filled(tmp_path)
    log.truncate_to(10, NOW)
    log.close()
    again = open_partition(tmp_path / "orders-0", is_clean=False, segment_bytes=320)
    assert (again.log_end_offset, bases(again)) == (10, [0, 4, 8])


def test_truncation_below_all_segments_begins_anew(tmp_path: Path):
    log = filled(tmp_path)
    log.update_high_watermark(20)
    log.delete_oldest_segments(2, NOW)
    log.truncate_to(3, NOW)
    assert (bases(log), log.log_start_offset, log.log_end_offset, log.high_watermark) == ([3], 3, 3, 3)
    assert log.epochs.entries == ()
    assert log.append_as_leader(batch(), 4, NOW).base_offset == 3


def test_dropping_everything(tmp_path: Path):
    log = filled(tmp_path)
    log.truncate_fully(100, NOW)
    assert (bases(log), log.log_start_offset, log.log_end_offset) == ([100], 100, 100)
    assert log.producers.snapshot_offsets == []
    log.truncate_fully(200, NOW, log_start_offset=150)
    assert (bases(log), log.log_start_offset, log.log_end_offset) == ([200], 150, 200)
    assert offsets(log) == []


def test_dropping_everything_at_the_same_offset(tmp_path: Path):
    log = filled(tmp_path, batches=1)
    log.truncate_fully(0, NOW)
    assert offsets(log) == []
    log.append_as_leader(batch(b"new"), 0, NOW)
    assert offsets(log) == [0]
    assert "00000000000000000000.log.deleted" in file_sizes(tmp_path / "orders-0")


def test_truncation_takes_epochs_back(tmp_path: Path):
    log = open_partition(tmp_path / "orders-0")
    for epoch in (0, 1, 2):
        log.append_as_leader(batch(b"a", b"b"), epoch, NOW)
    log.become_leader(5)
    assert log.epochs.entries == ((0, 0), (1, 2), (2, 4), (5, 6))
    log.truncate_to(99, NOW)
    assert log.epochs.entries == ((0, 0), (1, 2), (2, 4))  # a leader that wrote nothing
    log.truncate_to(3, NOW)
    assert log.epochs.entries == ((0, 0),)
    assert (tmp_path / "orders-0" / "leader-epoch-checkpoint").read_bytes() == b"0\n1\n0 0\n"


def test_truncation_takes_producers_back(tmp_path: Path):
    log = open_partition(tmp_path / "orders-0", segment_bytes=400)
    for number in range(8):
        log.append_as_leader(producer_batch(7, number), 0, NOW)
    transaction(log, 8, 0)
    append_as_coordinator(log, marker(8, committed=False), 0, NOW)
    assert len(log.segments) > 1
    log.truncate_to(9, NOW)
    assert log.producers.has_ongoing_transaction(8, 0)
    assert log.aborted_transactions(0, 99) == []
    log.truncate_to(3, NOW)
    assert log.producers.entry(8) is None
    assert log.append_as_leader(producer_batch(7, 2), 0, NOW).is_duplicate
    assert log.append_as_leader(producer_batch(7, 3), 0, NOW).base_offset == 3


def test_truncation_of_many_batches_lets_others_work_in_between(tmp_path: Path):
    log = open_partition(tmp_path / "orders-0")
    for number in range(1000):
        log.stage_as_leader(producer_batch(7, number), 0, NOW)
    log.write()
    log.update_high_watermark(1000)
    steps = log.truncate_steps(990, NOW)
    next(steps)
    assert (log.log_end_offset, log.last_stable_offset) == (990, 0), "no transaction is known to have ended yet"
    assert len(list(steps)) >= 2
    assert log.last_stable_offset == 990
    assert log.append_as_leader(producer_batch(7, 990), 0, NOW).base_offset == 990


# --- the disk ---------------------------------------------------------------------------------------------------------


class BrokenDisk(OsDisk):
    """Fails when told to; writes a part first."""

    def __init__(self) -> None:
        super().__init__(durable=True)
        self.fails_on: set[str] = set()
        self.syncs: list[str] = []

    def open(self, path: str, *, create: bool = False) -> OsFile:
        if "open" in self.fails_on:
            raise OSError(errno.EIO, "broken")
        sound = super().open(path, create=create)
        return BrokenFile(os.dup(sound.fileno()), self, Path(path).name)

    def sync_directory(self, path: str) -> None:
        self.syncs.append("directory")

    def rename(self, source: str, target: str) -> None:
        if "rename" in self.fails_on:
            raise OSError(errno.EIO, "broken")
        super().rename(source, target)


class BrokenFile(OsFile):
    __slots__ = ("_disk", "_name")

    def __init__(self, descriptor: int, disk: BrokenDisk, name: str) -> None:
        super().__init__(descriptor)
        self._disk = disk
        self._name = name

    def write(self, buffers: Any, position: int) -> None:
        if "write" in self._disk.fails_on:
            data: Buffer = b"".join(buffers)
            super().write([data[: len(data) // 2]], position)
            raise OSError(errno.ENOSPC, "full")
        super().write(buffers, position)

    def sync(self) -> None:
        self._disk.syncs.append(self._name)
        if "sync" in self._disk.fails_on:
            raise OSError(errno.EIO, "broken")


@pytest.fixture
def disk() -> BrokenDisk:
    return BrokenDisk()


@pytest.fixture
def storage(disk: BrokenDisk) -> LogStorage:
    return LogStorage(disk)


def test_a_write_that_fails_takes_the_directory_offline(tmp_path: Path, disk: BrokenDisk, storage: LogStorage):
    log = filled(tmp_path, batches=3, storage=storage)
    other = open_partition(tmp_path / "other-0", storage=storage)
    size = log.active_segment.size_bytes
    disk.fails_on.add("write")
    log.stage_as_leader(producer_batch(7, 0), 0, NOW)
    with pytest.raises(StorageError) as caught:
        log.write()
    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert log.log_end_offset == 6
    assert Path(log.active_segment.file.path).stat().st_size == size  # no half of a batch stays
    disk.fails_on.clear()
    for attempt in (
        lambda: log.append_as_leader(batch(), 0, NOW),
        lambda: log.read(0, 100, Isolation.LOG_END),
        lambda: log.offset_for_timestamp(0),
        lambda: log.flush(),
        lambda: log.truncate_to(0, NOW),
        lambda: other.append_as_leader(batch(), 0, NOW),
    ):
        with pytest.raises(StorageError):
            attempt()
    again = open_partition(tmp_path / "orders-0", is_clean=False, segment_bytes=320)
    assert offsets(again) == [0, 1, 2, 3, 4, 5]
    assert len(again.producers) == 0


def test_a_read_that_fails_takes_the_directory_offline(tmp_path: Path, disk: BrokenDisk, storage: LogStorage):
    log = filled(tmp_path, batches=3, storage=storage)
    storage.open_files.close_all()
    disk.fails_on.add("open")
    with pytest.raises(StorageError):
        log.read(0, 100, Isolation.LOG_END)
    assert storage.failure is not None


def test_bytes_that_cannot_be_read_take_the_directory_offline(tmp_path: Path, disk: BrokenDisk, storage: LogStorage):
    log = filled(tmp_path, batches=3, storage=storage)
    region = log.read(0, 1 << 20, Isolation.LOG_END)
    assert log.bytes_of(region) == contents(tmp_path / "orders-0", ".log")["00000000000000000000.log"]
    storage.open_files.close_all()
    disk.fails_on.add("open")
    with pytest.raises(StorageError):
        log.bytes_of(region)
    assert storage.failure is not None


@pytest.mark.parametrize(
    "append",
    [
        lambda log: log.append_as_leader(batch(), 0, NOW),
        lambda log: append_as_coordinator(log, marker(7, committed=True), 0, NOW),
        lambda log: log.append_as_follower(led((6, 0)), 0, NOW),
    ],
    ids=["client", "coordinator", "follower"],
)
def test_a_disk_that_fails_before_the_write_takes_the_directory_offline(
    tmp_path: Path, disk: BrokenDisk, storage: LogStorage, append: Callable[[Partition], object]
):
    """Whether a log that was just loaded must be rolled is told by its files only."""
    filled(tmp_path, batches=3, storage=storage).close()
    log = open_partition(tmp_path / "orders-0", storage=storage)
    storage.open_files.close_all()
    disk.fails_on.add("open")
    with pytest.raises(StorageError):
        append(log)
    assert storage.failure is not None


@pytest.mark.parametrize("what", ["write", "open"])
def test_a_roll_that_fails_takes_the_directory_offline(
    tmp_path: Path, disk: BrokenDisk, storage: LogStorage, what: str
):
    log = filled(tmp_path, batches=3, storage=storage)
    disk.fails_on.add(what)
    with pytest.raises(StorageError):
        log.roll(NOW)
    assert storage.failure is not None


def test_a_deletion_that_fails_takes_the_directory_offline(tmp_path: Path, disk: BrokenDisk, storage: LogStorage):
    log = filled(tmp_path, storage=storage)
    log.update_high_watermark(20)
    disk.fails_on.add("rename")
    with pytest.raises(StorageError):
        log.delete_oldest_segments(1, NOW)
    with pytest.raises(StorageError):
        storage.check()


# --- flushing ---------------------------------------------------------------------------------------------------------


def test_a_flush_moves_the_recovery_point(tmp_path: Path, disk: BrokenDisk, storage: LogStorage):
    log = filled(tmp_path, batches=5, storage=storage)
    assert log.recovery_point == 0
    disk.syncs.clear()
    log.flush(NOW + 5)
    assert log.recovery_point == 10
    assert log.last_flush_ms == NOW + 5
    # Closed segments with their indexes and snapshots, the active one's log, the epochs, the names.
    assert {name.split(".")[-1] for name in disk.syncs} == {"log", "index", "timeindex", "snapshot", "tmp", "directory"}
    assert sorted(name for name in disk.syncs if name.endswith(".log")) == [
        f"{offset:020d}.log" for offset in (0, 4, 8)
    ]
    disk.syncs.clear()
    log.append_as_leader(batch(), 0, NOW)
    log.flush()
    assert disk.syncs == ["00000000000000000008.log"]


def test_nothing_is_flushed_before_the_epochs_that_it_needs(tmp_path: Path):
    log = filled(tmp_path, batches=1)
    path = tmp_path / "orders-0" / "leader-epoch-checkpoint"
    assert not path.exists()
    log.flush()
    assert path.read_bytes() == b"0\n1\n0 0\n"
    assert not log.epochs.is_dirty


def test_a_flush_may_run_while_the_log_grows(tmp_path: Path):
    log = filled(tmp_path, batches=2)
    flush = log.prepare_flush()
    log.append_as_leader(batch(), 3, NOW)
    flush.run()
    assert log.finish_flush(flush)
    assert log.recovery_point == 4
    assert log.epochs.is_dirty  # epoch 3 came later


def test_what_was_truncated_during_a_flush_is_not_on_the_disk(tmp_path: Path):
    log = filled(tmp_path, batches=3)
    flush = log.prepare_flush()
    log.truncate_to(2, NOW)
    for _ in range(5):
        log.append_as_leader(batch(), 1, NOW)
    flush.run()
    assert log.finish_flush(flush)
    assert log.recovery_point == 2


def test_a_segment_removed_during_a_flush_is_no_failure(tmp_path: Path):
    log = filled(tmp_path)
    log.update_high_watermark(20)
    flush = log.prepare_flush()
    log.delete_oldest_segments(2, NOW)
    flush.run()
    assert log.finish_flush(flush)
    assert log.recovery_point == 20


def test_a_sync_that_failed_is_never_tried_again(tmp_path: Path, disk: BrokenDisk, storage: LogStorage):
    log = filled(tmp_path, batches=1, storage=storage)
    disk.fails_on.add("sync")
    with pytest.raises(StorageError):
        log.flush()
    assert log.recovery_point == 0
    disk.fails_on.clear()
    disk.syncs.clear()
    with pytest.raises(StorageError):
        log.flush()
    assert disk.syncs == []


def test_rolled_segments_wait_for_a_flush(tmp_path: Path):
    log = filled(tmp_path, batches=2)
    assert list(log.storage.rolled) == []
    log.append_as_leader(batch(b"x" * 90), 0, NOW)
    assert list(log.storage.rolled) == [log]
    log.flush()
    assert list(log.storage.rolled) == []


@pytest.mark.parametrize(
    ("settings", "messages", "waited_ms", "needed"),
    [
        ({}, 50, 10**9, False),
        ({"flush_messages": 3}, 2, 0, False),
        ({"flush_messages": 3}, 3, 0, True),
        ({"flush_ms": 100}, 1, 99, False),
        ({"flush_ms": 100}, 1, 100, True),
        ({"flush_ms": 100}, 0, 100, False),
    ],
)
def test_when_a_flush_is_asked_for(
    tmp_path: Path, settings: dict[str, int], messages: int, waited_ms: int, needed: bool
):
    log = open_partition(tmp_path / "orders-0", **settings)
    for _ in range(messages):
        log.append_as_leader(batch(), 0, NOW)
    assert log.needs_flush(NOW + waited_ms) is needed
    log.flush(NOW + waited_ms)
    assert not log.needs_flush(NOW + waited_ms)


def test_one_sync_covers_what_has_gathered(tmp_path: Path, disk: BrokenDisk, storage: LogStorage):
    commit = GroupCommit()
    logs = [open_partition(tmp_path / f"orders-{number}", storage=storage) for number in range(3)]
    for log in logs:
        log.append_as_leader(batch(), 0, NOW)
        commit.add(log)
    first = commit.begin()
    disk.syncs.clear()
    for log in logs[:2]:  # more arrives while the first round is under way
        for _ in range(10):
            log.append_as_leader(batch(), 0, NOW)
            commit.add(log)
    assert commit.is_under_way
    assert commit.begin() == []
    for flush in first:
        flush.run()
    assert commit.finish() == logs
    assert [log.recovery_point for log in logs] == [1, 1, 1]
    disk.syncs.clear()
    for flush in commit.begin():
        flush.run()
    assert disk.syncs == ["00000000000000000000.log"] * 2
    assert commit.finish() == logs[:2]
    assert [log.recovery_point for log in logs] == [11, 11, 1]
    assert commit.begin() == []


def test_a_round_leaves_out_directories_that_failed(tmp_path: Path, disk: BrokenDisk, storage: LogStorage):
    commit = GroupCommit()
    broken = filled(tmp_path / "a", batches=1, storage=storage)
    sound = filled(tmp_path / "b", batches=1)
    late = filled(tmp_path / "c", batches=1, storage=storage)
    for log in (broken, sound):
        commit.add(log)
    disk.fails_on.add("sync")
    for flush in commit.begin():
        flush.run()
    assert commit.finish() == [sound]
    assert broken.recovery_point == 0
    commit.add(late)
    commit.add(sound)
    assert [flush.partition for flush in commit.begin()] == [sound]


# --- closing, moving, replacing ---------------------------------------------------------------------------------------


def test_a_clean_close_leaves_nothing_to_recover(tmp_path: Path):
    log = filled(tmp_path, batches=5)
    log.append_as_leader(producer_batch(7, 0), 2, NOW)
    log.close()
    files = contents(tmp_path / "orders-0")
    assert len(log.storage.open_files) == 0
    assert "00000000000000000011.snapshot" in files
    assert files["leader-epoch-checkpoint"] == b"0\n2\n0 0\n2 10\n"
    assert len(files["00000000000000000008.timeindex"]) % 12 == 0
    assert "00000000000000000008.index" in files
    again = open_partition(tmp_path / "orders-0", segment_bytes=320)
    assert again.recovery_point == again.log_end_offset == 11
    again.close()
    assert contents(tmp_path / "orders-0") == files


def test_the_topic_id_is_there_before_any_data(tmp_path: Path):
    log = open_partition(tmp_path / "orders-0")
    assert log.topic_id == TOPIC_ID
    names = ("00000000000000000000.index", "00000000000000000000.log", "partition.metadata")
    assert file_sizes(tmp_path / "orders-0") == dict(zip(names, (0, 0, 43), strict=True))


def test_moving_the_directory(tmp_path: Path):
    log = filled(tmp_path)
    log.rename_directory(str(tmp_path / "orders-0.0123-delete"))
    assert offsets(log) == list(range(20))
    assert not (tmp_path / "orders-0").exists()


def test_other_settings_count_from_the_next_append_on(tmp_path: Path):
    log = filled(tmp_path, batches=1, segment_bytes=10_000, segment_index_bytes=10_000)
    log.append_as_leader(batch(timestamp=NOW + 1), 0, NOW)
    log.append_as_leader(batch(timestamp=NOW + 2), 0, NOW)
    log.update_config(config(segment_index_bytes=24, index_interval_bytes=0))
    log.append_as_leader(batch(timestamp=NOW + 3), 0, NOW)
    assert bases(log) == [0, 4]


def test_replacing_segments(tmp_path: Path):
    log = filled(tmp_path)
    old = log.segments[1:4]
    new = Segment.create(log.directory, 4, log.config, NOW, state=".cleaned")
    survivor = all_batches(log)[3]
    new.append([survivor.data], [(survivor.last_offset, survivor.max_timestamp, survivor.size_bytes)], log.config)
    new.close_indexes()
    log.replace_segments([new], old, NOW)
    assert bases(log) == [0, 4, 16]
    assert [one.base_offset for one in all_batches(log)] == [0, 2, 6, 16, 18]
    names = file_sizes(tmp_path / "orders-0")
    assert not [name for name in names if name.endswith((".cleaned", ".swap"))]
    assert log.producers.snapshot_offsets == [4, 16]
    assert "00000000000000000008.snapshot.deleted" in names
    log.close()
    again = open_partition(tmp_path / "orders-0", segment_bytes=320)
    assert [one.base_offset for one in all_batches(again)] == [0, 2, 6, 16, 18]


def test_more_partitions_than_open_files(tmp_path: Path):
    storage = new_storage(open_files_max=8)
    logs = [open_partition(tmp_path / f"orders-{number}", storage=storage) for number in range(40)]
    for round_number in range(3):
        for log in logs:
            log.append_as_leader(batch(b"%d" % round_number), 0, NOW)
    assert len(storage.open_files) <= 8
    assert all(offsets(log) == [0, 1, 2] for log in logs)


def test_the_last_stable_offset_of_a_log_without_transactions(tmp_path: Path):
    log = filled(tmp_path, batches=2)
    assert log.last_stable_offset == log.high_watermark == 0
    log.update_high_watermark(4)
    assert log.last_stable_offset == 4
    verified = Verification(0)
    log.append_as_leader(producer_batch(3, 0, transactional=True), 0, NOW, verification=verified)
    assert log.last_stable_offset == 4
