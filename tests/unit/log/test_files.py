import errno
from pathlib import Path

import pytest

from ottla.log.disk import OsDisk, OsFile
from ottla.log.errors import StorageError
from ottla.log.files import Directory, LogFile, LogStorage, OpenFiles
from ottla.wire.errors import ErrorCode


@pytest.fixture
def storage() -> LogStorage:
    disk = OsDisk(durable=False)
    return LogStorage(disk, open_files=OpenFiles(disk, limit=3))


def files(storage: LogStorage, path: Path, count: int) -> list[LogFile]:
    directory = Directory(storage, str(path))
    made = [LogFile(directory, f"f{number}") for number in range(count)]
    for file in made:
        file.handle(create=True).write([file.name.encode()], 0)
    return made


def test_no_more_files_are_open_than_allowed(storage: LogStorage, tmp_path: Path):
    made = files(storage, tmp_path, 10)
    assert len(storage.open_files) == 3
    assert [file.is_open for file in made] == [False] * 7 + [True] * 3
    assert [file.handle().read(9, 0) for file in made] == [file.name.encode() for file in made]
    assert len(storage.open_files) == 3


def test_the_one_used_longest_ago_is_closed(storage: LogStorage, tmp_path: Path):
    made = files(storage, tmp_path, 3)
    made[0].handle()
    LogFile(made[0].directory, "f9").handle(create=True)
    assert [file.is_open for file in made] == [True, False, True]


def test_a_pinned_file_stays_open(storage: LogStorage, tmp_path: Path):
    made = files(storage, tmp_path, 3)
    handle = made[0].pin()
    files(storage, tmp_path / ".", 8)
    assert handle.read(9, 0) == b"f0"
    assert made[0].is_open
    made[0].unpin()
    files(storage, tmp_path, 3)
    assert not made[0].is_open


def test_with_every_file_pinned_the_limit_gives_way(storage: LogStorage, tmp_path: Path):
    made = files(storage, tmp_path, 3)
    for file in made:
        file.pin()
    LogFile(made[0].directory, "f9").handle(create=True)
    assert len(storage.open_files) == 4


def test_a_pinned_file_that_was_closed_goes_with_its_last_pin(storage: LogStorage, tmp_path: Path):
    (file,) = files(storage, tmp_path, 1)
    handle = file.pin()
    file.pin()
    file.close()
    assert len(storage.open_files) == 0
    storage.disk.unlink(file.path)
    file.unpin()
    assert handle.read(2, 0) == b"f0"
    file.unpin()
    assert not file.is_open
    with pytest.raises(OSError, match="descriptor"):
        handle.read(2, 0)


def test_renaming_moves_the_bytes(storage: LogStorage, tmp_path: Path):
    (file,) = files(storage, tmp_path, 1)
    file.rename("g0")
    assert file.handle().read(2, 0) == b"f0"
    assert [entry.name for entry in storage.disk.list_directory(str(tmp_path))] == ["g0"]


def test_a_directory_that_moves_takes_its_files_along(storage: LogStorage, tmp_path: Path):
    (tmp_path / "a").mkdir()
    (file,) = files(storage, tmp_path / "a", 1)
    storage.open_files.close_all()
    (tmp_path / "a").rename(tmp_path / "b")
    file.directory.path = str(tmp_path / "b")
    assert file.handle().read(2, 0) == b"f0"


class NarrowDisk(OsDisk):
    """Has fewer descriptors than the limit says."""

    def __init__(self) -> None:
        super().__init__(durable=False)
        self.opened = 0
        self.is_empty = False

    def open(self, path: str, *, create: bool = False) -> OsFile:
        self.opened += 1
        if self.is_empty or self.opened == 3:
            raise OSError(errno.EMFILE, "too many open files")
        return super().open(path, create=create)


def test_when_the_process_runs_out_of_descriptors_one_is_given_up(tmp_path: Path):
    disk = NarrowDisk()
    storage = LogStorage(disk, open_files=OpenFiles(disk, limit=100))
    made = files(storage, tmp_path, 3)
    assert [file.is_open for file in made] == [False, True, True]
    disk.is_empty = True
    with pytest.raises(OSError, match="too many"):
        LogFile(made[0].directory, "f9").handle(create=True)


def test_after_a_failure_the_directory_is_offline(storage: LogStorage):
    storage.check()
    first = OSError(errno.EIO, "first")
    error = storage.fail(first, "writing f")
    assert error.code == ErrorCode.KAFKA_STORAGE_ERROR
    storage.fail(OSError(errno.EIO, "second"), "writing g")
    assert storage.failure is first
    with pytest.raises(StorageError, match="first"):
        storage.check()


def test_deleted_files_are_due_when_their_time_has_come(storage: LogStorage):
    storage.delete_later("/a", 100)
    storage.delete_later("/b", 50)
    assert storage.due_deletions(49) == []
    assert storage.due_deletions(50) == ["/b"]
    assert storage.due_deletions(1000) == ["/a"]
    assert storage.due_deletions(1000) == []
