import errno
import os
from pathlib import Path

import pytest

from ottla.log import disk as disk_module
from ottla.log.disk import OsDisk, read_all, replace_file, write_file


@pytest.fixture
def disk() -> OsDisk:
    return OsDisk()


def test_writes_go_where_they_are_told(disk: OsDisk, tmp_path: Path):
    file = disk.open(f"{tmp_path}/f", create=True)
    file.write([b"hello", memoryview(b" world"), bytearray(b"!")], 0)
    file.write([b"W"], 6)
    assert file.read(100, 0) == b"hello World!"
    assert file.read(5, 6) == b"World"
    assert file.read(5, 100) == b""
    assert file.size() == 12
    file.truncate(5)
    assert read_all(disk, f"{tmp_path}/f") == b"hello"
    file.sync()
    file.close()


def test_more_pieces_than_a_call_takes(disk: OsDisk, tmp_path: Path):
    file = disk.open(f"{tmp_path}/f", create=True)
    pieces = [b"%06d" % number for number in range(3 * disk_module.PIECES_MAX + 7)]
    file.write(pieces, 3)
    assert file.read(file.size(), 3) == b"".join(pieces)


def test_a_write_that_was_cut_short_goes_on(disk: OsDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    whole = disk_module._pwritev
    monkeypatch.setattr(disk_module, "_pwritev", lambda fd, buffers, at: whole(fd, [bytes(b"".join(buffers)[:3])], at))
    file = disk.open(f"{tmp_path}/f", create=True)
    file.write([b"abcd", b"efgh"], 2)
    assert file.read(10, 2) == b"abcdefgh"


def test_a_full_disk_says_so(disk: OsDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    whole = disk_module._pwritev
    room = [5]

    def pwritev(descriptor: int, buffers: list[bytes], position: int) -> int:
        if room[0] == 0:
            raise OSError(errno.ENOSPC, "full")
        data = b"".join(buffers)[: room[0]]
        room[0] -= len(data)
        return int(whole(descriptor, [data], position))

    monkeypatch.setattr(disk_module, "_pwritev", pwritev)
    file = disk.open(f"{tmp_path}/f", create=True)
    with pytest.raises(OSError, match="full"):
        file.write([b"abcd", b"efgh"], 0)
    assert file.size() == 5


def test_reads_go_on_after_a_short_one(disk: OsDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "f").write_bytes(b"0123456789")
    monkeypatch.setattr(disk_module, "_pread", lambda fd, size, at: os.pread(fd, min(size, 4), at))
    assert disk.open(f"{tmp_path}/f").read(20, 1) == b"123456789"


def test_where_the_system_has_no_positions(disk: OsDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(disk_module, "_pread", disk_module._pread_by_seeking)
    monkeypatch.setattr(disk_module, "_pwritev", disk_module._pwritev_by_seeking)
    file = disk.open(f"{tmp_path}/f", create=True)
    file.write([b"ab", b"cd"], 0)
    file.write([b"X"], 1)
    assert file.read(9, 0) == b"aXcd"


def test_a_missing_file_is_made_only_when_asked(disk: OsDisk, tmp_path: Path):
    with pytest.raises(FileNotFoundError):
        disk.open(f"{tmp_path}/f")
    assert not disk.exists(f"{tmp_path}/f")
    disk.open(f"{tmp_path}/f", create=True).close()
    assert disk.exists(f"{tmp_path}/f")


def test_a_directory_and_its_entries(disk: OsDisk, tmp_path: Path):
    disk.make_directory(f"{tmp_path}/a/b")
    disk.make_directory(f"{tmp_path}/a/b")
    write_file(disk, f"{tmp_path}/a/f", b"123", sync=True)
    disk.set_modified(f"{tmp_path}/a/f", 1_234_567)
    entries = {entry.name: entry for entry in disk.list_directory(f"{tmp_path}/a")}
    assert entries["b"].is_directory
    assert entries["f"][1:] == (False, 3, 1_234_567)
    assert disk.modified_ms(f"{tmp_path}/a/f") == 1_234_567
    disk.rename(f"{tmp_path}/a/f", f"{tmp_path}/a/g")
    disk.sync_directory(f"{tmp_path}/a")
    disk.unlink(f"{tmp_path}/a/g")
    disk.remove_directory(f"{tmp_path}/a/b")
    assert disk.list_directory(f"{tmp_path}/a") == []


def test_writing_a_file_anew_leaves_nothing_of_the_old_one(disk: OsDisk, tmp_path: Path):
    write_file(disk, f"{tmp_path}/f", b"a long text", sync=False)
    write_file(disk, f"{tmp_path}/f", b"short", sync=False)
    assert read_all(disk, f"{tmp_path}/f") == b"short"


def test_a_replacement_that_fails_leaves_the_old_file(disk: OsDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = f"{tmp_path}/f"
    replace_file(disk, path, b"old")
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(errno.EIO, "broken")))
    with pytest.raises(OSError, match="broken"):
        replace_file(disk, path, b"new")
    assert read_all(disk, path) == b"old"


def test_what_need_not_last_is_not_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "fsync", lambda _: pytest.fail("fsync was called"))
    disk = OsDisk(durable=False)
    replace_file(disk, f"{tmp_path}/f", b"data")
    assert read_all(disk, f"{tmp_path}/f") == b"data"
