"""What recovery cuts off a log: sound batches behind damage are kept, in files that are no part of the log."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ottla.log import cuts
from ottla.log.cuts import cut_offset, is_draft, sound_behind
from ottla.log.disk import Buffer, OsDisk, OsFile
from ottla.log.dump import dump
from ottla.log.errors import StorageError
from ottla.log.files import LogStorage
from ottla.log.partition import Partition
from ottla.log.recovery import RecoveryReport
from ottla.log.retention import apply_retention
from ottla.log.scan import CHUNK_BYTES
from tests.unit.log.logs import NOW, all_batches, batch, load_partition, open_partition

SEGMENT = "00000000000000000000.log"
OLD = NOW - 10**9


def killed(path: Path, values: Sequence[bytes], **settings: Any) -> list[int]:
    """A log of batches with one record each, without a clean stop; gives the sizes of the batches."""
    log = open_partition(path, **settings)
    for value in values:
        log.append_as_leader(batch(value), 0, NOW)
    sizes = [each.size_bytes for each in all_batches(log)]
    log.close_files()
    return sizes


def harm(file: Path, position: int, data: bytes) -> bytes:
    """Write over a part of a file; gives what it was before."""
    before = file.read_bytes()
    file.write_bytes(before[:position] + data + before[position + len(data) :])
    return before


def recovered(path: Path, **settings: Any) -> tuple[Partition, RecoveryReport]:
    return load_partition(path, is_clean=False, **settings)


def kept(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(path.glob("*.cut*"))}


def shown(path: Path) -> list[int]:
    """The offsets of the records that `ottla dump` shows."""
    return [line["offset"] for line in dump(OsDisk(), str(path)) if line["kind"] == "record"]


# --- what is kept -----------------------------------------------------------------------------------------------------


def test_sound_batches_behind_damage_are_kept_and_named(tmp_path: Path):
    sizes = killed(tmp_path / "orders-0", [b"a", b"b", b"c", b"d", b"e"])
    file = tmp_path / "orders-0" / SEGMENT
    harm(file, sum(sizes[:2]) + 65, b"\xff")
    rest = file.read_bytes()[sum(sizes[:2]) :]
    log, report = recovered(tmp_path / "orders-0")
    assert log.log_end_offset == 2
    assert kept(tmp_path / "orders-0") == {"00000000000000000002.log.cut": rest}
    path = f"{tmp_path}/orders-0/00000000000000000002.log.cut"
    assert report.is_eventful
    assert report.lines()[1] == (
        f"orders-0: 2 sound batches (2 records, offsets 3 to 4, {sum(sizes[3:])} bytes) lay behind the damage; they "
        f"are no longer in the log, but kept in {path} ({len(rest)} bytes), which `ottla dump` shows"
    )
    assert shown(Path(path)) == [3, 4]


LENGTH = 8
MAGIC = 16


@pytest.mark.parametrize(
    ("position", "data"),
    [
        (LENGTH, b"\x7f\xff\xff\xff"),
        (LENGTH, b"\0\0\0\0"),
        (LENGTH + 3, b"\x50"),
        (MAGIC, b"\x09"),
        (0, b"\0" * 8),
        (0, b"\0" * 90),
    ],
)
def test_the_next_sound_batch_is_found_whatever_the_damage_says(tmp_path: Path, position: int, data: bytes):
    sizes = killed(tmp_path / "orders-0", [b"a", b"b" * 100, b"c", b"d"])
    harm(tmp_path / "orders-0" / SEGMENT, sizes[0] + position, data)
    _, report = recovered(tmp_path / "orders-0")
    (found,) = report.kept
    assert found.sound.last_offset == 3
    assert set(shown(Path(found.path))) >= {2, 3}


def test_batches_between_two_damages_are_kept_too(tmp_path: Path):
    sizes = killed(tmp_path / "orders-0", [b"%d" % number for number in range(9)])
    file = tmp_path / "orders-0" / SEGMENT
    for number in (2, 5, 6):
        harm(file, sum(sizes[:number]) + 30, b"\xff\xff")
    _, report = recovered(tmp_path / "orders-0")
    assert shown(Path(report.kept[0].path)) == [3, 4, 7, 8]
    assert report.kept[0].sound.batch_count == 4


@pytest.mark.parametrize("value_bytes", [CHUNK_BYTES - 200, 3 * CHUNK_BYTES])
def test_batches_larger_than_what_is_read_at_once(tmp_path: Path, value_bytes: int):
    sizes = killed(tmp_path / "orders-0", [b"a", b"b" * value_bytes, b"c" * value_bytes, b"d"])
    harm(tmp_path / "orders-0" / SEGMENT, sizes[0], b"\xff" * 20)
    _, report = recovered(tmp_path / "orders-0")
    assert shown(Path(report.kept[0].path)) == [2, 3]


def test_later_segments_are_kept_whole_and_without_indexes(tmp_path: Path):
    sizes = killed(tmp_path / "orders-0", [b"%d" % number for number in range(8)], segment_bytes=160)
    files = sorted((tmp_path / "orders-0").glob("*.log"))
    assert [int(file.stem) for file in files] == [0, 2, 4, 6]
    later = {f"{file.name}.cut": file.read_bytes() for file in files[2:]}
    harm(files[1], 40, b"\xff")
    rest = {"00000000000000000002.log.cut": files[1].read_bytes()}
    log, report = recovered(tmp_path / "orders-0", segment_bytes=160)
    assert kept(tmp_path / "orders-0") == rest | later
    assert log.log_end_offset == 2
    assert report.deleted_segments == [4, 6]
    assert [each.sound.batch_count for each in report.kept] == [1, 2, 2]
    assert sorted(file.name for file in (tmp_path / "orders-0").glob("*[46].*")) == list(later)
    assert sum(sizes[3:]) == sum(each.sound.size_bytes for each in report.kept)


def test_segments_behind_a_lost_one_are_kept(tmp_path: Path):
    killed(tmp_path / "orders-0", [b"%d" % number for number in range(6)], segment_bytes=160)
    (tmp_path / "orders-0" / "00000000000000000002.log").unlink()
    log, report = recovered(tmp_path / "orders-0", segment_bytes=160)
    assert log.log_end_offset == 2
    assert list(kept(tmp_path / "orders-0")) == ["00000000000000000004.log.cut"]
    assert report.kept[0].sound.first_offset == 4


def test_a_torn_header_is_not_taken_for_what_compaction_leaves(tmp_path: Path):
    """Compaction leaves gaps between segments, and fewer records than offsets in batches; so does a lost sector."""
    sizes = killed(tmp_path / "orders-0", [b"%d" % number for number in range(6)], segment_bytes=160)
    (tmp_path / "orders-0" / "00000000000000000002.log").unlink()
    harm(tmp_path / "orders-0" / "00000000000000000004.log", sizes[4] + 57, bytes(4))
    log, report = recovered(tmp_path / "orders-0", segment_bytes=160)
    assert log.log_end_offset == 2
    assert [each.sound.first_offset for each in report.kept] == [4]


def test_a_batch_with_a_wrong_offset_is_kept(tmp_path: Path):
    sizes = killed(tmp_path / "orders-0", [b"a", b"b"])
    harm(tmp_path / "orders-0" / SEGMENT, sizes[0], bytes(8))
    recovered(tmp_path / "orders-0")
    (data,) = kept(tmp_path / "orders-0").values()
    assert len(data) == sizes[1]


def test_damage_at_the_end_of_a_log_that_says_it_is_clean(tmp_path: Path):
    sizes = killed(tmp_path / "orders-0", [b"a", b"b", b"c"])
    open_partition(tmp_path / "orders-0", is_clean=False).close()
    harm(tmp_path / "orders-0" / SEGMENT, sizes[0] + LENGTH, b"\x7f")
    _, report = load_partition(tmp_path / "orders-0")
    assert [each.sound.last_offset for each in report.kept] == [2]


# --- what is not ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tail", [b"", bytes(5_000), b"\xff" * 5_000, b"\x02" * 5_000])
@pytest.mark.parametrize("length", [1, 30, 70])
def test_of_a_torn_end_nothing_is_kept(tmp_path: Path, length: int, tail: bytes):
    sizes = killed(tmp_path / "orders-0", [b"a", b"b" * 100])
    file = tmp_path / "orders-0" / SEGMENT
    file.write_bytes(file.read_bytes()[: sizes[0] + length] + tail)
    log, report = recovered(tmp_path / "orders-0")
    assert log.log_end_offset == 1
    assert len(report.cuts) == 1
    assert not report.kept
    assert not kept(tmp_path / "orders-0")


def test_batches_in_the_value_of_a_damaged_batch_are_not_the_logs(tmp_path: Path):
    sizes = killed(tmp_path / "orders-0", [b"a", b"-" + bytes(batch(b"inner"))])
    harm(tmp_path / "orders-0" / SEGMENT, sum(sizes) - 1, b"\x7f")
    _, report = recovered(tmp_path / "orders-0")
    assert len(report.cuts) == 1
    assert not report.kept


def test_what_lies_below_the_log_start_is_not_kept(tmp_path: Path):
    sizes = killed(tmp_path / "orders-0", [b"a", b"b", b"c", b"d"])
    harm(tmp_path / "orders-0" / SEGMENT, sizes[0] + 30, b"\xff")
    log, report = recovered(tmp_path / "orders-0", log_start_offset=4)
    assert log.log_end_offset == 4
    assert not report.kept


def test_damage_below_the_log_start_keeps_what_lies_above_it(tmp_path: Path):
    sizes = killed(tmp_path / "orders-0", [b"a", b"b", b"c", b"d"])
    harm(tmp_path / "orders-0" / SEGMENT, sizes[0] + 30, b"\xff")
    log, report = recovered(tmp_path / "orders-0", log_start_offset=3)
    assert (log.log_start_offset, log.log_end_offset) == (3, 3)
    assert [each.sound.batch_count for each in report.kept] == [1]
    assert list(log.cuts) == list(kept(tmp_path / "orders-0")) == ["00000000000000000003.log.cut"]


# --- recovering again -------------------------------------------------------------------------------------------------


def test_a_crash_between_keeping_and_cutting_keeps_it_once(tmp_path: Path):
    sizes = killed(tmp_path / "orders-0", [b"a", b"b", b"c"])
    file = tmp_path / "orders-0" / SEGMENT
    harm(file, sizes[0] + 30, b"\xff")
    shutil.copy(file, tmp_path / "damaged")
    recovered(tmp_path / "orders-0")
    first = kept(tmp_path / "orders-0")
    shutil.copy(tmp_path / "damaged", file)
    _, report = recovered(tmp_path / "orders-0")
    assert kept(tmp_path / "orders-0") == first
    assert len(report.kept) == 1


def test_another_cut_at_the_same_offset_has_another_name(tmp_path: Path):
    path = tmp_path / "orders-0"
    for values in ([b"a", b"b", b"c"], [b"d", b"e"], [b"f", b"g"]):
        sizes = killed(path, values, is_clean=False)
        harm(path / SEGMENT, sizes[0] + 30, b"\xff")
        recovered(path)[0].close_files()
    names = [f"00000000000000000001.log.cut{number}" for number in ("", "2", "3")]
    assert list(kept(path)) == names
    assert open_partition(path).cuts == dict.fromkeys(names, 1)


def test_a_cut_that_was_being_written_is_written_anew(tmp_path: Path):
    sizes = killed(tmp_path / "orders-0", [b"a", b"b", b"c"])
    harm(tmp_path / "orders-0" / SEGMENT, sizes[0] + 30, b"\xff")
    (tmp_path / "orders-0" / "00000000000000000001.log.cut.tmp").write_bytes(bytes(10_000))
    recovered(tmp_path / "orders-0")
    assert [len(data) for data in kept(tmp_path / "orders-0").values()] == [sum(sizes[1:])]


@pytest.mark.parametrize(
    ("name", "offset", "draft"),
    [
        ("00000000000000000007.log.cut", 7, False),
        ("00000000000000000007.log.cut12", 7, False),
        ("00000000000000000007.log.cut.tmp", None, True),
        ("00000000000000000007.log.cut2.tmp", None, True),
        ("00000000000000000007.log.cutter", None, False),
        ("00000000000000000007.log", None, False),
        ("00000000000000000007.index.cut", None, False),
        ("leader-epoch-checkpoint.tmp", None, False),
    ],
)
def test_names(name: str, offset: int | None, draft: bool):
    assert cut_offset(name) == offset
    assert is_draft(name) is draft


# --- how long, and how much -------------------------------------------------------------------------------------------


def test_old_cuts_make_room_for_new_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "orders-0"
    sizes = killed(path, [b"a" * 500, b"b" * 500, b"c" * 500])
    for number in (5, 6):
        (path / f"0000000000000000000{number}.log.cut").write_bytes(bytes(700))
        OsDisk().set_modified(f"{path}/0000000000000000000{number}.log.cut", OLD + number)
    harm(path / SEGMENT, sizes[0] + 30, b"\xff")
    monkeypatch.setattr(cuts, "KEPT_BYTES_MAX", sum(sizes[1:]) + 800)
    log, report = recovered(path)
    assert list(kept(path)) == ["00000000000000000001.log.cut", "00000000000000000006.log.cut"]
    assert sorted(log.cuts) == list(kept(path))
    assert any("00000000000000000005.log.cut with 700 bytes" in line for line in report.lines())


def test_what_one_recovery_cuts_is_kept_whatever_its_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    sizes = killed(tmp_path / "orders-0", [b"%d" % number for number in range(6)], segment_bytes=160)
    monkeypatch.setattr(cuts, "KEPT_BYTES_MAX", 10)
    harm(tmp_path / "orders-0" / SEGMENT, 30, b"\xff")
    recovered(tmp_path / "orders-0", segment_bytes=160)
    assert sum(map(len, kept(tmp_path / "orders-0").values())) == sum(sizes)


def test_a_cut_goes_when_the_start_of_the_log_has_passed_it(tmp_path: Path):
    sizes = killed(tmp_path / "orders-0", [b"a", b"b", b"c"])
    harm(tmp_path / "orders-0" / SEGMENT, sizes[0] + 30, b"\xff")
    log, _ = recovered(tmp_path / "orders-0")
    for value in (b"d", b"e"):
        log.append_as_leader(batch(value), 0, NOW)
    log.update_high_watermark(3)
    log.delete_records(1)
    apply_retention(log, NOW)
    assert log.cuts
    log.delete_records(2)
    apply_retention(log, NOW)
    assert not log.cuts
    assert log.storage.due_deletions(NOW + 10**6) == [f"{tmp_path}/orders-0/00000000000000000001.log.cut"]
    again = open_partition(tmp_path / "orders-0", is_clean=False, log_start_offset=2)
    assert not again.cuts, "a crash before it was removed changes nothing"


# --- hostile bytes and full disks -------------------------------------------------------------------------------------


def test_bytes_that_look_like_headers_are_not_followed_for_ever(tmp_path: Path):
    fake = bytearray(batch(b"x"))
    fake[LENGTH : LENGTH + 4] = (100_000).to_bytes(4, "big")
    killed(tmp_path / "orders-0", [b"a", bytes(fake[:61]) * 3_000])
    file = tmp_path / "orders-0" / SEGMENT
    data = file.read_bytes()
    file.write_bytes(data[:-7])
    sound = sound_behind(OsDisk(), str(file), 0)
    assert not sound.is_all
    assert str(sound).startswith("at least 1 sound batches")
    _, report = recovered(tmp_path / "orders-0")
    assert len(report.kept) == 1, "nobody knows what is in it"
    assert "too many invalid batches" in list(dump(OsDisk(), report.kept[0].path))[-1]["error"]


class FullDisk(OsDisk):
    """Takes nothing of a cut."""

    def open(self, path: str, *, create: bool = False) -> OsFile:
        file = super().open(path, create=create)
        return FullFile(file) if path.endswith(".cut.tmp") else file


class FullFile(OsFile):
    def __init__(self, file: OsFile) -> None:
        self._file = file
        super().__init__(file.fileno())

    def write(self, buffers: Sequence[Buffer], position: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    def close(self) -> None:
        self._file.close()
        self._descriptor = -1


def test_a_disk_without_room_for_a_cut_leaves_the_segment_whole(tmp_path: Path):
    sizes = killed(tmp_path / "orders-0", [b"a", b"b", b"c"])
    file = tmp_path / "orders-0" / SEGMENT
    harm(file, sizes[0] + 30, b"\xff")
    before = file.read_bytes()
    with pytest.raises(StorageError, match="No space left"):
        load_partition(tmp_path / "orders-0", storage=LogStorage(FullDisk(durable=False)), is_clean=False)
    assert file.read_bytes() == before
    assert not kept(tmp_path / "orders-0")
