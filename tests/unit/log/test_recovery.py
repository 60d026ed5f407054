"""From files to a log again: after a clean stop, after a crash, with damage of many kinds."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ottla.log.errors import StorageError
from ottla.log.files import LogStorage
from ottla.log.partition import Partition
from ottla.log.recovery import LoadRequest, RecoveryReport, load_steps
from ottla.log.txn_index import AbortedTxn
from ottla.testing.disk import VirtualDisk
from ottla.wire.batch import AnyBatch, split_batches
from tests.unit.log.logs import (
    NOW,
    TOPIC,
    TOPIC_ID,
    all_batches,
    append_as_coordinator,
    batch,
    config,
    contents,
    file_sizes,
    led,
    legacy_message,
    load_partition,
    marker,
    new_storage,
    offsets,
    open_partition,
    producer_batch,
    sized_batch,
    transaction,
)
from tests.unit.wire.batch_vectors import as_golden, good, raw

SETTINGS: dict[str, Any] = {"segment_bytes": 350, "index_interval_bytes": 100}


def lively(path: Path) -> Partition:
    """A log with everything in it: several segments, epochs, producers, transactions ended and open."""
    log = open_partition(path, **SETTINGS)
    sequence = 0
    for number in range(12):
        log.append_as_leader(producer_batch(7, sequence, count=2, timestamp=NOW + number), number // 5, NOW)
        sequence += 2
        if number == 2:
            transaction(log, 8, 0)
        if number == 5:
            transaction(log, 9, 0, leader_epoch=1)
            append_as_coordinator(log, marker(8, committed=False), 1, NOW)
        if number == 9:
            append_as_coordinator(log, marker(9, committed=True), 1, NOW)
            transaction(log, 10, 0, leader_epoch=1)
    return log


def facts(log: Partition) -> dict[str, Any]:
    """What must be the same after a recovery. Of each producer only the newest batch outlives a restart."""
    return {
        "range": (log.log_start_offset, log.log_end_offset),
        "bases": [segment.base_offset for segment in log.segments],
        "batches": [bytes(one.data) for one in all_batches(log)],
        "epochs": log.epochs.entries,
        "producers": sorted(
            (one.producer_id, one.producer_epoch, one.last_sequence, one.last_data_offset, one.txn_first_offset)
            for one in log.producers.entries
        ),
        "unstable": log.producers.first_unstable_offset,
        "aborted": log.aborted_transactions(0, 10**6),
    }


def crash(log: Partition, path: Path) -> Path:
    """What a kill leaves behind: what was written, and nothing that was still in memory."""
    shutil.copytree(log.directory.path, path)
    return path


def test_a_clean_stop_is_taken_at_its_word(tmp_path: Path):
    log = lively(tmp_path / "orders-0")
    log.update_high_watermark(log.log_end_offset)
    before = facts(log)
    log.close()
    files = contents(tmp_path / "orders-0")
    again, report = load_partition(tmp_path / "orders-0", **SETTINGS)
    again.update_high_watermark(again.log_end_offset)
    assert facts(again) == before
    assert again.topic_id == TOPIC_ID
    assert contents(tmp_path / "orders-0") == files
    assert not report.is_eventful
    assert report.lines() == []


def test_a_crash_loses_nothing_that_was_written(tmp_path: Path):
    log = lively(tmp_path / "orders-0")
    crash(log, tmp_path / "crashed-0")
    before = facts(log)
    log.close()
    again, report = load_partition(tmp_path / "crashed-0", is_clean=False, **SETTINGS)
    assert facts(again) == before | {"unstable": facts(again)["unstable"]}
    assert report.recovered == before["bases"]
    assert report.cuts == []
    again.close()
    # Everything is as a clean stop would have left it, to the byte. (A snapshot tells only the newest batch.)
    assert contents(tmp_path / "crashed-0") == contents(tmp_path / "orders-0")


def test_transactions_wait_for_the_high_watermark_again(tmp_path: Path):
    log = lively(tmp_path / "orders-0")
    crash(log, tmp_path / "crashed-0")
    again = open_partition(tmp_path / "crashed-0", is_clean=False, **SETTINGS)
    assert again.last_stable_offset == 0
    again.update_high_watermark(again.log_end_offset)
    log.update_high_watermark(log.log_end_offset)
    assert again.last_stable_offset == log.last_stable_offset == log.producers.first_unstable_offset


@pytest.mark.parametrize("recovery_point", [0, 1, 8, 9, 20, 10**6])
def test_segments_below_the_recovery_point_are_not_read(tmp_path: Path, recovery_point: int):
    log = lively(tmp_path / "orders-0")
    log.flush()
    bases = [segment.base_offset for segment in log.segments]
    crash(log, tmp_path / "crashed-0")
    _, report = load_partition(tmp_path / "crashed-0", is_clean=False, recovery_point=recovery_point, **SETTINGS)
    first = max(base for base in bases if base <= recovery_point)
    assert report.recovered == [base for base in bases if base >= first]


def test_a_power_cut_after_a_roll_loses_no_aborted_transaction():
    """A flush that has reached the end of a segment is enough, although its indexes are closed only later."""
    path = Path("/virtual/orders-0")
    for seed in range(200):
        disk = VirtualDisk(seed)
        log = open_partition(path, storage=LogStorage(disk))
        transaction(log, 8, 0)
        append_as_coordinator(log, marker(8, committed=False), 0, NOW)
        log.flush()
        log.roll(NOW)
        after = LogStorage(disk.crash(power_loss=True))
        again = open_partition(path, storage=after, is_clean=False, recovery_point=log.recovery_point)
        assert again.aborted_transactions(0, 2) == [AbortedTxn(8, 0, 1, 2)], f"seed {seed}"


def test_every_torn_tail_is_cut(tmp_path: Path):
    log = open_partition(tmp_path / "orders-0")
    log.append_as_leader(batch(b"first"), 0, NOW)
    size = log.active_segment.size_bytes
    log.append_as_leader(producer_batch(7, 0, count=2), 1, NOW)
    whole = log.active_segment.size_bytes
    for length in range(size + 1, whole):
        path = crash(log, tmp_path / f"cut-{length}")
        with (path / "00000000000000000000.log").open("r+b") as file:
            file.truncate(length)
        again, report = load_partition(path, is_clean=False)
        assert again.log_end_offset == 1
        assert (again.epochs.entries, len(again.producers)) == (((0, 0),), 0)
        ((base, position, cut, _),) = report.cuts
        assert (base, position, cut) == (0, size, length - size)
        assert file_sizes(path)["00000000000000000000.log"] == size
        assert again.append_as_leader(batch(b"next"), 2, NOW).base_offset == 1
        assert offsets(again) == [0, 1]
        shutil.rmtree(path)


def test_the_report_tells_what_happened(tmp_path: Path):
    log = lively(tmp_path / "orders-0")
    path = crash(log, tmp_path / "crashed-0")
    newest = sorted(path.glob("*.log"))[1]
    newest.write_bytes(newest.read_bytes()[:-3])
    _, report = load_partition(path, is_clean=False, **SETTINGS)
    assert report.is_eventful
    text = "\n".join(report.lines())
    assert "orders-0" in text
    assert "was truncated at byte" in text
    assert "lay behind the damage" in text
    assert "built anew" in text


@pytest.mark.parametrize("where", [25, 61, -1])
def test_damage_in_a_middle_segment_ends_the_log_there(tmp_path: Path, where: int):
    log = lively(tmp_path / "orders-0")
    batches = [one for one in all_batches(log)]
    path = crash(log, tmp_path / "crashed-0")
    base = log.segments[2].base_offset
    file = path / f"{base:020d}.log"
    data = bytearray(file.read_bytes())
    second = next(one for one in batches if one.base_offset > base)
    start = sum(one.size_bytes for one in batches if base <= one.base_offset < second.base_offset)
    data[start + (where if where > 0 else second.size_bytes - 1)] ^= 0x40
    file.write_bytes(data)
    again, report = load_partition(path, is_clean=False, **SETTINGS)
    assert again.log_end_offset == second.base_offset
    assert [one.base_offset for one in all_batches(again)] == [
        one.base_offset for one in batches if one.base_offset < second.base_offset
    ]
    assert report.deleted_segments == [segment.base_offset for segment in log.segments[3:]]
    assert all(start < second.base_offset for _, start in again.epochs.entries)
    names = file_sizes(path)
    assert f"{log.segments[3].base_offset:020d}.log" not in names
    assert again.append_as_leader(batch(), 5, NOW).base_offset == second.base_offset


def test_a_wrong_offset_is_damage_though_no_checksum_covers_it(tmp_path: Path):
    log = open_partition(tmp_path / "orders-0")
    for _ in range(3):
        log.append_as_leader(batch(b"a", b"b"), 0, NOW)
    size = log.active_segment.size_bytes // 3
    for number, value in ((1, 0), (1, 2**40), (2, 3)):
        path = crash(log, tmp_path / f"crashed-{number}-{value}")
        with (path / "00000000000000000000.log").open("r+b") as file:
            file.seek(number * size)
            file.write(value.to_bytes(8, "big"))
        again, report = load_partition(path, is_clean=False)
        assert again.log_end_offset == number * 2
        assert "follows" in report.cuts[0].reason


def test_a_tail_that_a_clean_stop_cannot_have_left_is_cut_all_the_same(tmp_path: Path):
    log = lively(tmp_path / "orders-0")
    log.close()
    end, last = log.log_end_offset, all_batches(log)[-1]
    newest = max((tmp_path / "orders-0").glob("*.log"))
    newest.write_bytes(newest.read_bytes()[:-20])
    again, report = load_partition(tmp_path / "orders-0", **SETTINGS)
    assert again.log_end_offset == last.base_offset < end
    assert len(report.cuts) == 1
    assert again.append_as_leader(batch(b"after"), 9, NOW).base_offset == last.base_offset
    assert all_batches(again)[-1].records()[0].value == b"after"


# --- indexes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_clean", [True, False])
def test_missing_indexes_are_built_anew(tmp_path: Path, is_clean: bool):
    log = lively(tmp_path / "orders-0")
    before = facts(log)
    log.close()
    sound = contents(tmp_path / "orders-0")
    assert any(name.endswith(".txnindex") for name in sound)
    for file in tmp_path.glob("orders-0/*index"):
        file.unlink()
    again, report = load_partition(tmp_path / "orders-0", is_clean=is_clean, **SETTINGS)
    assert facts(again) == before | {"unstable": facts(again)["unstable"]}
    assert [fault for fault in report.faults if "no offset index" in fault] == [
        f"segment {base} has no offset index" for base in before["bases"] if is_clean
    ]
    again.close()
    assert contents(tmp_path / "orders-0", "index") == {
        name: data for name, data in sound.items() if name.endswith("index")
    }


@pytest.mark.parametrize("change", [lambda data: data + bytes(4000), lambda data: data + b"\x00" * 4])
def test_an_index_at_its_full_size_is_cut_to_its_entries(tmp_path: Path, change: Callable[[bytes], bytes]):
    log = lively(tmp_path / "orders-0")
    log.close()
    sound = contents(tmp_path / "orders-0", "index")
    for name, data in sound.items():
        if not name.endswith("txnindex"):
            (tmp_path / "orders-0" / name).write_bytes(change(data))
    again, report = load_partition(tmp_path / "orders-0", **SETTINGS)
    assert offsets(again) == offsets(log)
    assert again.offset_for_timestamp(NOW + 5) == log.offset_for_timestamp(NOW + 5)
    assert not report.is_eventful
    again.close()
    for name, data in contents(tmp_path / "orders-0", ".index").items():
        assert data == sound[name]


def test_an_index_cut_in_the_middle_of_an_entry_still_leads_to_everything(tmp_path: Path):
    log = lively(tmp_path / "orders-0")
    log.close()
    for file in tmp_path.glob("orders-0/*.index"):
        file.write_bytes(file.read_bytes()[:-4])
    again = open_partition(tmp_path / "orders-0", **SETTINGS)
    assert offsets(again) == offsets(log)


def test_a_missing_time_index_starts_empty(tmp_path: Path):
    log = lively(tmp_path / "orders-0")
    log.close()
    for file in tmp_path.glob("orders-0/*.timeindex"):
        file.unlink()
    again, report = load_partition(tmp_path / "orders-0", **SETTINGS)
    assert report.recovered == []
    assert again.log_end_offset == log.log_end_offset


def test_a_transaction_index_that_cannot_be_right_is_built_anew(tmp_path: Path):
    log = lively(tmp_path / "orders-0")
    aborted = log.aborted_transactions(0, 10**6)
    assert len(aborted) == 1
    log.close()
    (file,) = tmp_path.glob("orders-0/*.txnindex")
    sound = file.read_bytes()
    file.write_bytes(sound[:18] + bytes(8) + sound[26:])
    again, report = load_partition(tmp_path / "orders-0", **SETTINGS)
    assert again.aborted_transactions(0, 10**6) == aborted
    assert any("aborted transactions" in fault for fault in report.faults)
    again.close()
    assert file.read_bytes() == sound


def test_indexes_without_a_log_are_removed(tmp_path: Path):
    log = lively(tmp_path / "orders-0")
    log.close()
    (tmp_path / "orders-0" / "00000000000000009999.index").write_bytes(b"12345678")
    (tmp_path / "orders-0" / "00000000000000009999.txnindex").write_bytes(b"")
    _, report = load_partition(tmp_path / "orders-0", **SETTINGS)
    assert len(report.removed_files) == 2
    assert not list(tmp_path.glob("orders-0/*9999*"))


# --- producers --------------------------------------------------------------------------------------------------------


def test_a_damaged_snapshot_is_made_up_for_by_an_older_one_and_the_log(tmp_path: Path):
    log = lively(tmp_path / "orders-0")
    before = facts(log)
    log.close()
    newest = max((tmp_path / "orders-0").glob("*.snapshot"))
    sound = newest.read_bytes()
    newest.write_bytes(sound[:-1] + bytes((sound[-1] ^ 1,)))
    again, report = load_partition(tmp_path / "orders-0", **SETTINGS)
    assert facts(again)["producers"] == before["producers"]
    assert len(report.faults) == 1
    assert "snapshot" in report.faults[0]
    assert newest.read_bytes() == sound
    assert again.append_as_leader(producer_batch(7, 22, count=2), 2, NOW).is_duplicate


def test_a_clean_log_without_snapshots_has_no_producers(tmp_path: Path):
    log = lively(tmp_path / "orders-0")
    log.close()
    for file in tmp_path.glob("orders-0/*.snapshot"):
        file.unlink()
    again, _ = load_partition(tmp_path / "orders-0", **SETTINGS)
    assert len(again.producers) == 0
    bases = [segment.base_offset for segment in again.segments]
    assert again.producers.snapshot_offsets == [*bases[-2:], again.log_end_offset]


def test_after_a_crash_without_snapshots_the_log_tells_all(tmp_path: Path):
    log = lively(tmp_path / "orders-0")
    before = facts(log)
    log.close()
    for file in tmp_path.glob("orders-0/*.snapshot"):
        file.unlink()
    again, _ = load_partition(tmp_path / "orders-0", is_clean=False, recovery_point=10**6, **SETTINGS)
    assert facts(again)["producers"] == before["producers"]


def test_idle_producers_do_not_come_back(tmp_path: Path):
    log = lively(tmp_path / "orders-0")
    log.close()
    day = 86_400_000
    for is_clean in (True, False):
        again = open_partition(tmp_path / "orders-0", is_clean=is_clean, now_ms=NOW + 2 * day, **SETTINGS)
        assert [entry.producer_id for entry in again.producers.entries] == [10]  # its transaction is open


# --- checkpoints ------------------------------------------------------------------------------------------------------


def test_the_log_start_comes_from_the_checkpoint(tmp_path: Path):
    log = lively(tmp_path / "orders-0")
    log.close()
    again = open_partition(tmp_path / "orders-0", log_start_offset=9, **SETTINGS)
    assert again.log_start_offset == again.high_watermark == 9
    assert again.epochs.earliest() == (0, 9)
    assert len(again.segments) == len(log.segments)


def test_a_log_that_ends_below_its_start_begins_anew(tmp_path: Path):
    log = lively(tmp_path / "orders-0")
    log.close()
    again, report = load_partition(tmp_path / "orders-0", log_start_offset=1000, **SETTINGS)
    assert (again.log_start_offset, again.log_end_offset) == (1000, 1000)
    assert report.deleted_segments == [segment.base_offset for segment in log.segments]
    assert again.epochs.entries == ()
    assert len(again.producers) == 0
    assert again.append_as_leader(batch(), 0, NOW).base_offset == 1000


def test_an_empty_directory_becomes_an_empty_log(tmp_path: Path):
    (tmp_path / "orders-0").mkdir()
    log, report = load_partition(tmp_path / "orders-0", is_clean=False, log_start_offset=5)
    assert (log.log_start_offset, log.log_end_offset, log.topic_id) == (5, 5, None)
    assert report.recovered == []


def test_a_recovery_point_past_the_end_is_not_believed(tmp_path: Path):
    log = lively(tmp_path / "orders-0")
    crash(log, tmp_path / "crashed-0")
    again = open_partition(tmp_path / "crashed-0", is_clean=False, recovery_point=10**9, **SETTINGS)
    assert again.recovery_point == again.log_end_offset
    low = open_partition(tmp_path / "crashed-0", is_clean=False, recovery_point=3, **SETTINGS)
    assert low.recovery_point == 3


@pytest.mark.parametrize("data", [b"garbage", b"0\n5\n0 0\n", b"\xff"])
def test_epochs_that_cannot_be_read_are_found_in_the_log_again(tmp_path: Path, data: bytes):
    log = lively(tmp_path / "orders-0")
    before = log.epochs.entries
    log.close()
    (tmp_path / "orders-0" / "leader-epoch-checkpoint").write_bytes(data)
    again, report = load_partition(tmp_path / "orders-0", is_clean=False, **SETTINGS)
    assert again.epochs.entries == before
    assert any("leader-epoch-checkpoint" in fault for fault in report.faults)


def test_partition_metadata_that_cannot_be_read_is_told(tmp_path: Path):
    log = lively(tmp_path / "orders-0")
    log.close()
    (tmp_path / "orders-0" / "partition.metadata").write_bytes(b"version: 7\n")
    again, report = load_partition(tmp_path / "orders-0", **SETTINGS)
    assert again.topic_id is None
    assert any("partition.metadata" in fault for fault in report.faults)


def test_epochs_that_begin_past_the_end_are_dropped(tmp_path: Path):
    log = lively(tmp_path / "orders-0")
    log.become_leader(8)
    log.close()
    assert (tmp_path / "orders-0" / "leader-epoch-checkpoint").read_bytes().startswith(b"0\n4\n")
    for is_clean in (True, False):
        again = open_partition(tmp_path / "orders-0", is_clean=is_clean, **SETTINGS)
        assert again.epochs.latest_epoch == 2


# --- unfinished work --------------------------------------------------------------------------------------------------


def in_steps(path: Path, steps: int) -> list[list[int]]:
    """A log whose second and third segment are being replaced by one, with the first `steps` renames done."""
    log = lively(path)
    log.close()
    old = [segment.base_offset for segment in log.segments[1:3]]
    survivors = [one for one in all_batches(log) if old[0] <= one.base_offset < log.segments[3].base_offset][::2]
    data = b"".join(bytes(one.data) for one in survivors)
    renames: list[tuple[str, str]] = []
    for kind in (".log", ".index", ".timeindex"):
        new = f"{old[0]:020d}{kind}"
        (path / f"{new}.cleaned").write_bytes(data if kind == ".log" else b"")
        renames.append((f"{new}.cleaned", f"{new}.swap"))
    for base in old:
        renames += [(f"{base:020d}{kind}", f"{base:020d}{kind}.deleted") for kind in (".log", ".index", ".timeindex")]
    renames += [(f"{old[0]:020d}{kind}.swap", f"{old[0]:020d}{kind}") for kind in (".log", ".index", ".timeindex")]
    for source, target in renames[:steps]:
        (path / source).rename(path / target)
    before = [one.base_offset for one in all_batches(log)] if steps == 0 else []
    return [before, [one.base_offset for one in survivors], [len(renames)]]


def expected_offsets(path: Path) -> tuple[list[int], list[int], int]:
    """Base offsets of batches before and after the replacement, and the number of its steps."""
    before, survivors, (count,) = in_steps(path, 0)
    log = open_partition(path, **SETTINGS)
    low, high = log.segments[1].base_offset, log.segments[3].base_offset
    after = [base for base in before if not low <= base < high or base in survivors]
    return before, after, count


def test_a_replacement_that_a_crash_interrupts_is_undone_or_finished(tmp_path: Path):
    before, after, count = expected_offsets(tmp_path / "whole-0")
    assert count == 12
    for steps in range(count + 1):
        path = tmp_path / f"crashed-{steps}"
        in_steps(path, steps)
        log, report = load_partition(path, is_clean=False, **SETTINGS)
        found = [one.base_offset for one in all_batches(log)]
        assert found == (before if steps < 3 else after), f"after {steps} renames"
        assert not [name for name in file_sizes(path) if name.endswith((".cleaned", ".swap", ".deleted"))]
        assert report.is_eventful
        log.close()
        again = open_partition(path, **SETTINGS)
        assert [one.base_offset for one in all_batches(again)] == found


def test_files_on_their_way_out_are_removed(tmp_path: Path):
    log = lively(tmp_path / "orders-0")
    log.close()
    (tmp_path / "orders-0" / "00000000000000000000.log.deleted").write_bytes(b"x")
    (tmp_path / "orders-0" / "00000000000000000100-0000000003.checkpoint.deleted").write_bytes(b"x")
    (tmp_path / "orders-0" / "note.txt").write_bytes(b"x")
    _, report = load_partition(tmp_path / "orders-0", **SETTINGS)
    assert report.removed_files == ["00000000000000000000.log.deleted"]
    names = file_sizes(tmp_path / "orders-0")
    assert "00000000000000000100-0000000003.checkpoint.deleted" in names
    assert "note.txt" in names


# --- steps and failures -----------------------------------------------------------------------------------------------


def test_recovery_goes_in_small_steps_and_tells_how_far_it_is(tmp_path: Path):
    log = open_partition(tmp_path / "orders-0", segment_bytes=100_000)
    for number in range(3000):
        log.stage_as_leader(producer_batch(7, number), 0, NOW)
    log.write()
    total = log.size_bytes
    request = LoadRequest(str(tmp_path / "orders-0"), TOPIC, config(), is_clean=False)
    progress = list(load_steps(new_storage(), request, NOW))
    assert len(progress) > 3000 / 256
    assert {one.total_bytes for one in progress} == {total}
    done = [one.done_bytes for one in progress]
    assert done == sorted(done)
    assert done[-1] == total


def test_a_large_batch_is_read_in_pieces(tmp_path: Path):
    log = open_partition(tmp_path / "orders-0", max_message_bytes=10**8)
    log.append_as_leader(sized_batch(3_000_000), 0, NOW)
    log.append_as_leader(batch(), 0, NOW)
    request = LoadRequest(str(tmp_path / "orders-0"), TOPIC, config(), is_clean=False)
    assert len(list(load_steps(new_storage(), request, NOW))) >= 10
    assert open_partition(tmp_path / "orders-0", is_clean=False).log_end_offset == 2


def test_a_directory_that_cannot_be_read_is_offline(tmp_path: Path):
    storage = new_storage()
    request = LoadRequest(str(tmp_path / "missing-0"), TOPIC, config(), is_clean=True)
    with pytest.raises(StorageError):
        list(load_steps(storage, request, NOW))
    assert storage.failure is not None


def test_a_log_with_holes_and_old_formats(tmp_path: Path):
    log = open_partition(tmp_path / "orders-0", segment_bytes=500)
    log.append_as_follower(legacy_message(0, b"a", magic=0) + legacy_message(5, b"b"), 0, NOW)
    log.append_as_follower(led((10, 3), (900, 3)), 3, NOW)
    log.append_as_follower(led((2**31 + 5, 4)), 4, NOW)
    before = [one.last_offset for one in all_batches(log)]
    path = crash(log, tmp_path / "crashed-0")
    again, report = load_partition(path, is_clean=False)
    assert [one.last_offset for one in all_batches(again)] == before
    assert report.cuts == []
    assert again.epochs.entries == ((3, 10), (4, 2**31 + 5))


def test_a_control_batch_that_is_no_marker_is_kept_and_told(tmp_path: Path):
    log = open_partition(tmp_path / "orders-0")
    strange = batch(b"x", keys=[b"?"], is_control=True, is_transactional=True, producer_id=5, producer_epoch=0)
    path = tmp_path / "orders-0" / "00000000000000000000.log"
    path.write_bytes(strange)
    again, report = load_partition(tmp_path / "orders-0", is_clean=False)
    assert again.log_end_offset == 1
    assert any("no marker" in fault for fault in report.faults)
    del log


# --- golden batches ---------------------------------------------------------------------------------------------------


def in_order(batches: list[AnyBatch]) -> bool:
    """Whether these can be a log: offsets rise, from zero or later, and fit in one segment."""
    last = [one.last_offset for one in batches]
    first = batches[0].base_offset
    return first >= 0 and last == sorted(set(last)) and last[0] >= first and last[-1] - first < 2**31


def golden_logs() -> list[Any]:
    found = []
    for vector in good():
        data = raw(vector)
        batches = list(split_batches(data))
        if batches and sum(one.size_bytes for one in batches) == len(data) and in_order(batches):
            found.append(pytest.param(vector, id=vector["name"]))
    return found


def test_there_are_golden_batches_of_all_formats():
    magics = {one.magic for case in golden_logs() for one in split_batches(raw(case.values[0]))}
    assert magics == {0, 1, 2}
    assert len(golden_logs()) > 100


@pytest.mark.parametrize("vector", golden_logs())
def test_every_golden_batch_is_read_from_a_segment(tmp_path: Path, vector: dict[str, Any]):
    data = raw(vector)
    base_offset = next(split_batches(data)).base_offset
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0" / f"{base_offset:020d}.log").write_bytes(data)
    log, report = load_partition(tmp_path / "orders-0", is_clean=False)
    assert report.cuts == []
    assert [without_place(as_golden(one)) for one in all_batches(log)] == [
        without_place(one) for one in vector["batches"]
    ]


def without_place(golden: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in golden.items() if key not in ("position", "start")}


def test_reports_of_two_partitions_are_apart():
    first, second = RecoveryReport(TOPIC, True), RecoveryReport(TOPIC, True)
    first.faults.append("x")
    assert second.faults == []
    assert AbortedTxn(1, 2, 3, 4).last_offset == 3
