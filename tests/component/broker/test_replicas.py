"""Partitions of a node: what is acknowledged when, what a failing disk does, where replicas go."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from ottla.broker.config.node_config import NodeConfig
from ottla.broker.node import Node
from ottla.broker.replicas.storage import StorageProblem
from ottla.core.metadata.topic_image import PartitionImage
from ottla.core.metadata.uuids import UNASSIGNED
from ottla.log.disk import Buffer, OsDisk, OsFile
from ottla.wire.errors import ErrorCode
from ottla.wire.types import CreateTopicsRequest, DeleteTopicsRequest, MetadataRequest
from tests.component.broker.raw_client import (
    Connection,
    RawClient,
    RunningNode,
    Topic,
    batch,
    produce_request,
    running_node,
    values,
)


class TestDisk(OsDisk):
    """A disk whose syncs can be held up, and on which directories and files can break or be full."""

    __test__ = False

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()
        self.gate.set()
        self.broken: set[str] = set()
        self.full: set[str] = set()
        """Parts of the paths of files that cannot grow."""

    def open(self, path: str, *, create: bool = False) -> OsFile:
        opened = super().open(path, create=create)
        return TestFile(os.dup(opened.fileno()), self, path)

    def check(self, path: str) -> None:
        if any(path.startswith(f"{each}/") for each in self.broken):
            raise OSError(errno.EIO, "Input/output error")
        if any(each in path for each in self.full):
            raise OSError(errno.ENOSPC, "No space left on device")


class TestFile(OsFile):
    __test__ = False

    def __init__(self, descriptor: int, disk: TestDisk, path: str) -> None:
        super().__init__(descriptor)
        self._disk = disk
        self._path = path

    def write(self, buffers: Sequence[Buffer], position: int) -> None:
        self._disk.check(self._path)
        super().write(buffers, position)

    def sync(self) -> None:
        if self._path.endswith(".log") and "__cluster_metadata" not in self._path:
            assert self._disk.gate.wait(20)
        self._disk.check(self._path)
        super().sync()


class FailableNode(RunningNode):
    """A node on a test disk that notes why it could not go on."""

    def __init__(self, directory: Path, **settings: object) -> None:
        self.disk = TestDisk()
        self.reasons: list[str] = []
        super().__init__(directory, disk=self.disk, on_fatal=self.reasons.append, **settings)

    def end(self) -> None:
        """Stop it, cleanly if it can, unless that was done."""
        if self._loop.is_closed():
            return
        self.disk.gate.set()
        if self._client is not None:
            self._client.close()
        self._end_loop()

    def _end_loop(self) -> None:
        step = self.node.kill() if self.reasons else self.node.stop()
        try:
            asyncio.run_coroutine_threadsafe(step, self._loop).result(20)
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(20)
            self._loop.close()


Make = Callable[..., FailableNode]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[FailableNode] = []

    def make(**settings: object) -> FailableNode:
        running = FailableNode(tmp_path / "one", **settings)
        made.append(running)
        running.start()
        return running

    yield make
    for running in made:
        running.end()


def send(client: RawClient, topic: Topic, acks: int) -> tuple[Connection, int]:
    connection = client.connect()
    return connection, connection.send(produce_request(topic, {0: batch(b"x")}, acks=acks), 13)


# --- acknowledgements -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("acks", [1, -1])
def test_with_fsync_nothing_is_acknowledged_before_it_is_synced(make: Make, acks: int):
    running = make(ottla_fsync=True)
    topic = running.client.topic()
    running.client.produce(topic, batch(b"first"))
    running.disk.gate.clear()
    connection, number = send(running.client, topic, acks)
    assert connection.is_silent(0.1)
    assert values(running.client.fetch(topic)) == [b"first"], "and nobody reads it"
    running.disk.gate.set()
    assert connection.receive(0, 13, number).responses[0].partition_responses[0].base_offset == 1
    connection.close()
    assert values(running.client.fetch(topic)) == [b"first", b"x"]


def test_what_comes_during_a_sync_shares_the_next_one(make: Make):
    running = make(ottla_fsync=True)
    topic = running.client.topic()
    running.disk.gate.clear()
    waiting = [send(running.client, topic, -1) for _ in range(10)]
    assert waiting[-1][0].is_silent(0.1)
    running.disk.gate.set()
    offsets = []
    for connection, number in waiting:
        offsets.append(connection.receive(0, 13, number).responses[0].partition_responses[0].base_offset)
        connection.close()
    assert sorted(offsets) == list(range(10))


def test_without_fsync_an_acknowledgement_does_not_wait_for_the_disk(make: Make):
    running = make()
    topic = running.client.topic()
    running.disk.gate.clear()
    assert running.client.produce(topic, batch(b"x")).error_code == 0


def test_a_topic_that_flushes_every_message_waits_for_the_disk(make: Make):
    running = make()
    topic = running.client.topic(flush_messages=1)
    running.disk.gate.clear()
    connection, number = send(running.client, topic, -1)
    assert connection.is_silent(0.1)
    running.disk.gate.set()
    assert connection.receive(0, 13, number).responses[0].partition_responses[0].error_code == 0
    connection.close()


# --- failures ---------------------------------------------------------------------------------------------------------


def leaders(client: RawClient, topic: Topic) -> dict[int, int]:
    asked = MetadataRequest((MetadataRequest.MetadataRequestTopic(name=topic.name),), False)
    return {each.partition_index: each.leader_id for each in client.ask(asked, 13).topics[0].partitions}


def in_four_partitions(running: FailableNode) -> Topic:
    """A topic with a record in each of its partitions."""
    topic = running.client.topic(partitions=4)
    for partition in range(4):
        assert running.client.produce(topic, batch(b"x"), partition=partition).error_code == 0
    return topic


def test_a_failed_directory_takes_its_partitions_offline_and_the_others_go_on(make: Make, tmp_path: Path):
    one, two = tmp_path / "one", tmp_path / "two"
    running = make(log_dirs=f"{one},{two}")
    topic = in_four_partitions(running)
    there = {int(path.name.rpartition("-")[2]) for path in two.glob(f"{topic.name}-*")}
    assert len(there) == 2, "partitions are spread over the directories"
    running.disk.broken.add(str(two))
    lost = min(there)
    assert running.client.produce(topic, batch(b"y"), partition=lost).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    kept = min(set(range(4)) - there)
    assert running.client.produce(topic, batch(b"y"), partition=kept).base_offset == 1
    running.until(lambda: {each for each, leader in leaders(running.client, topic).items() if leader == -1} == there)
    for partition in there:
        assert running.client.fetch(topic, partition=partition).error_code != 0
    assert running.reasons == []
    assert not (two / ".kafka_cleanshutdown").exists()


def test_a_full_directory_is_told_to_the_controller_and_holds_no_half_batch(make: Make, tmp_path: Path):
    one, two = tmp_path / "one", tmp_path / "two"
    running = make(log_dirs=f"{one},{two}")
    topic = in_four_partitions(running)
    lost = min(int(path.name.rpartition("-")[2]) for path in two.glob(f"{topic.name}-*"))
    assert len(running.node.image.brokers[1].log_dirs) == 2
    running.disk.full.add(f"{two}/")
    assert running.client.produce(topic, batch(b"y"), partition=lost).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    running.until(lambda: len(leaders(running.client, topic)) == 4 and leaders(running.client, topic)[lost] == -1)
    (offline,) = [each for each in running.node.storage.directories if each.is_offline]
    assert offline.path == str(two)
    running.end()
    again = make(log_dirs=f"{one},{two}")
    again.until(lambda: leaders(again.client, topic)[lost] == 1)
    assert again.client.produce(topic, batch(b"z"), partition=lost).base_offset == 1


@pytest.mark.parametrize("name", ["__cluster_metadata-0/0", ".checkpoint"])
def test_a_node_without_room_for_its_metadata_ends_and_acknowledges_nothing(make: Make, name: str):
    running = make()
    kept = running.client.topic()
    running.disk.full.add(name)
    if name == ".checkpoint":
        running.snapshot_metadata()
    else:
        kind = CreateTopicsRequest
        topic = kind.CreatableTopic("lost", 1, 1)
        answered = running.client.ask(kind((topic,), 1_000), 7).topics[0].error_code
        assert answered != 0
    assert "No space left on device" in running.reasons[0]
    running.end()
    assert set(make().node.image.topics_by_name) == {kept.name}


def test_without_its_last_directory_a_node_cannot_go_on(make: Make, tmp_path: Path):
    running = make()
    topic = running.client.topic()
    running.client.produce(topic, batch(b"x"))
    running.disk.broken.add(str(tmp_path / "one"))
    assert running.client.produce(topic, batch(b"y")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert len(running.reasons) >= 1
    assert "Input/output error" in running.reasons[0]


def test_a_failed_sync_is_not_an_acknowledgement(make: Make, tmp_path: Path):
    running = make(ottla_fsync=True)
    topic = running.client.topic()
    running.client.produce(topic, batch(b"x"))
    running.disk.gate.clear()
    connection, number = send(running.client, topic, -1)
    assert connection.is_silent(0.1)
    running.disk.broken.add(str(tmp_path / "one"))
    running.disk.gate.set()
    answer = connection.receive(0, 13, number).responses[0].partition_responses[0]
    assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    connection.close()


# --- deletion ---------------------------------------------------------------------------------------------------------


def test_a_topic_that_is_being_synced_can_be_deleted(make: Make, tmp_path: Path):
    running = make(ottla_fsync=True)
    topic = running.client.topic()
    running.client.produce(topic, batch(b"x"))
    running.disk.gate.clear()
    connection, number = send(running.client, topic, -1)
    assert connection.is_silent(0.05)
    threading.Timer(0.1, running.disk.gate.set).start()
    deleted = running.client.ask(DeleteTopicsRequest(topics=(DeleteTopicsRequest.DeleteTopicState(topic.name),)), 6)
    assert deleted.responses[0].error_code == 0
    assert connection.receive(0, 13, number).responses[0].partition_responses[0] is not None, (
        "it is answered, one way or other"
    )
    connection.close()
    assert not (tmp_path / "one" / f"{topic.name}-0").exists()
    assert running.reasons == []


def test_counts_do_not_fall_when_topics_go(make: Make):
    running = make()
    topic = running.client.topic()
    running.client.produce(topic, batch(b"x", b"y"))
    before = running.node.replicas.totals()
    assert before["messagesin"] == 2
    assert before["bytesin"] > 60
    running.client.ask(DeleteTopicsRequest(topics=(DeleteTopicsRequest.DeleteTopicState(topic.name),)), 6)
    assert running.node.replicas.totals() == before
    assert running.node.replicas.totals_by_topic() == {}


# --- directories ------------------------------------------------------------------------------------------------------


def test_replicas_stay_in_the_directory_that_was_chosen_for_them(tmp_path: Path):
    one, two = tmp_path / "one", tmp_path / "two"
    with running_node(one, log_dirs=f"{one},{two}") as running:
        topic = running.client.topic(partitions=6)
        for partition in range(6):
            running.client.produce(topic, batch(b"x"), partition=partition)
        chosen = {
            replica.topic_partition: replica.directory.properties.directory_id for replica in running.node.replicas
        }

        def known() -> dict[tuple[str, int], bytes]:
            return {
                (topic.name, each.partition_id): each.directory_of(1) for topic, each in running.node.image.partitions()
            }

        running.until(lambda: known() == chosen)  # the controller is told
        assert sorted(Counter(chosen.values()).values()) == [3, 3]
    names = {path.name: path.parent for path in (*one.glob(f"{topic.name}-*"), *two.glob(f"{topic.name}-*"))}
    assert len(names) == 6
    with running_node(one, log_dirs=f"{one},{two}") as running:
        assert [values(running.client.fetch(topic, partition=number)) for number in range(6)] == [[b"x"]] * 6
        assert running.node.replicas.misplaced == {}


def test_a_replica_that_was_moved_by_hand_is_found_and_told_of(tmp_path: Path):
    one, two = tmp_path / "one", tmp_path / "two"
    with running_node(one, log_dirs=f"{one},{two}") as running:
        topic = running.client.topic()
        running.client.produce(topic, batch(b"x"))
    source = next(path for path in (one, two) if (path / f"{topic.name}-0").exists())
    target = two if source is one else one
    (source / f"{topic.name}-0").rename(target / f"{topic.name}-0")
    with running_node(one, log_dirs=f"{one},{two}") as running:
        assert values(running.client.fetch(topic)) == [b"x"]
        (partition,) = running.node.image.topics_by_name[topic.name].partitions.values()
        assert (
            partition.directory_of(1) == running.node.replicas.by_key[topic.name, 0].directory.properties.directory_id
        )


def test_a_partition_in_two_directories_is_where_the_cluster_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    one, two = tmp_path / "one", tmp_path / "two"
    with running_node(one, log_dirs=f"{one},{two}") as running:
        topic = running.client.topic()
        running.client.produce(topic, batch(b"x"))
    name = f"{topic.name}-0"
    right, wrong = (one, two) if (one / name).exists() else (two, one)
    shutil.copytree(right / name, wrong / name)
    with running_node(one, log_dirs=f"{one},{two}") as running:
        replica = running.node.replicas.by_key[topic.name, 0]
        assert replica.directory.path == str(right)
        assert values(running.client.fetch(topic)) == [b"x"]
    (stray,) = wrong.glob(f"{name}.*-stray")
    stray.rename(wrong / name)
    monkeypatch.setattr(PartitionImage, "directory_of", lambda *_: UNASSIGNED)
    local = {"listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0", "log.dirs": f"{one},{two}"}
    with pytest.raises(StorageProblem, match=f"{topic.name}-0 lies in .* and in .*; remove one"):
        asyncio.run(Node.start(NodeConfig(local)))
