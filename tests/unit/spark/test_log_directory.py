"""Which partitions are found in log directories, and where their logs begin and end."""

import sys
from pathlib import Path
from types import ModuleType

import pytest

from ottla.log.names import CLEAN_SHUTDOWN_FILE, HIGH_WATERMARK_CHECKPOINT, LOG_START_CHECKPOINT, TopicPartition
from ottla.log.scan import walk_headers
from ottla.spark.errors import OttlaSparkError
from ottla.spark.log.directory import find_partitions
from ottla.spark.log.storage import BLOCK_BYTES, ArrowStorage, FsspecStorage, LocalStorage, storage_of
from ottla.spark.log.view import PartitionView
from ottla.wire import uuid_text
from tests.unit.log.logs import TOPIC_ID
from tests.unit.spark.log_directories import (
    append,
    checkpoint,
    filled,
    flip,
    new_directory,
    only,
    read_offsets,
    segment_file,
    set_log_start,
    tasks,
    view_of,
)


def found(*paths: Path) -> list[str]:
    return [str(each.topic_partition) for each in find_partitions(map(str, paths), lambda _: True)]


def test_topics_may_have_dashes_and_directories_on_their_way_are_passed_over(tmp_path: Path):
    new_directory(tmp_path)
    unique = "0" * 32
    for name in (
        "a-b-0",
        "a-b-11",
        f"c-0.{unique}-delete",
        f"d-0.{unique}-stray",
        f"e-0.{unique}-future",
        "lost+found",
    ):
        (tmp_path / name).mkdir()
    assert found(tmp_path) == ["a-b-0", "a-b-11"]


def test_unwanted_partitions_are_not_looked_into(tmp_path: Path):
    filled(tmp_path)
    (tmp_path / "other-0").mkdir()
    (tmp_path / "other-0" / "partition.metadata").write_text("nonsense")
    (files,) = find_partitions([str(tmp_path)], lambda partition: partition.topic == "orders")
    assert files.topic_partition == TopicPartition("orders", 0)
    assert files.topic_id == uuid_text(TOPIC_ID)


def test_a_partitions_own_directory_can_be_given(tmp_path: Path):
    filled(tmp_path)
    set_log_start(tmp_path, 4)
    (files,) = find_partitions([str(tmp_path / "orders-0")], lambda _: True)
    assert files.log_start_offset == 4
    assert files.directory.is_clean


def test_files_on_their_way_out_are_not_segments(tmp_path: Path):
    filled(tmp_path, batches=6)
    for suffix in (".deleted", ".cleaned", ".swap"):
        segment_file(tmp_path, 0, f".log{suffix}").write_bytes(b"nonsense")
    assert [segment.base_offset for segment in only(tmp_path).segments] == [0, 3]


@pytest.mark.parametrize(("name", "reason"), [("nowhere", "does not exist"), ("meta.properties", "is not a directory")])
def test_a_path_that_is_no_directory_is_named(tmp_path: Path, name: str, reason: str):
    new_directory(tmp_path)
    with pytest.raises(OttlaSparkError) as error:
        found(tmp_path / name)
    assert str(error.value) == f"option path: {tmp_path / name} {reason}"


def test_directories_of_two_clusters_are_refused(tmp_path: Path):
    for name in ("one", "two"):
        new_directory(tmp_path / name, cluster_id=f"cluster-{name}")
        (tmp_path / name / "orders-0").mkdir()
    with pytest.raises(OttlaSparkError, match=r"belongs to cluster cluster-one, .* to cluster-two"):
        found(tmp_path / "one", tmp_path / "two")


def test_a_checkpoint_that_cannot_be_read_is_named(tmp_path: Path):
    filled(tmp_path)
    (tmp_path / LOG_START_CHECKPOINT).write_text("nonsense")
    with pytest.raises(OttlaSparkError, match=r"log-start-offset-checkpoint: the first two lines"):
        only(tmp_path)


# --- beginning and end ------------------------------------------------------------------------------------------------


def test_log_start_above_the_first_segments_base(tmp_path: Path):
    filled(tmp_path, batches=9)
    set_log_start(tmp_path, 4)
    view = view_of(tmp_path)
    assert view.start_offset == 4
    assert read_offsets(tasks(view)) == [4, 5, 6, 7, 8]


def test_after_a_clean_stop_the_log_is_read_to_the_high_watermark(tmp_path: Path):
    filled(tmp_path, batches=9)
    checkpoint(tmp_path, HIGH_WATERMARK_CHECKPOINT, 7)
    assert view_of(tmp_path).end_offset == 7
    assert view_of(tmp_path, up_to="end").end_offset == 9
    assert read_offsets(tasks(view_of(tmp_path))) == [0, 1, 2, 3, 4, 5, 6]


def test_without_a_clean_stop_the_log_is_read_to_its_end(tmp_path: Path):
    filled(tmp_path, batches=9)
    (tmp_path / CLEAN_SHUTDOWN_FILE).unlink()
    checkpoint(tmp_path, HIGH_WATERMARK_CHECKPOINT, 7)
    assert view_of(tmp_path).end_offset == 9
    assert view_of(tmp_path, up_to="hw").end_offset == 7


def test_a_high_watermark_that_nobody_noted_is_an_error_only_if_asked_for(tmp_path: Path):
    filled(tmp_path, batches=9)
    (tmp_path / HIGH_WATERMARK_CHECKPOINT).unlink()
    assert view_of(tmp_path).end_offset == 9
    with pytest.raises(
        OttlaSparkError, match=r"^option upTo: hw needs a high watermark, but .* has none for orders-0$"
    ):
        _ = view_of(tmp_path, up_to="hw").end_offset


def test_an_empty_log_and_one_without_segments(tmp_path: Path):
    filled(tmp_path / "empty", batches=0)
    assert view_of(tmp_path / "empty").end_offset == 0
    assert tasks(view_of(tmp_path / "empty")) == []
    new_directory(tmp_path / "bare")
    (tmp_path / "bare" / "orders-0").mkdir()
    assert view_of(tmp_path / "bare").end_offset == 0


@pytest.mark.parametrize("lost", [1, 500, 999, 1000])
def test_a_batch_that_is_cut_does_not_count(tmp_path: Path, lost: int):
    filled(tmp_path, batches=8)
    last = segment_file(tmp_path, 6)
    last.write_bytes(last.read_bytes()[:-lost])
    assert view_of(tmp_path, up_to="end").end_offset == 7


def test_zeros_at_the_end_do_not_count(tmp_path: Path):
    filled(tmp_path, batches=8)
    with segment_file(tmp_path, 6).open("ab") as file:
        file.write(bytes(5000))
    assert view_of(tmp_path, up_to="end").end_offset == 8


@pytest.mark.parametrize(("position", "end"), [(1900, 7), (900, 6), (100, 6)])
def test_a_checksum_that_is_wrong_near_the_end_ends_the_log(tmp_path: Path, position: int, end: int):
    filled(tmp_path, batches=8)
    flip(segment_file(tmp_path, 6), position)
    assert view_of(tmp_path, up_to="end").end_offset == end


def test_a_growing_log_ends_further_at_each_look(tmp_path: Path):
    log = filled(tmp_path, batches=4, close=False)
    assert view_of(tmp_path).end_offset == 4
    append(log, 5)
    assert view_of(tmp_path).end_offset == 9
    log.close()


# --- storage ----------------------------------------------------------------------------------------------------------


def test_paths_with_a_scheme_go_to_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    assert isinstance(storage_of(str(tmp_path))[0], LocalStorage)
    assert storage_of(f"file://{tmp_path}/")[1] == str(tmp_path)
    assert isinstance(storage_of("mock:///logs")[0], ArrowStorage)
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(OttlaSparkError, match=r"^option path: nowhere://x is on a file system that pyarrow does not"):
        storage_of("nowhere://x")


def test_far_files_read_like_near_ones(tmp_path: Path):
    from pyarrow import fs

    filled(tmp_path, batches=5)
    far = ArrowStorage(fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem()))
    near = LocalStorage()
    assert sorted(far.list("orders-0")) == sorted(near.list(f"{tmp_path}/orders-0"))
    name = f"{0:020d}.log"
    one, two = far.open(f"orders-0/{name}"), near.open(f"{tmp_path}/orders-0/{name}")
    for size, position in ((61, 0), (5000, 2000), (10, 9999)):
        assert one.read(size, position) == two.read(size, position)
        buffer, other = bytearray(size), bytearray(size)
        assert one.fill(memoryview(buffer), position) == two.fill(memoryview(other), position)
        assert buffer == other
    assert one.size() == two.size()
    one.close()
    two.close()
    for storage in (far, near):
        with pytest.raises(FileNotFoundError):
            storage.open("nowhere")
        with pytest.raises(FileNotFoundError):
            storage.list("nowhere")


class Elsewhere:
    """As much of an fsspec file system as reading takes: the files of a directory under another name."""

    protocol = "elsewhere"

    def __init__(self, root: Path) -> None:
        self.root = root
        self.forgotten = 0
        self.reads = 0

    def invalidate_cache(self, path: str | None = None) -> None:
        self.forgotten += 1

    def info(self, path: str) -> dict[str, object]:
        found = self.root / path
        if not found.exists():
            raise FileNotFoundError(path)
        kind = "directory" if found.is_dir() else "file"
        return {"name": path, "type": kind, "size": found.stat().st_size}

    def ls(self, path: str, detail: bool) -> list[dict[str, object]]:
        assert detail
        if self.info(path)["type"] == "file":
            return [self.info(path)]
        inside = [self.info(f"{path}/{each.name}") for each in (self.root / path).iterdir()]
        return [self.info(path), *inside]  # object stores may have an object with the name of the directory

    def cat_file(self, path: str, start: int, end: int) -> bytes:
        self.reads += 1
        return (self.root / path).read_bytes()[start:end]


def test_what_pyarrow_does_not_know_goes_to_fsspec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    filled(tmp_path / "logs")
    system = Elsewhere(tmp_path)
    module = ModuleType("fsspec.core")
    module.url_to_fs = lambda uri: (system, uri.partition("://")[2])  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "fsspec", ModuleType("fsspec"))
    monkeypatch.setitem(sys.modules, "fsspec.core", module)
    (files,) = find_partitions(["elsewhere://logs"], lambda _: True)
    assert files.uri == "elsewhere://logs/orders-0"
    assert read_offsets(tasks(PartitionView(files))) == list(range(20))
    assert system.forgotten > 1
    with pytest.raises(OttlaSparkError, match=r"^option path: elsewhere://nothing does not exist$"):
        find_partitions(["elsewhere://nothing"], lambda _: True)
    with pytest.raises(OttlaSparkError, match=r"^option path: elsewhere://logs/meta.properties is not a directory$"):
        find_partitions(["elsewhere://logs/meta.properties"], lambda _: True)
    with pytest.raises(FileNotFoundError):
        FsspecStorage(system).open("logs")


def test_walking_along_a_far_file_takes_few_reads(tmp_path: Path):
    filled(tmp_path, batches=2_500, segment_bytes=1 << 30)
    system = Elsewhere(tmp_path)
    file = FsspecStorage(system).open(f"orders-0/{0:020d}.log")
    assert len(list(walk_headers(file, 0, file.size()))) == 2_500
    assert system.reads == -(-file.size() // BLOCK_BYTES)


def test_errors_of_any_file_system_name_the_file(tmp_path: Path):
    class Refusing(Elsewhere):
        def ls(self, path: str, detail: bool) -> list[dict[str, object]]:
            raise LookupError("no credentials\nwere found")

    with pytest.raises(OSError, match=r"^logs: no credentials$"):
        FsspecStorage(Refusing(tmp_path)).list("logs")
