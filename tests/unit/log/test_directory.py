"""A log directory through its life: identity, lock, marker, checkpoints, strays, removal, failure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ottla.log.directory import METADATA_PARTITION, LogDirectory, directory_problems, remove_tree
from ottla.log.disk import OsDisk
from ottla.log.errors import StorageError
from ottla.log.files import LogStorage
from ottla.log.names import CLEAN_SHUTDOWN_FILE, CLEANER_CHECKPOINT, LOG_START_CHECKPOINT, TopicPartition
from ottla.log.partition import Partition, create_partition_directory
from ottla.log.recovery import load
from ottla.wire.properties import MetaProperties, write_meta_properties
from tests.unit.log.logs import NOW, TOPIC_ID, batch, config

ORDERS = TopicPartition("orders", 0)
UNIQUE = "0123456789abcdef" * 2


def formatted(path: Path, *, cluster_id: str = "c1", node_id: int = 1, directory_id: bytes = TOPIC_ID) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    identity = MetaProperties(cluster_id, node_id, directory_id)
    (path / "meta.properties").write_bytes(write_meta_properties(identity, NOW))
    return path


def opened(path: Path) -> LogDirectory:
    return LogDirectory.open(LogStorage(OsDisk(durable=False)), str(path))


def with_partition(directory: LogDirectory, partition: TopicPartition = ORDERS, **settings: Any) -> Partition:
    if partition not in directory.found:
        create_partition_directory(directory.disk, f"{directory.path}/{partition}", TOPIC_ID)
        directory.found[partition] = str(partition)
    return load(directory.storage, directory.request_for(partition, config(**settings)), NOW)[0]


def test_a_clean_stop_is_seen_by_the_next_start_and_only_by_it(tmp_path: Path) -> None:
    directory = opened(formatted(tmp_path))
    assert (directory.is_clean, directory.previous_broker_epoch) == (False, -1)
    directory.end(42)
    assert (tmp_path / CLEAN_SHUTDOWN_FILE).read_bytes() == b'{"version":0,"brokerEpoch":42}'
    again = opened(tmp_path)
    assert (again.is_clean, again.previous_broker_epoch) == (True, 42)
    again.begin()
    assert not opened(tmp_path).is_clean


def test_a_marker_that_is_no_json_still_means_clean(tmp_path: Path) -> None:
    (formatted(tmp_path) / CLEAN_SHUTDOWN_FILE).write_bytes(b"?")
    directory = opened(tmp_path)
    assert (directory.is_clean, directory.previous_broker_epoch, len(directory.notes)) == (True, -1, 1)


def test_checkpoints_are_written_and_read_back(tmp_path: Path) -> None:
    directory = opened(formatted(tmp_path))
    partition = with_partition(directory)
    partition.append_as_leader(batch(b"1", b"2", b"3"), 0, NOW)
    partition.update_high_watermark(3)
    partition.flush()
    partition.delete_records(2)
    directory.cleaner_offsets()[ORDERS] = 1
    directory.write_checkpoints([partition])
    directory.write_high_watermarks([partition])
    directory.write_cleaner_offsets()
    again = opened(tmp_path)
    request = again.request_for(ORDERS, config())
    assert (request.log_start_offset, request.recovery_point, request.is_clean) == (2, 3, False)
    assert again.offset(CLEANER_CHECKPOINT, ORDERS) == 1
    assert (tmp_path / "replication-offset-checkpoint").read_text() == "0\n1\norders 0 3\n"


def test_what_stands_behind_a_cut_was_not_compacted(tmp_path: Path) -> None:
    directory = opened(formatted(tmp_path))
    directory.cleaner_offsets()[ORDERS] = 7
    directory.lower_cleaner_offset(ORDERS, 9)
    assert directory.cleaner_offsets() == {ORDERS: 7}
    directory.lower_cleaner_offset(ORDERS, 5)
    directory.lower_cleaner_offset(TopicPartition("never compacted", 0), 5)
    assert directory.cleaner_offsets() == {ORDERS: 5}


def test_a_log_that_starts_with_its_first_segment_is_not_listed(tmp_path: Path) -> None:
    directory = opened(formatted(tmp_path))
    directory.write_checkpoints([with_partition(directory)])
    assert (tmp_path / LOG_START_CHECKPOINT).read_text() == "0\n0\n"


def test_the_metadata_log_is_in_no_checkpoint_and_always_recovered(tmp_path: Path) -> None:
    directory = opened(formatted(tmp_path))
    partition = with_partition(directory, METADATA_PARTITION)
    directory.write_checkpoints([partition])
    directory.end(1)
    assert (tmp_path / "recovery-point-offset-checkpoint").read_text() == "0\n0\n"
    assert opened(tmp_path).request_for(METADATA_PARTITION, config()).is_clean is False


def test_an_unreadable_checkpoint_is_noted_and_ignored(tmp_path: Path) -> None:
    (formatted(tmp_path) / "recovery-point-offset-checkpoint").write_text("garbage")
    directory = opened(tmp_path)
    assert "recovery-point-offset-checkpoint is ignored" in directory.notes[0]


def test_what_is_found_and_what_is_odd(tmp_path: Path) -> None:
    formatted(tmp_path)
    for name in (
        "orders-0",
        "a-b-12",
        f"old-3.{UNIQUE}-delete",
        f"lost-1.{UNIQUE}-stray",
        f"new-2.{UNIQUE}-future",
        "odd",
    ):
        (tmp_path / name).mkdir()
    (tmp_path / "a plain file").touch()
    directory = opened(tmp_path)
    assert directory.found == {ORDERS: "orders-0", TopicPartition("a-b", 12): "a-b-12"}
    assert directory.take_leaving() == [f"{tmp_path}/old-3.{UNIQUE}-delete"]
    assert directory.futures == {TopicPartition("new", 2): f"new-2.{UNIQUE}-future"}
    (note,) = directory.notes
    assert "odd is not a partition directory" in note


def test_a_removed_partition_goes_by_name_first(tmp_path: Path) -> None:
    directory = opened(formatted(tmp_path))
    partition = with_partition(directory)
    partition.append_as_leader(batch(b"1"), 0, NOW)
    directory.remove_partition(partition, UNIQUE)
    assert directory.found == {}
    (leaving,) = directory.take_leaving()
    assert leaving == f"{tmp_path}/orders-0.{UNIQUE}-delete"
    remove_tree(directory.disk, leaving)
    assert not Path(leaving).exists()


def test_a_stray_is_set_aside_with_its_data(tmp_path: Path) -> None:
    directory = opened(formatted(tmp_path))
    with_partition(directory).close()
    name = directory.set_aside(ORDERS, UNIQUE)
    assert name == f"orders-0.{UNIQUE}-stray"
    assert (tmp_path / name / "partition.metadata").exists()
    assert opened(tmp_path).found == {}


class FailingDisk(OsDisk):
    """Refuses every rename."""

    def rename(self, source: str, target: str) -> None:
        raise OSError(28, "No space left on device", target)


def test_a_directory_goes_offline_alone_and_leaves_no_marker(tmp_path: Path) -> None:
    failing = LogDirectory.open(LogStorage(FailingDisk(durable=False)), str(formatted(tmp_path / "a")))
    sound = opened(formatted(tmp_path / "b"))
    with pytest.raises(StorageError, match="No space left"):
        failing.write_cleaner_offsets()
    assert failing.is_offline
    with pytest.raises(StorageError, match="offline"):
        failing.end(1)
    assert not (tmp_path / "a" / CLEAN_SHUTDOWN_FILE).exists()
    sound.end(1)
    assert not sound.is_offline


def test_what_must_not_start_is_said_with_what_to_do(tmp_path: Path) -> None:
    good = formatted(tmp_path / "good")
    other_node = formatted(tmp_path / "node", node_id=2, directory_id=b"1" * 16)
    other_cluster = formatted(tmp_path / "cluster", cluster_id="c2", directory_id=b"2" * 16)
    copied = formatted(tmp_path / "copy")
    (tmp_path / "empty").mkdir()
    paths = [str(path) for path in (good, other_node, other_cluster, copied, tmp_path / "empty")]
    problems = directory_problems(paths, lambda path: opened(Path(path)), cluster_id=None, node_id=1)
    expected = ["belongs to node 2, not to node 1", "same directory.id", "is not formatted", "cluster c2, not to c1"]
    assert len(problems) == len(expected)
    for part in expected:
        assert any(part in problem for problem in problems)
    assert directory_problems(paths[:1], lambda path: opened(Path(path)), cluster_id="c1", node_id=1) == []


def test_a_partition_that_has_come_gets_its_name(tmp_path: Path) -> None:
    directory = opened(formatted(tmp_path))
    partition = with_partition(directory)
    partition.rename_directory(f"{tmp_path}/orders-0.{UNIQUE}-future")
    directory.found.clear()
    directory.futures[ORDERS] = f"orders-0.{UNIQUE}-future"
    directory.admit(partition)
    assert (directory.found, directory.futures) == ({ORDERS: "orders-0"}, {})
    assert (tmp_path / "orders-0").is_dir()
    partition.close()


def test_a_copy_that_is_not_loaded_is_promoted_or_dropped(tmp_path: Path) -> None:
    formatted(tmp_path)
    for name in (f"orders-0.{UNIQUE}-future", f"a-b-12.{UNIQUE}-future"):
        (tmp_path / name).mkdir()
    directory = opened(tmp_path)
    directory.promote(ORDERS)
    directory.drop_future(TopicPartition("a-b", 12), UNIQUE)
    assert (directory.found, directory.futures) == ({ORDERS: "orders-0"}, {})
    assert directory.take_leaving() == [f"{tmp_path}/a-b-12.{UNIQUE}-delete"]
