"""Apache Kafka's tools on three nodes. What they print is the same for both kinds, but for times, ids and places."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ottla.wire import uuid_bytes
from ottla.wire.types import DescribeQuorumRequest
from tests.interop.apache import dump_log, tool
from tests.interop.process import ProgramFailed
from tests.interop.quorum.members import CLUSTER_ID, METADATA_DIR, METADATA_QUORUM, WAIT_S, Quorum, ask, until
from tests.interop.quorum.status import assert_status

NODES = (1, 2, 3)
CLUSTER = "org.apache.kafka.tools.ClusterTool"
FEATURES = "org.apache.kafka.tools.FeatureCommand"
METADATA_SHELL = "org.apache.kafka.shell.MetadataShell"
STORAGE = "kafka.tools.StorageTool"
TOPIC = "orders"
_METADATA = DescribeQuorumRequest.PartitionData(0)

Asked = Callable[[Quorum, int], tuple[str, ...]]
"""How a tool is told whom to ask: a broker or a controller."""


@pytest.fixture(scope="module")
def quorum(kind: str, apache_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Quorum]:
    snapshots = {"metadata.log.max.record.bytes.between.snapshots": 1000}
    with Quorum(tmp_path_factory.mktemp("quorum"), voters=dict.fromkeys(NODES, kind), **snapshots) as quorum:
        quorum.create_topic(TOPIC, at=1)
        until(lambda: all(quorum.snapshots(number) for number in NODES), "snapshots")
        yield quorum
        quorum.check_health()


def server(quorum: Quorum, number: int = 1) -> tuple[str, ...]:
    return "--bootstrap-server", quorum.nodes[number].bootstrap_servers


def controller(quorum: Quorum, number: int = 1) -> tuple[str, ...]:
    return quorum.controller_options(number)


def run(main: str, *arguments: str) -> str:
    return tool(main, *arguments, timeout_s=WAIT_S)


def refused(main: str, *arguments: str) -> str:
    """What a tool prints that must fail."""
    with pytest.raises(ProgramFailed) as failure:
        run(main, *arguments)
    return failure.value.output


@pytest.mark.parametrize("asked", [server, controller])
def test_the_status_of_the_quorum(quorum: Quorum, asked: Asked) -> None:
    leader = quorum.leader
    said = run(METADATA_QUORUM, *asked(quorum, 2), "describe", "--status")
    voters = [
        {
            "id": number,
            "directoryId": quorum.directory_id(number),
            "endpoints": [f"CONTROLLER://{quorum.nodes[number].controller_servers}"],
        }
        for number in NODES
    ]
    assert_status(said, CLUSTER_ID, leader, voters)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_every_broker_gives_what_the_leader_says_of_the_quorum(quorum: Quorum, version: int) -> None:
    request = DescribeQuorumRequest((DescribeQuorumRequest.TopicData("__cluster_metadata", (_METADATA,)),))
    for number in NODES:
        view = quorum.wait_for(lambda view: not view.has_lag(), "all records everywhere")
        answer = ask(quorum.nodes[number].bootstrap_servers, request, version)
        (topic,) = answer.topics
        (partition,) = topic.partitions
        assert (answer.error_code, topic.topic_name, partition.partition_index) == (0, "__cluster_metadata", 0)
        assert (partition.error_code, partition.leader_id, partition.leader_epoch) == (0, view.leader_id, view.epoch)
        assert partition.high_watermark >= view.high_watermark
        known = {each.replica_id: each for each in partition.current_voters}
        assert (set(known), partition.observers) == (set(NODES), ())
        for each in known.values():
            assert each.log_end_offset >= view.high_watermark
            assert (each.last_fetch_timestamp > 0) is (each.last_caught_up_timestamp > 0) is (version >= 1)
            directory_id = uuid_bytes(quorum.directory_id(each.replica_id)) if version >= 2 else bytes(16)
            assert each.replica_directory_id == directory_id
        assert {each.node_id for each in answer.nodes} == (set(NODES) if version >= 2 else set())


@pytest.mark.parametrize("flags", [(), ("--human-readable",)])
def test_the_replication_of_the_quorum(quorum: Quorum, flags: tuple[str, ...]) -> None:
    leader = quorum.leader
    head, *rows = run(METADATA_QUORUM, *server(quorum, 3), "describe", "--replication", *flags).splitlines()
    columns = ["NodeId", "DirectoryId", "LogEndOffset", "Lag", "LastFetchTimestamp", "LastCaughtUpTimestamp", "Status"]
    assert head.split() == columns
    found = [[cell.strip() for cell in row.split("\t")] for row in rows]
    assert [(found[0][0], found[0][6])] == [(str(leader), "Leader")], "the leader comes first"
    assert {int(row[0]): (row[1], row[6]) for row in found} == {
        number: (quorum.directory_id(number), "Leader" if number == leader else "Follower") for number in NODES
    }
    when = r"\d+ ms ago" if flags else r"\d{13}"
    for row in found:
        assert re.fullmatch(rf"\d+ \d+ {when} {when}", " ".join(row[2:6])), row


@pytest.mark.parametrize("asked", [server, controller])
def test_the_features(quorum: Quorum, asked: Asked) -> None:
    lines = run(FEATURES, *asked(quorum, 2), "describe").splitlines()
    assert [tuple(re.findall(r": (\S+)", line.partition("Epoch")[0])) for line in lines] == [
        ("eligible.leader.replicas.version", "0", "1", "1"),
        ("group.version", "0", "1", "1"),
        ("kraft.version", "0", "1", "1"),
        ("metadata.version", "3.3-IV3", "4.3-IV0", "4.3-IV0"),
        ("share.version", "0", "1", "1"),
        ("streams.version", "0", "1", "1"),
        ("transaction.version", "0", "2", "2"),
    ]


@pytest.mark.parametrize("asked", [server, controller])
def test_a_feature_changes_and_changes_back(quorum: Quorum, asked: Asked) -> None:
    off = run(FEATURES, *asked(quorum, 3), "downgrade", "--feature", "streams.version=0")
    assert off.strip() == "streams.version was downgraded to 0."
    on = run(FEATURES, *asked(quorum, 1), "upgrade", "--feature", "streams.version=1")
    assert on.strip() == "streams.version was upgraded to 1."
    said = refused(FEATURES, *asked(quorum, 2), "upgrade", "--feature", "kraft.version=2")
    assert "Could not upgrade kraft.version to 2." in said


@pytest.mark.parametrize("asked", [server, controller])
def test_the_cluster(quorum: Quorum, asked: Asked) -> None:
    assert run(CLUSTER, "cluster-id", *asked(quorum, 2)) == f"Cluster ID: {CLUSTER_ID}\n"
    head, *lines = run(CLUSTER, "list-endpoints", *asked(quorum, 2)).splitlines()
    rows = [dict(zip(head.split(), line.split(), strict=True)) for line in lines]
    is_broker = asked is server
    servers = {
        number: node.bootstrap_servers if is_broker else node.controller_servers
        for number, node in quorum.nodes.items()
    }
    assert {int(row["ID"]): f"{row['HOST']}:{row['PORT']}" for row in rows} == servers
    assert {row["ENDPOINT_TYPE"] for row in rows} == {"broker" if is_broker else "controller"}
    assert {row["STATE"] for row in rows if is_broker} <= {"unfenced"}
    assert "Broker ID 77 is not currently registered" in refused(CLUSTER, "unregister", *asked(quorum, 3), "--id", "77")


def test_storage_info_of_a_formatted_directory(quorum: Quorum) -> None:
    for number in NODES:
        node = quorum.nodes[number]
        settings = str(node.directory / "server.properties")
        assert run(STORAGE, "info", "-c", settings).splitlines() == [
            "Found log directory:",
            f"  {node.data_dir}",
            "",
            f"Found metadata: {{cluster.id={CLUSTER_ID}, directory.id={quorum.directory_id(number)}, "
            f"node.id={number}, version=1}}",
            "",
        ]
        formatting = ("format", "-t", CLUSTER_ID, "-c", settings, *node.format_arguments)
        assert "is already formatted" in refused(STORAGE, *formatting)
        run(STORAGE, *formatting, "--ignore-formatted")


RECORD = re.compile(r'payload: \{"type":"(\w+)"')


def test_dump_log_of_the_metadata(quorum: Quorum) -> None:
    """The log begins with what makes a cluster; snapshots hold what has become of it."""
    number = next(each for each in NODES if each != quorum.leader)
    folder = quorum.nodes[number].data_dir / METADATA_DIR
    said = dump_log(folder / "00000000000000000000.log", "--cluster-metadata-decoder", timeout_s=WAIT_S)
    assert "isvalid: false" not in said
    first = RECORD.findall(said)[:9]
    assert first == [
        "BEGIN_TRANSACTION_RECORD",
        *["FEATURE_LEVEL_RECORD"] * 6,
        "CONFIG_RECORD",
        "END_TRANSACTION_RECORD",
    ]
    snapshot = sorted(folder.glob("*.checkpoint"))[-1]
    said = dump_log(snapshot, "--cluster-metadata-decoder", timeout_s=WAIT_S)
    assert "isvalid: false" not in said
    assert "SnapshotHeader" in said
    assert "SnapshotFooter" in said


def test_the_metadata_shell(quorum: Quorum, tmp_path: Path) -> None:
    """It locks the directory that a snapshot lies in, which is the node's."""
    quorum.create_topic("shell", at=1)
    end_offset = quorum.wait_for(lambda view: view.high_watermark > 0, "a leader").high_watermark
    for number in range(12):  # enough for another snapshot
        quorum.create_topic(f"after-shell-{number}", at=1)
    until(lambda: quorum.snapshots(2)[-1] >= end_offset, "a snapshot with the topic")
    newest = sorted((quorum.nodes[2].data_dir / METADATA_DIR).glob("*.checkpoint"))[-1]
    snapshot = shutil.copy(newest, tmp_path / newest.name)
    paths = run(METADATA_SHELL, "--snapshot", str(snapshot), "find", "/image").splitlines()
    names = {path.split("/")[2] for path in paths if path.startswith("/image/")}
    assert names >= {"acls", "clientQuotas", "cluster", "configs", "features", "producerIds", "scram", "topics"}
    assert {path.rpartition("/")[2] for path in paths if path.startswith("/image/topics/byName/")} >= {TOPIC, "shell"}


def test_a_voter_leaves_and_comes_back(quorum: Quorum) -> None:
    leader = quorum.wait_for(lambda view: view.voter_ids == set(NODES) and not view.has_lag(), "all voters").leader_id
    number = next(each for each in NODES if each != leader)
    adding = (METADATA_QUORUM, *quorum.controller_options(leader, config_of=number), "add-controller")
    assert "DuplicateVoterException" in refused(*adding)

    own, another = quorum.directory_id(number), quorum.directory_id(leader)
    removing = (METADATA_QUORUM, *controller(quorum, leader), "remove-controller", "--controller-id", str(number))
    assert "VoterNotFoundException" in refused(*removing, "--controller-directory-id", another)
    said = run(*removing, "--controller-directory-id", own)
    assert " ".join(said.split()) == f"Removed KRaft controller {number} with directory id {own}"
    quorum.wait_for(lambda view: view.observer_ids == {number} and not view.has_lag(), "the voter to observe")

    said = run(*adding)
    assert f"Added controller {number} with directory id {own} and endpoints: " in said
    assert f"CONTROLLER://{quorum.nodes[number].controller_servers}" in said
    quorum.wait_for(lambda view: view.voter_ids == set(NODES) and not view.has_lag(), "all voters")
