"""A node's life: what it writes when it starts, stops and is killed, and on what it refuses to start."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from ottla.broker.config.node_config import NodeConfig
from ottla.broker.controller.metadata_replay import MetadataLogError
from ottla.broker.node import Node, StartError
from ottla.broker.replicas.storage import StorageProblem
from ottla.log.disk import OsDisk
from ottla.log.lock import DirectoryLock
from ottla.wire.types import (
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeTopicPartitionsRequest,
    InitProducerIdRequest,
    MetadataRequest,
)
from tests.component.broker.metadata_records import LOG, log_end, metadata_batches
from tests.component.broker.raw_client import RawClient, RunningNode, batch, running_node, values
from tests.component.broker.starting import _try_to_start, try_to_start

UNFENCED = "BrokerRegistrationChange fenced=-1 in_controlled_shutdown=0 cordoned_log_dirs=None"
FENCED = "BrokerRegistrationChange fenced=1 in_controlled_shutdown=0 cordoned_log_dirs=None"
STOPPING = "BrokerRegistrationChange fenced=0 in_controlled_shutdown=1 cordoned_log_dirs=None"
CORDONED = "BrokerRegistrationChange fenced=0 in_controlled_shutdown=0 cordoned_log_dirs=()"


def start_and_stop(directory: Path, use: Callable[[RunningNode], None] = lambda _: None, **settings: object) -> None:
    with running_node(directory, **settings) as running:
        use(running)


def make_topic(client: RawClient, name: str, partitions: int = 1) -> None:
    topic = CreateTopicsRequest.CreatableTopic(name, partitions, 1)
    answer = client.ask(CreateTopicsRequest((topic,), 10_000), 7)
    assert answer.topics[0].error_code == 0


def tree(directory: Path) -> dict[str, bytes]:
    """Every file below a directory and its content; the lock tells nothing."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and path.name != ".lock"
    }


# --- what is written --------------------------------------------------------------------------------------------------


def test_a_fresh_node_writes_what_a_fresh_node_of_apache_kafka_writes(tmp_path: Path):
    seen: list[list[list[str]]] = []
    start_and_stop(tmp_path, lambda _: seen.append(metadata_batches(tmp_path)))
    assert seen[0] == [
        ["LeaderChange", "KRaftVersion", "Voters"],
        [
            "BeginTransaction name=Bootstrap records",
            "FeatureLevel name=metadata.version feature_level=30",
            "FeatureLevel name=eligible.leader.replicas.version feature_level=1",
            "FeatureLevel name=group.version feature_level=1",
            "FeatureLevel name=share.version feature_level=1",
            "FeatureLevel name=streams.version feature_level=1",
            "FeatureLevel name=transaction.version feature_level=2",
            "Config resource_type=4 resource_name= name=min.insync.replicas value=1",
            "EndTransaction",
        ],
        ["RegisterController"],
        ["RegisterBroker broker_epoch=13 fenced=True"],
        [CORDONED],
        [UNFENCED],
    ]


def test_a_clean_stop_leaves_the_node_eligible_and_says_so(tmp_path: Path):
    start_and_stop(tmp_path, lambda running: make_topic(running.client, "orders", 2))
    topic, stopping, fenced = metadata_batches(tmp_path, 16)
    assert topic == ["Topic name=orders", *(f"Partition partition_id={n} leader=1 leader_epoch=0" for n in (0, 1))]
    left = "isr=() leader=-1 eligible_leader_replicas=(1,) last_known_elr=(1,)"
    assert stopping == [STOPPING, *(f"PartitionChange partition_id={n} {left}" for n in (0, 1))]
    assert fenced == [FENCED]
    assert json.loads((tmp_path / ".kafka_cleanshutdown").read_text()) == {"version": 0, "brokerEpoch": 13}
    assert not (tmp_path / ".lock").exists()
    assert json.loads((tmp_path / "__cluster_metadata-0/quorum-state").read_text())["leaderEpoch"] == 1


def test_a_restart_raises_the_epoch_and_leads_again_with_one_batch(tmp_path: Path):
    start_and_stop(tmp_path, lambda running: make_topic(running.client, "orders"))
    end = log_end(tmp_path)
    seen: list[list[list[str]]] = []
    start_and_stop(tmp_path, lambda _: seen.append(metadata_batches(tmp_path, end)))
    leader, controller, broker, cordoned, unfenced = seen[0]
    assert leader[0] == "LeaderChange"
    assert controller == ["RegisterController"]
    assert broker == [f"RegisterBroker broker_epoch={end + len(leader) + 1} fenced=True"]
    assert cordoned == [CORDONED]
    assert unfenced == [
        UNFENCED,
        "PartitionChange partition_id=0 isr=(1,) leader=1 eligible_leader_replicas=() last_known_elr=()",
    ]
    assert json.loads((tmp_path / "__cluster_metadata-0/quorum-state").read_text())["leaderEpoch"] == 2


def test_the_marker_of_a_clean_stop_goes_with_the_next_start(tmp_path: Path):
    start_and_stop(tmp_path)
    marker = tmp_path / ".kafka_cleanshutdown"
    assert marker.exists()
    start_and_stop(tmp_path, lambda _: pytest.fail("marker") if marker.exists() else None)
    assert marker.exists()


def test_no_op_records_are_written_only_when_asked_for(tmp_path: Path):
    start_and_stop(tmp_path, lambda running: running.change(running.node.metadata_chores.append_no_op))
    assert ["NoOp"] in metadata_batches(tmp_path)
    assert NodeConfig()["metadata.max.idle.interval.ms"] == 0


# --- what stays -------------------------------------------------------------------------------------------------------


def _produce(running: RunningNode, *texts: bytes) -> None:
    topic = running.client.topic()
    assert running.client.produce(topic, batch(*texts)).error_code == 0


def test_topics_ids_settings_and_records_outlive_a_stop(tmp_path: Path):
    with running_node(tmp_path) as running:
        topic = running.client.topic(partitions=2, retention_ms=123_456)
        assert running.client.produce(topic, batch(b"a", b"b"), partition=1).base_offset == 0
        (producer_id,) = {running.client.ask(InitProducerIdRequest(None, 0), 5).producer_id}
    with running_node(tmp_path) as running:
        described = running.client.ask(MetadataRequest((MetadataRequest.MetadataRequestTopic(name=topic.name),)), 13)
        assert described.topics[0].topic_id == topic.topic_id
        assert [partition.leader_id for partition in described.topics[0].partitions] == [1, 1]
        assert values(running.client.fetch(topic, partition=1)) == [b"a", b"b"]
        assert running.client.produce(topic, batch(b"c"), partition=1).base_offset == 2
        assert running.node.settings.log_config(topic.name).retention_ms == 123_456
        assert running.client.ask(InitProducerIdRequest(None, 0), 5).producer_id > producer_id


def test_what_was_acknowledged_outlives_a_crash(tmp_path: Path):
    running = RunningNode(tmp_path)
    running.start()
    topic = running.client.topic()
    for value in (b"a", b"b", b"c"):
        assert running.client.produce(topic, batch(value)).error_code == 0
    copy = tmp_path.parent / f"{tmp_path.name}-copy"
    shutil.copytree(tmp_path, copy)  # what a crash would leave: no marker, nothing closed
    running.stop()
    (copy / ".lock").unlink()
    assert not (copy / ".kafka_cleanshutdown").exists()
    with running_node(copy) as again:
        assert values(again.client.fetch(topic)) == [b"a", b"b", b"c"]
        assert again.client.produce(topic, batch(b"d")).base_offset == 3


def test_a_deleted_topic_is_gone_from_the_disk_and_its_name_is_free(tmp_path: Path):
    with running_node(tmp_path) as running:
        topic = running.client.topic()
        running.client.produce(topic, batch(b"old"))
        assert (tmp_path / f"{topic.name}-0").is_dir()
        running.client.ask(DeleteTopicsRequest(topics=(DeleteTopicsRequest.DeleteTopicState(topic.name),)), 6)
        assert not (tmp_path / f"{topic.name}-0").exists()
        make_topic(running.client, topic.name)
        answer = running.client.ask(MetadataRequest((MetadataRequest.MetadataRequestTopic(name=topic.name),)), 13)
        again = type(topic)(topic.name, answer.topics[0].topic_id)
        assert again.topic_id != topic.topic_id
        assert running.client.produce(again, batch(b"new")).base_offset == 0
        assert values(running.client.fetch(again)) == [b"new"]
    leaving = [path for path in tmp_path.iterdir() if path.name.endswith("-delete")]
    assert len(leaving) == 1
    with running_node(tmp_path) as running:
        running.change(running.node.offload.finish_all)
        assert not leaving[0].exists()


def test_partitions_have_no_files_before_they_are_used(tmp_path: Path):
    with running_node(tmp_path) as running:
        topic = running.client.topic(partitions=50)
        assert running.client.produce(topic, batch(b"x"), partition=7).error_code == 0
        assert values(running.client.fetch(topic, partition=8)) == []
        assert [path.name for path in tmp_path.iterdir() if path.name.startswith(topic.name)] == [f"{topic.name}-7"]


def test_a_directory_that_the_cluster_does_not_know_is_set_aside_untouched(tmp_path: Path):
    start_and_stop(tmp_path, lambda running: _produce(running, b"x"))
    (ours,) = [path for path in tmp_path.iterdir() if path.is_dir() and not path.name.startswith("__")]
    stray = tmp_path / "nobodys-0"
    shutil.copytree(ours, stray)
    content = (stray / f"{0:020}.log").read_bytes()
    start_and_stop(tmp_path)
    assert not stray.exists()
    (aside,) = [path for path in tmp_path.iterdir() if path.name.endswith("-stray")]
    assert aside.name.startswith("nobodys-0.")
    assert (aside / f"{0:020}.log").read_bytes() == content


def test_a_directory_without_the_id_of_its_topic_is_set_aside_loudly(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    start_and_stop(tmp_path, lambda running: _produce(running, b"x"))
    (ours,) = [path for path in tmp_path.iterdir() if path.is_dir() and not path.name.startswith("__")]
    (ours / "partition.metadata").unlink()
    content = (ours / f"{0:020}.log").read_bytes()
    start_and_stop(tmp_path)
    (aside,) = [path for path in tmp_path.iterdir() if path.name.endswith("-stray")]
    assert (aside / f"{0:020}.log").read_bytes() == content
    (told,) = [each.getMessage() for each in caplog.records if each.levelname == "ERROR"]
    assert told.startswith(f"{ours} has no partition.metadata")
    assert aside.name in told


def test_snapshots_stand_for_the_log_before_them(tmp_path: Path):
    with running_node(tmp_path) as running:
        make_topic(running.client, "orders", 3)
        running.snapshot_metadata()
        newest = running.node.raft.snapshots.newest
        assert newest is not None
        make_topic(running.client, "later")
    (file,) = (tmp_path / "__cluster_metadata-0").glob("*-0000000001.checkpoint")
    assert int(file.name[:20]) == newest.end_offset
    assert file.stat().st_mode & 0o777 == 0o400
    with running_node(tmp_path) as running:
        assert set(running.node.image.topics_by_name) == {"orders", "later"}
        answer = running.client.ask(DescribeTopicPartitionsRequest(), 0)
        assert [(topic.name, len(topic.partitions)) for topic in answer.topics] == [("later", 1), ("orders", 3)]


# --- on what it does not start ----------------------------------------------------------------------------------------


def refused(directory: Path, problem: str, kind: type[Exception] = StorageProblem, **settings: object) -> None:
    """The node does not start, says why, and has changed nothing."""
    before = tree(directory)
    with pytest.raises(kind) as caught:
        try_to_start(directory, **settings)
    assert problem in str(caught.value)
    assert tree(directory) == before
    lock = DirectoryLock(str(directory))  # it was let go
    lock.release(remove=True)


def test_a_directory_of_another_node(tmp_path: Path):
    start_and_stop(tmp_path)
    refused(tmp_path, f"{tmp_path} belongs to node 1, not to node 2", node_id=2)


def test_a_directory_with_something_else_in_it(tmp_path: Path):
    (tmp_path / "thesis.txt").write_text("years of work")
    refused(tmp_path, "neither empty nor a log directory")


def test_a_cluster_with_other_controllers_is_not_formatted_on_the_side(tmp_path: Path):
    servers = {"controller.quorum.bootstrap.servers": "kafka-1:9093,kafka-2:9093"}
    config = NodeConfig(
        {"log.dirs": str(tmp_path), "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0"}, servers
    )
    with pytest.raises(StorageProblem, match=r"kafka-1:9093, kafka-2:9093.*run `ottla storage format"):
        asyncio.run(_try_to_start(config))
    assert tree(tmp_path) == {}


def test_files_are_for_the_user_of_the_node_alone(tmp_path: Path):
    with running_node(tmp_path) as running:
        running.client.produce(running.client.topic(), batch(b"one"))
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.name: path.stat().st_mode & 0o077 for path in files} == dict.fromkeys([each.name for each in files], 0)


def test_directories_of_two_clusters(tmp_path: Path):
    one, two = tmp_path / "one", tmp_path / "two"
    start_and_stop(one)
    start_and_stop(two)
    with pytest.raises(StorageProblem, match="belongs to cluster"):
        try_to_start(one, log_dirs=f"{one},{two}")


def test_a_copy_beside_its_original(tmp_path: Path):
    one, two = tmp_path / "one", tmp_path / "two"
    start_and_stop(one)
    shutil.copytree(one, two)
    with pytest.raises(StorageProblem, match=r"have the same directory\.id"):
        try_to_start(one, log_dirs=f"{one},{two}")


def test_a_directory_in_use(tmp_path: Path):
    with running_node(tmp_path), pytest.raises(StorageProblem, match="already in use by this process"):
        try_to_start(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_that_must_not_be_written(tmp_path: Path):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(StorageProblem, match="cannot be used: Permission denied"):
            try_to_start(tmp_path)
    finally:
        tmp_path.chmod(0o700)


def test_a_place_that_is_no_directory(tmp_path: Path):
    path = tmp_path / "file"
    path.write_text("")
    with pytest.raises(StorageProblem, match="cannot be used: File exists"):
        try_to_start(path)


def test_a_port_in_use_costs_nothing(tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        listeners = f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:0"
        with pytest.raises(StartError, match=f"cannot listen on 127.0.0.1:{port}: Address already in use"):
            try_to_start(tmp_path, listeners=listeners)
    assert tree(tmp_path) == {}


def test_a_metrics_port_in_use_costs_nothing(tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(StartError, match=f"the metrics page cannot listen on 127.0.0.1:{port}"):
            try_to_start(tmp_path, ottla_metrics_port=port)
    assert tree(tmp_path) == {}


def test_damage_with_changes_behind_it(tmp_path: Path):
    start_and_stop(tmp_path, lambda running: make_topic(running.client, "orders"))
    path = tmp_path / LOG
    data = bytearray(path.read_bytes())
    data[400] ^= 1
    path.write_bytes(data)
    with pytest.raises(MetadataLogError, match=r"is corrupt at byte 174 .* valid changes follow"):
        try_to_start(tmp_path)
    assert path.read_bytes() == data, "nothing was cut"


def test_damage_where_nothing_was_synced_is_a_torn_end(tmp_path: Path):
    """As after a power cut that has lost a page, and not the next one."""
    start_and_stop(tmp_path, lambda running: make_topic(running.client, "orders"))
    (tmp_path / ".kafka_cleanshutdown").unlink()
    path = tmp_path / LOG
    data = path.read_bytes()
    path.write_bytes(data[:174] + bytes(226) + data[400:])
    with pytest.raises(MetadataLogError, match="valid changes follow"):
        try_to_start(tmp_path)
    mark = path.with_name("synced-offset")
    mark.write_text("1")
    with running_node(tmp_path) as running:
        assert not running.node.image.topics_by_name
        end_offset = running.node.raft.end_offset
    assert int(mark.read_text()) >= end_offset, "it follows the log"


def test_a_torn_end_was_never_acknowledged(tmp_path: Path):
    start_and_stop(tmp_path, lambda running: make_topic(running.client, "orders"))
    (tmp_path / ".kafka_cleanshutdown").unlink()
    path = tmp_path / LOG
    path.write_bytes(path.read_bytes()[:-10])
    with running_node(tmp_path) as running:
        assert "orders" in running.node.image.topics_by_name


def test_a_log_that_begins_late_needs_its_snapshot(tmp_path: Path):
    start_and_stop(tmp_path)
    path = tmp_path / LOG
    path.unlink()
    path.with_name(f"{100:020}.log").touch()
    with pytest.raises(MetadataLogError, match="starts at offset 100, and no snapshot covers what came before"):
        try_to_start(tmp_path)


# --- ports ------------------------------------------------------------------------------------------------------------


def test_the_controller_moves_aside_if_nobody_asked_for_its_port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with socket.create_server(("127.0.0.1", 0)) as taken, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        busy = taken.getsockname()[1]
        listeners = f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{busy}"
        monkeypatch.setattr("ottla.broker.config.node_config.local_listeners", lambda _: listeners)
        config = NodeConfig({"log.dirs": str(tmp_path)})

        async def life() -> int:
            node = await Node.start(config, disk=OsDisk(durable=False))
            await node.stop()
            return node.advertised["CONTROLLER"].port

        assert asyncio.run(life()) not in (0, busy)


def test_a_port_that_the_system_chose_is_the_one_advertised(tmp_path: Path):
    with running_node(tmp_path) as running:
        for name, listener in running.node.listeners.items():
            assert running.node.advertised[name].port == listener.address[1] != 0
        broker = running.node.image.brokers[1]
        assert broker.endpoints[0].port == running.node.advertised["PLAINTEXT"].port
