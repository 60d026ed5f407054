"""DescribeLogDirs and AlterReplicaLogDirs on a node with two directories."""

import errno
import shutil
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ottla.broker.replicas.partition_loader import PartitionLoader
from ottla.core.metadata.topic_image import PartitionImage
from ottla.core.metadata.uuids import UNASSIGNED
from ottla.log.directory import LogDirectory, remove_tree
from ottla.log.disk import OsDisk, OsFile
from ottla.log.names import TopicPartition
from ottla.log.recovery import LoadRequest
from ottla.wire.errors import ErrorCode
from ottla.wire.types.alter_replica_log_dirs import AlterReplicaLogDirsRequest
from ottla.wire.types.delete_records import DeleteRecordsRequest
from ottla.wire.types.delete_topics import DeleteTopicsRequest
from ottla.wire.types.describe_log_dirs import DescribeLogDirsRequest
from ottla.wire.types.incremental_alter_configs import IncrementalAlterConfigsRequest
from tests.component.broker.log_dirs import (
    BROKER,
    CopyingDisk,
    Held,
    arrival,
    describe,
    limit_rate,
    move,
    other,
    place_of,
    two_dirs,
)
from tests.component.broker.raw_client import RunningNode, Topic, batch, running_node, values
from tests.component.broker.transactional_producer import Producer

MANY = [b"%05d" % number + bytes(2_000) for number in range(300)]


@pytest.fixture
def running(tmp_path: Path) -> Iterator[RunningNode]:
    with two_dirs(tmp_path) as node:
        yield node


# --- what is there


def test_new_partitions_go_where_the_fewest_are(running: RunningNode):
    topic = running.client.topic(partitions=6)
    found = describe(running.client, topic.name, numbers=tuple(range(6)))
    assert [len(found["a"]), len(found["b"])] == [3, 3]


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5])
def test_sizes_are_shown_in_every_version(running: RunningNode, version: int):
    topic = running.client.topic()
    assert running.client.produce(topic, batch(b"a", b"b")).error_code == 0
    found = describe(running.client, topic.name, version=version)
    (held,) = [held for each in found.values() for held in each.values()]
    assert held == Held(len(batch(b"a", b"b")), 0, is_future=False)


def test_no_list_is_all_and_an_empty_one_nothing(running: RunningNode):
    topic = running.client.topic(partitions=2)
    everything = describe(running.client)
    assert {(topic.name, 0), (topic.name, 1)} <= everything["a"].keys() | everything["b"].keys()
    nothing = running.client.ask(DescribeLogDirsRequest(()), 5)
    assert [result.topics for result in nothing.results] == [(), ()]
    assert describe(running.client, "missing") == {"a": {}, "b": {}}


def test_the_size_of_the_volume_is_that_of_the_system(running: RunningNode, tmp_path: Path):
    first, second = running.client.ask(DescribeLogDirsRequest(()), 5).results
    assert [first.log_dir, second.log_dir] == [f"{tmp_path}/a", f"{tmp_path}/b"]
    assert first.total_bytes == shutil.disk_usage(tmp_path).total
    assert 0 < first.usable_bytes <= first.total_bytes


def test_a_cordoned_directory_takes_no_new_replicas(running: RunningNode, tmp_path: Path):
    kind = IncrementalAlterConfigsRequest
    change = kind.AlterableConfig("cordoned.log.dirs", 0, f"{tmp_path}/a/")
    answer = running.client.ask(kind((kind.AlterConfigsResource(BROKER, "1", (change,)),)), 1)
    assert answer.responses[0].error_code == 0, answer
    assert [each.is_cordoned for each in running.client.ask(DescribeLogDirsRequest(()), 5).results] == [True, False]
    topic = running.client.topic(partitions=4)
    assert len(describe(running.client, topic.name, numbers=(0, 1, 2, 3))["b"]) == 4


def test_who_may_not_describe_or_alter_the_cluster_learns_nothing(tmp_path: Path):
    with running_node(tmp_path / "a", authorizer=lambda *asked: False) as node:
        described = node.client.ask(DescribeLogDirsRequest(None), 5)
        assert (described.error_code, described.results) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ())
        assert move(node.client, tmp_path / "a", "t", 0, 1) == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED] * 2


# --- asking for a move


@pytest.mark.parametrize("version", [1, 2])
def test_what_cannot_be_moved_is_refused(running: RunningNode, tmp_path: Path, version: int):
    topic, client = running.client.topic(), running.client
    assert move(client, "/nowhere", topic.name, 0, 9, version=version) == [ErrorCode.LOG_DIR_NOT_FOUND] * 2
    assert move(client, "a", topic.name, version=version) == [ErrorCode.LOG_DIR_NOT_FOUND]
    assert move(client, f"{tmp_path}/a/", topic.name, version=version) == [ErrorCode.LOG_DIR_NOT_FOUND]
    assert move(client, tmp_path / "a", topic.name, 9, version=version) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert move(client, tmp_path / "a", "missing", version=version) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert move(client, tmp_path / "a", "x" * 240, version=version) == [ErrorCode.INVALID_TOPIC_EXCEPTION]


def test_of_two_wishes_the_later_one_counts(running: RunningNode, tmp_path: Path):
    topic, client = running.client.topic(), running.client
    client.produce(topic, batch(b"a"))
    kind = AlterReplicaLogDirsRequest
    place = place_of(client, topic.name)
    asked = (kind.AlterReplicaLogDirTopic(topic.name, (0,)),)
    dirs = tuple(kind.AlterReplicaLogDir(f"{tmp_path}/{each}", asked) for each in (other(place), place))
    (answer,) = client.ask(kind(dirs), 2).results
    assert [each.error_code for each in answer.partitions] == [0]
    assert describe(client, topic.name)[other(place)] == {}


def test_a_partition_that_is_there_already_stays(running: RunningNode, tmp_path: Path):
    topic, client = running.client.topic(), running.client
    client.produce(topic, batch(b"a"))
    place = place_of(client, topic.name)
    assert move(client, tmp_path / place, topic.name) == [0]
    assert describe(client, topic.name)[other(place)] == {}


def test_a_partition_without_records_is_there_at_once(running: RunningNode, tmp_path: Path):
    topic, client = running.client.topic(), running.client
    place = place_of(client, topic.name)
    assert move(client, tmp_path / other(place), topic.name) == [0]
    assert place_of(client, topic.name) == other(place)
    client.produce(topic, batch(b"a"))
    assert (tmp_path / other(place) / f"{topic.name}-0").is_dir()


# --- moving


def test_a_partition_arrives_with_all_its_records(running: RunningNode, tmp_path: Path):
    topic, client = running.client.topic(), running.client
    for value in MANY:
        assert client.produce(topic, batch(value)).error_code == 0
    place = place_of(client, topic.name)
    before = client.fetch(topic, max_bytes=1 << 24, partition_max_bytes=1 << 24)
    assert move(client, tmp_path / other(place), topic.name) == [0]
    arrival(client, topic.name, other(place))
    after = client.fetch(topic, max_bytes=1 << 24, partition_max_bytes=1 << 24)
    assert (bytes(after.records), after.high_watermark) == (bytes(before.records), len(MANY))
    assert (tmp_path / other(place) / f"{topic.name}-0").is_dir()
    assert not (tmp_path / place / f"{topic.name}-0").exists()
    assert len(list((tmp_path / place).glob(f"{topic.name}-0.*-delete"))) == 1
    image = running.node.image.partition(topic.name, 0)
    assert image is not None
    directory = next(each for each in running.node.storage.directories if each.path.endswith(other(place)))
    assert image.directory_of(1) == directory.properties.directory_id
    assert client.produce(topic, batch(b"more")).base_offset == len(MANY)


def test_what_is_written_meanwhile_arrives_too(running: RunningNode, tmp_path: Path):
    topic, client = running.client.topic(), running.client
    for value in MANY:
        client.produce(topic, batch(value))
    place = place_of(client, topic.name)
    limit_rate(client, 100_000)
    move(client, tmp_path / other(place), topic.name)
    (future,) = describe(client, topic.name)[other(place)].values()
    assert future.is_future
    written = list(MANY)
    for number in range(200):
        if number == 100:
            limit_rate(client, None)
        value = b"meanwhile %d" % number
        answer = client.produce(topic, batch(value, producer_id=7, producer_epoch=0, base_sequence=number))
        assert (answer.error_code, answer.base_offset) == (0, len(written))
        written.append(value)
    arrival(client, topic.name, other(place))
    # What the producer had sent is known in the new place, too.
    again = client.produce(topic, batch(written[-1], producer_id=7, producer_epoch=0, base_sequence=199))
    assert (again.error_code, again.base_offset) == (0, len(written) - 1)
    assert values(client.fetch(topic, max_bytes=1 << 24, partition_max_bytes=1 << 24)) == written


def test_a_node_that_waits_for_the_disk_moves_partitions_too(tmp_path: Path):
    with two_dirs(tmp_path, ottla_fsync="true") as node:
        topic, client = node.client.topic(), node.client
        place = place_of(client, topic.name)
        for number in range(60):
            if number == 30:
                move(client, tmp_path / other(place), topic.name)
            assert client.produce(topic, batch(b"%d" % number)).base_offset == number
        arrival(client, topic.name, other(place))
        assert client.produce(topic, batch(b"60")).base_offset == 60
        assert values(client.fetch(topic)) == [b"%d" % number for number in range(61)]


def test_the_way_can_be_watched_and_called_back(running: RunningNode, tmp_path: Path):
    topic, client = running.client.topic(), running.client
    for value in MANY:
        client.produce(topic, batch(value))
    place = place_of(client, topic.name)
    limit_rate(client, 1)
    move(client, tmp_path / other(place), topic.name)
    (future,) = describe(client, topic.name)[other(place)].values()
    assert future.is_future
    assert 0 < future.lag <= len(MANY)
    assert list((tmp_path / other(place)).glob(f"{topic.name}-0.*-future"))
    assert move(client, tmp_path / place, topic.name) == [0]
    assert describe(client, topic.name)[other(place)] == {}
    assert not list((tmp_path / other(place)).glob(f"{topic.name}-0.*-future"))
    assert len(values(client.fetch(topic, max_bytes=1 << 24, partition_max_bytes=1 << 24))) == len(MANY)


def test_a_partition_can_be_called_back_while_its_copy_is_synced(tmp_path: Path):
    disk = SlowDisk()
    with two_dirs(tmp_path, disk=disk) as running:
        topic, client = running.client.topic(), running.client
        client.produce(topic, batch(b"a"))
        place = place_of(client, topic.name)
        disk.is_slow = True
        move(client, tmp_path / other(place), topic.name)
        on_its_way = running.node.log_dir_moves.by_key[TopicPartition(topic.name, 0)]
        assert any(on_its_way.job is not None or disk.let_go.wait(0.005) for _ in range(4_000))
        threading.Timer(0.05, disk.let_go.set).start()
        assert move(client, tmp_path / place, topic.name) == [0]
        assert describe(client, topic.name)[other(place)] == {}
        assert disk.let_go.wait(20)
        running.change(running.node.offload.finish_all)
        assert not any(directory.is_offline for directory in running.node.storage.directories)
        assert client.produce(topic, batch(b"b")).base_offset == 1


class SlowDisk(OsDisk):
    """Whose syncs of copies wait until they are let go."""

    def __init__(self) -> None:
        super().__init__(durable=False)
        self.is_slow = False
        self.let_go = threading.Event()

    def sync_directory(self, path: str) -> None:
        if self.is_slow and path.endswith("-future") and threading.current_thread().name.startswith("ottla-disk"):
            self.let_go.wait(20)
            self.list_directory(path)  # a name that is gone cannot be synced
        super().sync_directory(path)


CUT = "00000000000000000001.log.cut"


def damaged(directory: Path, topic: str) -> Path:
    """Damage the second of three batches of a node that was killed; gives the partition's directory."""
    (log,) = directory.glob(f"*/{topic}-0/*0.log")
    data = bytearray(log.read_bytes())
    data[len(data) // 3 + 65] ^= 0xFF
    log.write_bytes(data)
    return log.parent


@contextmanager
def node_with_cut(directory: Path, disk: OsDisk | None = None) -> Iterator[tuple[RunningNode, Topic, Path]]:
    """A node whose recovery has cut sound batches off a partition, in the directory `a` or `b`."""
    with two_dirs(directory) as running:
        topic = running.client.topic()
        for value in (b"a", b"b", b"c"):
            running.client.produce(topic, batch(value))
        running.change(lambda: [shutil.copytree(directory / each, directory / f"{each}-killed") for each in "ab"])
    for each in "ab":
        shutil.rmtree(directory / each)
        (directory / f"{each}-killed").rename(directory / each)
    path = damaged(directory, topic.name)
    with two_dirs(directory, disk=disk) as running:
        assert [file.name for file in path.glob("*.cut")] == [CUT]
        yield running, topic, path


def test_what_recovery_has_cut_moves_with_its_partition_and_goes_with_its_topic(tmp_path: Path):
    with node_with_cut(tmp_path) as (running, topic, path):
        kept = (path / CUT).read_bytes()
        place = other(path.parent.name)
        assert move(running.client, tmp_path / place, topic.name) == [0]
        arrival(running.client, topic.name, place)
        assert (tmp_path / place / path.name / CUT).read_bytes() == kept
        assert running.node.replicas.by_key[topic.name, 0].log.cuts == {CUT: 1}
        kind = DeleteTopicsRequest
        running.client.ask(kind(topics=(kind.DeleteTopicState(topic.name),)), 6)
        running.change(
            lambda: remove_tree(running.node.disk, running.node.storage.directories[place == "b"].take_leaving()[0])
        )
    assert not list((tmp_path / place).rglob("*.cut"))


class NarrowDisk(OsDisk):
    """Has no room for what recovery has cut."""

    def open(self, path: str, *, create: bool = False) -> OsFile:
        if "-future" in path and path.endswith(".cut.tmp"):
            raise OSError(errno.ENOSPC, "No space left on device", path)
        return super().open(path, create=create)


def test_a_partition_stays_where_it_is_if_what_was_cut_cannot_come_along(tmp_path: Path):
    with node_with_cut(tmp_path, NarrowDisk(durable=False)) as (running, topic, path):
        assert move(running.client, tmp_path / other(path.parent.name), topic.name) == [0]
        arrival(running.client, topic.name, path.parent.name)
        assert (path / CUT).exists()
        assert not any(directory.is_offline for directory in running.node.storage.directories)
        assert running.client.produce(topic, batch(b"d")).base_offset == 1


def test_records_that_were_deleted_are_not_copied(running: RunningNode, tmp_path: Path):
    topic, client = running.client.topic(), running.client
    for value in MANY[:20]:
        client.produce(topic, batch(value, value, value))
    kind = DeleteRecordsRequest
    deleted = kind.DeleteRecordsTopic(topic.name, (kind.DeleteRecordsPartition(0, 31),))
    assert client.ask(kind((deleted,), 5_000), 2).topics[0].partitions[0].low_watermark == 31
    place = place_of(client, topic.name)
    move(client, tmp_path / other(place), topic.name)
    arrival(client, topic.name, other(place))
    assert client.fetch(topic, 30).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    found = client.fetch(topic, 31)
    assert (found.log_start_offset, found.high_watermark) == (31, 60)
    (held,) = describe(client, topic.name)[other(place)].values()
    assert held.size_bytes == 10 * len(batch(*[MANY[0]] * 3))


def test_a_partition_whose_records_are_all_deleted_can_be_moved(running: RunningNode, tmp_path: Path):
    topic, client = running.client.topic(), running.client
    client.produce(topic, batch(b"a", b"b"))
    kind = DeleteRecordsRequest
    client.ask(kind((kind.DeleteRecordsTopic(topic.name, (kind.DeleteRecordsPartition(0, -1),)),), 5_000), 2)
    place = place_of(client, topic.name)
    move(client, tmp_path / other(place), topic.name)
    arrival(client, topic.name, other(place))
    assert client.produce(topic, batch(b"c")).base_offset == 2
    found = client.fetch(topic, 2)
    assert (found.log_start_offset, values(found)) == (2, [b"c"])


def test_a_topic_can_be_deleted_on_its_way(running: RunningNode, tmp_path: Path):
    topic, client = running.client.topic(), running.client
    for value in MANY:
        client.produce(topic, batch(value))
    place = place_of(client, topic.name)
    limit_rate(client, 1)
    move(client, tmp_path / other(place), topic.name)
    kind = DeleteTopicsRequest
    assert client.ask(kind((kind.DeleteTopicState(topic.name),), (), 5_000), 6).responses[0].error_code == 0
    assert describe(client, topic.name) == {"a": {}, "b": {}}
    left = [path.name for each in ("a", "b") for path in (tmp_path / each).glob(f"{topic.name}-0*")]
    assert all(name.endswith("-delete") for name in left), left
    assert len(left) == 2


def test_a_move_goes_on_after_a_clean_stop(tmp_path: Path):
    with two_dirs(tmp_path) as node:
        topic, client = node.client.topic(), node.client
        for value in MANY:
            client.produce(topic, batch(value))
        place = place_of(client, topic.name)
        limit_rate(client, 1)
        move(client, tmp_path / other(place), topic.name)
    with two_dirs(tmp_path) as node:
        limit_rate(node.client, None)
        arrival(node.client, topic.name, other(place))
        found = node.client.fetch(topic, max_bytes=1 << 24, partition_max_bytes=1 << 24)
        assert values(found) == MANY
        assert node.client.produce(topic, batch(b"more")).base_offset == len(MANY)


@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_aborted_transactions_stay_hidden_after_a_move(running: RunningNode, tmp_path: Path, when: str):
    topic, client = running.client.topic(), running.client
    place = place_of(client, topic.name)
    producer = Producer(client)
    producer.init()
    now_ms = time.time_ns() // 1_000_000  # as the markers, in one segment with them
    client.produce(topic, batch(b"first", timestamp=now_ms))
    producer.produce(topic, b"aborted")
    if when == "before":
        producer.end(committed=False)
    move(client, tmp_path / other(place), topic.name)
    arrival(client, topic.name, other(place))
    if when == "meanwhile":
        assert client.fetch(topic, isolation_level=1).last_stable_offset == 1
        producer.end(committed=False)
    client.produce(topic, batch(b"last", timestamp=now_ms))
    found = client.fetch(topic, isolation_level=1)
    assert [(each.producer_id, each.first_offset) for each in found.aborted_transactions] == [(producer.producer_id, 1)]
    assert found.last_stable_offset == found.high_watermark == 4
    producer.produce(topic, b"kept")
    producer.end(committed=True)
    assert client.fetch(topic, isolation_level=1).last_stable_offset == 6


# --- crashes


def test_a_crash_at_any_step_of_a_move_loses_nothing(tmp_path: Path):
    disk = CopyingDisk(tmp_path / "data", tmp_path / "images")
    with two_dirs(tmp_path / "data", disk=disk) as node:
        topic, client = node.client.topic(), node.client
        for value in MANY[:60]:
            client.produce(topic, batch(value))
        place = place_of(client, topic.name)
        node.change(lambda: setattr(disk, "is_watching", True))
        move(client, tmp_path / "data" / other(place), topic.name)
        arrival(client, topic.name, other(place))
        node.change(lambda: setattr(disk, "is_watching", False))
    assert len(disk.images) > 10
    for image in disk.images:
        with two_dirs(image) as node:
            found = node.client.fetch(topic, max_bytes=1 << 24, partition_max_bytes=1 << 24)
            assert values(found) == MANY[:60], image
            assert node.client.produce(topic, batch(b"more")).base_offset == 60
            if list(image.glob(f"?/{topic.name}-0.*-future")):
                arrival(node.client, topic.name, other(place))
            assert len(list(image.glob(f"?/{topic.name}-0"))) == 1, image
            assert values(node.client.fetch(topic, 60)) == [b"more"]


def test_a_directory_that_fails_stops_the_moves_to_it_alone(tmp_path: Path):
    with two_dirs(tmp_path) as node:
        topic, client = node.client.topic(), node.client
        for value in MANY:
            client.produce(topic, batch(value))
        if place_of(client, topic.name) == "b":
            move(client, tmp_path / "a", topic.name)
            arrival(client, topic.name, "a")
        limit_rate(client, 1)
        move(client, tmp_path / "b", topic.name)
        target = node.node.storage.directories[1]
        failure = OSError(errno.EIO, "the disk has failed")
        node.change(lambda: node.node.replicas.directory_failed(target, target.storage.fail(failure, "a test")))
        limit_rate(client, None)
        answer = client.ask(DescribeLogDirsRequest(None), 5)
        assert [each.error_code for each in answer.results] == [0, ErrorCode.KAFKA_STORAGE_ERROR]
        assert client.produce(topic, batch(b"more")).base_offset == len(MANY)
        assert move(client, tmp_path / "b", topic.name) == [ErrorCode.KAFKA_STORAGE_ERROR]


def test_a_directory_that_cannot_be_read_at_the_start_is_offline(tmp_path: Path):
    with two_dirs(tmp_path) as node:
        topic = node.client.topic(partitions=4)
        for number in range(4):
            node.client.produce(topic, batch(b"a"), partition=number)
        places = {number: place_of(node.client, topic.name, number) for number in range(4)}
    (tmp_path / "b").rename(tmp_path / "elsewhere")
    (tmp_path / "b").write_text("no directory")
    with two_dirs(tmp_path) as node:
        answer = node.client.ask(DescribeLogDirsRequest(None), 5)
        assert [each.error_code for each in answer.results] == [0, ErrorCode.KAFKA_STORAGE_ERROR]
        for number, place in places.items():
            code = node.client.fetch(topic, partition=number).error_code
            assert (code == 0) is (place == "a"), number
            assert (node.client.produce(topic, batch(b"b"), partition=number).error_code == 0) is (place == "a")
        led = node.client.topic(partitions=2)  # new ones go where there is room
        assert node.client.produce(led, batch(b"c"), partition=1).error_code == 0
        assert move(node.client, tmp_path / "b", led.name) == [ErrorCode.KAFKA_STORAGE_ERROR]
    (tmp_path / "b").unlink()
    (tmp_path / "elsewhere").rename(tmp_path / "b")
    with two_dirs(tmp_path) as node:
        for number, place in places.items():
            expected = [b"a", b"b"] if place == "a" else [b"a"]
            assert values(node.client.fetch(topic, partition=number)) == expected
            assert place_of(node.client, topic.name, number) == place


def test_what_lies_in_a_directory_that_fails_while_it_is_loaded_stays_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    with two_dirs(tmp_path) as node:
        topic = node.client.topic(partitions=4)
        for number in range(4):
            node.client.produce(topic, batch(b"a"), partition=number)
        places = {number: place_of(node.client, topic.name, number) for number in range(4)}
    assert set(places.values()) == {"a", "b"}

    def failing(loader: PartitionLoader, directory: LogDirectory, request: LoadRequest) -> Generator[object, None, Any]:
        if directory.path.endswith("b"):
            raise directory.storage.fail(OSError(errno.EIO, "Input/output error"), "load")
        return (yield from steps(loader, directory, request))

    steps = PartitionLoader._steps
    with monkeypatch.context() as broken:
        broken.setattr(PartitionLoader, "_steps", failing)
        broken.setattr(PartitionImage, "directory_of", lambda *_: UNASSIGNED)  # the controller was not told in time
        with two_dirs(tmp_path) as node:
            for number, place in places.items():
                code = node.client.produce(topic, batch(b"b"), partition=number).error_code
                assert (code == 0) is (place == "a"), number
    with two_dirs(tmp_path) as node:
        assert {number: place_of(node.client, topic.name, number) for number in range(4)} == places


def test_a_second_copy_is_thrown_away_at_the_start(tmp_path: Path):
    with two_dirs(tmp_path) as node:
        topic, client = node.client.topic(), node.client
        client.produce(topic, batch(b"a"))
        place = place_of(client, topic.name)
    shutil.copytree(tmp_path / place / f"{topic.name}-0", tmp_path / place / f"{topic.name}-0.{'7' * 32}-future")
    with two_dirs(tmp_path) as node:
        assert place_of(node.client, topic.name) == place
        assert not list(tmp_path.glob("*/*-future"))


def test_the_copy_of_a_topic_that_nobody_knows_is_set_aside(tmp_path: Path):
    with two_dirs(tmp_path) as node:
        node.client.produce(node.client.topic(), batch(b"a"))
    (found,) = tmp_path.glob("?/t*-0")
    shutil.copytree(found, found.parent / f"gone-0.{'7' * 32}-future")
    with two_dirs(tmp_path):
        assert not list(tmp_path.glob("*/*-future"))
        assert len(list(tmp_path.glob("*/gone-0.*-stray"))) == 1
