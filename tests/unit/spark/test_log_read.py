"""Tasks over segment files: cutting, indexes that lie, damage, times, transactions, files that go away."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ottla.log.names import CLEAN_SHUTDOWN_FILE, HIGH_WATERMARK_CHECKPOINT
from ottla.spark.errors import OttlaSparkError
from ottla.spark.log.read import TaskReport
from ottla.spark.log.storage import Entry, LocalStorage, SourceFile
from ottla.spark.log.view import PartitionView
from ottla.wire.batch import Compression
from tests.unit.log.logs import NOW, batch, legacy_message, open_partition
from tests.unit.spark.log_directories import (
    append,
    checkpoint,
    close_cleanly,
    end_transaction,
    filled,
    flip,
    in_transaction,
    new_directory,
    only,
    read_offsets,
    segment_file,
    tasks,
    view_of,
)

ALL = list(range(20))


# --- cutting ----------------------------------------------------------------------------------------------------------


def test_a_segment_is_a_task(tmp_path: Path):
    filled(tmp_path)
    found = tasks(view_of(tmp_path))
    assert [len(task.pieces) for task in found] == [1] * 7
    assert [task.pieces[0].from_offset for task in found] == [0, 3, 6, 9, 12, 15, 18]
    assert read_offsets(found) == ALL


@pytest.mark.parametrize("damage", ["none", "missing", "stale", "preallocated", "torn", "of another log"])
def test_large_segments_are_cut_where_batches_begin_whatever_the_index_says(tmp_path: Path, damage: str):
    filled(tmp_path, segment_bytes=10**6)
    index = segment_file(tmp_path, 0, ".index")
    entries = index.read_bytes()
    assert len(entries) == 19 * 8
    changed = {
        "stale": entries[: 8 * 4],
        "preallocated": entries + bytes(10_000),
        "torn": entries[:-3],
        "of another log": b"".join((n * 2).to_bytes(4, "big") + (n * 777).to_bytes(4, "big") for n in range(1, 20)),
    }
    if damage in changed:
        index.write_bytes(changed[damage])
    elif damage == "missing":
        index.unlink()
    found = tasks(view_of(tmp_path), task_bytes=5000)
    assert len(found) == 4
    assert read_offsets(found) == ALL
    assert max(task.size_bytes for task in found[:-1]) <= 6000


def test_far_segments_without_index_stay_whole(tmp_path: Path):
    filled(tmp_path, segment_bytes=10**6)
    segment_file(tmp_path, 0, ".index").unlink()
    assert len(tasks(view_of(tmp_path), task_bytes=5000, may_walk=False)) == 1


@pytest.mark.parametrize(("first", "until"), [(0, 20), (4, 17), (5, 6), (6, 9), (19, 20), (0, 1), (7, 7)])
@pytest.mark.parametrize("segment_bytes", [3000, 10**6])
def test_only_the_range_is_read(tmp_path: Path, first: int, until: int, segment_bytes: int):
    filled(tmp_path, segment_bytes=segment_bytes)
    report = TaskReport()
    found = tasks(view_of(tmp_path), first, until)
    assert read_offsets(found, report) == list(range(first, until))
    assert report.bytes_read == (until - first) * 1000


def test_offsets_inside_batches_are_clipped(tmp_path: Path):
    new_directory(tmp_path)
    log = open_partition(tmp_path / "orders-0")
    for _ in range(4):
        log.append_as_leader(batch(*[b"v"] * 5), 0, NOW)
    close_cleanly(tmp_path, log)
    assert read_offsets(tasks(view_of(tmp_path), 3, 12)) == list(range(3, 12))


def test_batches_larger_than_a_chunk_are_read_whole(tmp_path: Path):
    filled(tmp_path)
    report = TaskReport()
    assert read_offsets(tasks(view_of(tmp_path)), report, chunk_bytes=300) == ALL
    assert report.records == 20


def test_chunks_that_would_grow_too_large_are_opened_batch_by_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ottla.spark.log.read._CHUNK_DECOMPRESSED_MAX", 10_000)
    monkeypatch.setattr("ottla.spark.log.read._BATCH_DECOMPRESSED_MAX", 100_000)
    new_directory(tmp_path)
    log = open_partition(tmp_path / "orders-0")
    for _ in range(5):
        log.append_as_leader(batch(b"x" * 9000, compression=Compression.ZSTD), 0, NOW)
    close_cleanly(tmp_path, log)
    assert read_offsets(tasks(view_of(tmp_path))) == [0, 1, 2, 3, 4]
    monkeypatch.setattr("ottla.spark.log.read._BATCH_DECOMPRESSED_MAX", 5000)
    (task,) = tasks(view_of(tmp_path), is_growing=True)
    with pytest.raises(OttlaSparkError, match=r"^corrupt record batch in .*/orders-0/0{20}\.log at byte 0: .*5000"):
        read_offsets([task])


def test_messages_of_old_formats(tmp_path: Path):
    new_directory(tmp_path)
    (tmp_path / "orders-0").mkdir()
    data = b"".join(legacy_message(offset, b"v", magic=magic) for offset, magic in ((0, 0), (1, 0), (4, 1), (5, 1)))
    segment_file(tmp_path, 0).write_bytes(data)
    view = view_of(tmp_path)
    assert view.end_offset == 6
    assert read_offsets(tasks(view)) == [0, 1, 4, 5]
    assert read_offsets(tasks(view, 1, 5)) == [1, 4]


# --- damage -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["cut", "zeros", "checksum"])
def test_a_torn_end_ends_the_log_silently_and_is_counted(tmp_path: Path, kind: str):
    filled(tmp_path, batches=8)
    last = segment_file(tmp_path, 6)
    if kind == "cut":
        last.write_bytes(last.read_bytes()[:-10])
    elif kind == "zeros":
        last.write_bytes(last.read_bytes()[:1000] + bytes(4000))
    else:
        flip(last, 1500)
    report = TaskReport()
    assert read_offsets(tasks(view_of(tmp_path, up_to="end")), report) == list(range(7))
    assert report.torn_ends == 1


def test_damage_in_the_middle_fails_and_names_file_and_byte(tmp_path: Path):
    filled(tmp_path, batches=9)
    flip(segment_file(tmp_path, 3), 1500)
    with pytest.raises(OttlaSparkError) as error:
        read_offsets(tasks(view_of(tmp_path)))
    where = f"{tmp_path}/orders-0/{3:020d}.log"
    assert str(error.value).startswith(f"corrupt record batch in {where} at byte 1000: ")


@pytest.mark.parametrize(
    ("on_corrupt", "expected"), [("skipSegment", [0, 1, 2, 3, 6, 7, 8]), ("stopPartition", [0, 1, 2, 3])]
)
@pytest.mark.parametrize("kind", ["checksum", "length", "magic", "offset"])
def test_damage_in_the_middle_can_be_passed_over(tmp_path: Path, on_corrupt: str, expected: list[int], kind: str):
    filled(tmp_path, batches=9)
    flip(segment_file(tmp_path, 3), {"checksum": 1500, "length": 1008, "magic": 1016, "offset": 1001}[kind])
    report = TaskReport()
    found = tasks(view_of(tmp_path), on_corrupt=on_corrupt)
    assert read_offsets(found, report, on_corrupt=on_corrupt) == expected
    assert report.skipped == 1
    assert len(found) == (1 if on_corrupt == "stopPartition" else 3)


def test_what_was_promised_of_a_growing_log_is_not_taken_for_a_torn_end(tmp_path: Path):
    log = filled(tmp_path, batches=8, close=False)
    view = view_of(tmp_path)
    found = tasks(view, is_growing=True)
    append(log, 1)  # what comes later does not matter
    assert read_offsets(found) == list(range(8))
    log.close()
    flip(segment_file(tmp_path, 6), 1500)
    with pytest.raises(OttlaSparkError, match="at byte 1000"):
        read_offsets(found)


# --- files that go away -----------------------------------------------------------------------------------------------


def test_records_that_the_cleaner_moved_are_found_again(tmp_path: Path):
    filled(tmp_path, batches=9)
    found = tasks(view_of(tmp_path))
    # What compaction does: the records of two segments in one file, without some that have newer ones.
    first, second = segment_file(tmp_path, 0), segment_file(tmp_path, 3)
    first.write_bytes(first.read_bytes()[1000:] + second.read_bytes())
    second.unlink()
    assert read_offsets(found) == [1, 2, 3, 4, 5, 6, 7, 8]


def test_records_that_were_deleted_are_data_loss(tmp_path: Path):
    filled(tmp_path, batches=9)
    found = tasks(view_of(tmp_path))
    segment_file(tmp_path, 0).unlink()
    expected = (
        rf"^data lost: topic orders partition 0: offsets 0\.\.2 were deleted \({tmp_path}/orders-0/0{{20}}\.log\)$"
    )
    with pytest.raises(OttlaSparkError, match=expected):
        read_offsets(found)
    assert read_offsets(found, fail_on_data_loss=False) == [3, 4, 5, 6, 7, 8]


def test_a_directory_that_is_gone_is_data_loss(tmp_path: Path):
    filled(tmp_path, batches=3)
    found = tasks(view_of(tmp_path))
    (tmp_path / "orders-0").rename(tmp_path / "elsewhere")
    with pytest.raises(OttlaSparkError, match="the directory was deleted"):
        read_offsets(found)
    assert read_offsets(found, fail_on_data_loss=False) == []


# --- times ------------------------------------------------------------------------------------------------------------


class Counting(LocalStorage):
    def __init__(self) -> None:
        self.opened: Counter[str] = Counter()

    def open(self, path: str) -> SourceFile:
        self.opened[path.rpartition("/")[2]] += 1
        return super().open(path)

    def list(self, path: str) -> list[Entry]:
        return super().list(path)


@pytest.mark.parametrize(("time", "offset"), [(0, 0), (NOW, 0), (NOW + 1, 1), (NOW + 95, 10), (NOW + 190, 19)])
@pytest.mark.parametrize("segment_bytes", [3000, 10**6])
@pytest.mark.parametrize("clean", [True, False])
def test_the_first_offset_of_a_time(tmp_path: Path, time: int, offset: int, segment_bytes: int, clean: bool):
    filled(tmp_path, segment_bytes=segment_bytes)
    if not clean:
        (tmp_path / CLEAN_SHUTDOWN_FILE).unlink()
    assert view_of(tmp_path).offset_at(time) == offset


def test_no_offset_has_a_time_after_the_last(tmp_path: Path):
    filled(tmp_path)
    assert view_of(tmp_path).offset_at(NOW + 191) is None


def test_segments_that_are_older_are_not_opened(tmp_path: Path):
    filled(tmp_path)
    counting = Counting()
    view = PartitionView(replace(only(tmp_path), storage=counting))
    assert view.offset_at(NOW + 130) == 13
    logs = {name for name in counting.opened if name.endswith(".log")}
    assert logs == {f"{12:020d}.log", f"{18:020d}.log"}  # the second for the log's end
    assert read_offsets(tasks(view, 13)) == [13, 14, 15, 16, 17, 18, 19]


@pytest.mark.parametrize("damage", ["missing", "stale", "preallocated"])
def test_time_indexes_are_only_hints(tmp_path: Path, damage: str):
    filled(tmp_path, segment_bytes=10_000)
    index = (
        segment_file(tmp_path, 10, ".timeindex")
        if damage == "preallocated"
        else segment_file(tmp_path, 0, ".timeindex")
    )
    if damage == "missing":
        index.unlink()
    elif damage == "stale":
        index.write_bytes(index.read_bytes()[:24])
    else:
        index.write_bytes(index.read_bytes() + bytes(1200))
    for offset in ALL:
        assert view_of(tmp_path).offset_at(NOW + offset * 10) == offset


# --- transactions -----------------------------------------------------------------------------------------------------


def transactional(path: Path, **settings: Any) -> None:
    """0-1 aborted by 5, 2 committed by 4, 3 plain, 6 open, 7 plain."""
    new_directory(path)
    log = open_partition(path / "orders-0", **settings)
    in_transaction(log, 1, 0, count=2)
    in_transaction(log, 2, 0)
    log.append_as_leader(batch(b"plain"), 0, NOW)
    end_transaction(log, 2, committed=True)
    end_transaction(log, 1, committed=False)
    in_transaction(log, 3, 0)
    log.append_as_leader(batch(b"plain"), 0, NOW)
    close_cleanly(path, log)


def committed(path: Path) -> list[int]:
    view = view_of(path)
    found = tasks(view, until=view.last_stable_offset, is_committed=True)
    return read_offsets(found, is_committed=True)


@pytest.mark.parametrize("segment_bytes", [10**6, 160])
def test_aborted_and_open_transactions_are_not_shown_to_committed_readers(tmp_path: Path, segment_bytes: int):
    transactional(tmp_path, segment_bytes=segment_bytes)
    view = view_of(tmp_path)
    assert view.last_stable_offset == 6
    assert committed(tmp_path) == [2, 3]
    assert read_offsets(tasks(view)) == [0, 1, 2, 3, 6, 7]


def test_an_abort_may_be_indexed_in_a_later_segment(tmp_path: Path):
    transactional(tmp_path, segment_bytes=160)
    assert not segment_file(tmp_path, 0, ".txnindex").exists()
    view = view_of(tmp_path)
    assert read_offsets(tasks(view, 0, 2, is_committed=True), is_committed=True) == []
    assert read_offsets(tasks(view, 0, 2)) == [0, 1]


@pytest.mark.parametrize("missing", [".index", ".txnindex", ".snapshot"])
@pytest.mark.parametrize("segment_bytes", [10**6, 160])
def test_without_indexes_and_snapshots_the_log_itself_tells(tmp_path: Path, segment_bytes: int, missing: str):
    transactional(tmp_path, segment_bytes=segment_bytes)
    for file in (tmp_path / "orders-0").glob(f"*{missing}"):
        if missing == ".txnindex":
            file.write_bytes(file.read_bytes()[:-1])  # one that does not exist says that nothing was aborted
        else:
            file.unlink()
    if missing == ".index":
        for file in (tmp_path / "orders-0").glob("*.txnindex"):
            file.unlink()
    assert view_of(tmp_path).last_stable_offset == 6
    assert committed(tmp_path) == [2, 3]


@pytest.mark.parametrize("segment_bytes", [10**6, 160])
def test_an_abort_of_a_transaction_that_has_written_nothing_hides_nothing(tmp_path: Path, segment_bytes: int):
    """Its partition took part, but what the producer sent was refused. What the producer wrote before is committed."""
    new_directory(tmp_path)
    log = open_partition(tmp_path / "orders-0", segment_bytes=segment_bytes)
    in_transaction(log, 1, 0)
    end_transaction(log, 1, committed=True)
    end_transaction(log, 1, committed=False)
    close_cleanly(tmp_path, log)
    for snapshot in (tmp_path / "orders-0").glob("*.snapshot"):
        snapshot.unlink()  # as those of a broker that runs, whose newest one is older than the transactions
    assert committed(tmp_path) == [0]


def test_a_transaction_that_ends_past_the_high_watermark_is_still_open(tmp_path: Path):
    transactional(tmp_path)
    checkpoint(tmp_path, HIGH_WATERMARK_CHECKPOINT, 5)
    assert view_of(tmp_path).last_stable_offset == 0
