"""A node that was formatted with --standalone and started once: its metadata log, as Apache Kafka's tool reads it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ottla.wire.properties import read_properties
from tests.interop.apache import dump_log, tool
from tests.interop.node.brokers import Node, node_of
from tests.interop.quorum.members import CLUSTER_ID, METADATA_DIR, METADATA_QUORUM, WAIT_S, until
from tests.interop.quorum.status import assert_status

NODE_ID = 1
CONTROL = ("LeaderChange", "KRaftVersion", "KRaftVoters")
CHANGE = "BROKER_REGISTRATION_CHANGE_RECORD"
_LINE = re.compile(rf"offset: (\d+) .*?(?:payload: |({'|'.join(CONTROL)}):? )(\{{.*\}})\s*$")
_BATCH = re.compile(r"^baseOffset: (\d+) lastOffset: (\d+) .*isControl: (\w+)")


class Dumped(NamedTuple):
    """A record as kafka-dump-log prints it."""

    offset: int
    kind: str
    version: int
    data: dict[str, Any]


@pytest.fixture(scope="module")
def node(kind: str, apache_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A sole node of ottla writes idle records if it is told to; Apache Kafka always does."""
    fresh = {"cluster_id": CLUSTER_ID, "format_arguments": ("--standalone",), "metadata_max_idle_interval_ms": 500}
    with node_of(kind, tmp_path_factory.mktemp("fresh"), **fresh) as made:
        yield made


@pytest.fixture(scope="module")
def dump(node: Node) -> str:
    """What the tool prints when the broker is in service, and the first idle record is written."""
    path = node.data_dir / METADATA_DIR / "00000000000000000000.log"

    def read() -> str | None:
        said = dump_log(path, "--cluster-metadata-decoder", timeout_s=WAIT_S)
        return said if said.count(CHANGE) >= 2 and "NO_OP_RECORD" in said else None

    return until(read, "the broker to be in service")


def records(dump: str) -> list[Dumped]:
    found = [match for line in dump.splitlines() if (match := _LINE.search(line))]
    return [_record(int(match[1]), match[2], json.loads(match[3])) for match in found]


def _record(offset: int, control: str | None, shown: dict[str, Any]) -> Dumped:
    if control is not None:
        return Dumped(offset, control, shown.pop("version"), shown)
    return Dumped(offset, shown["type"], shown["version"], shown["data"])


def directory_id(node: Node) -> str:
    return read_properties((node.data_dir / "meta.properties").read_text())["directory.id"]


def test_the_first_records(node: Node, dump: str) -> None:
    assert "isvalid: false" not in dump
    features = {
        "metadata.version": 30,
        "eligible.leader.replicas.version": 1,
        "group.version": 1,
        "share.version": 1,
        "streams.version": 1,
        "transaction.version": 2,
    }
    expected: list[tuple[str, int, dict[str, Any]]] = [
        ("LeaderChange", 0, {"leaderId": NODE_ID, "voters": [{"voterId": NODE_ID}]}),
        ("KRaftVersion", 0, {"kRaftVersion": 1}),
        ("KRaftVoters", 0, {}),
        ("BEGIN_TRANSACTION_RECORD", 0, {"name": "Bootstrap records"}),
        *(("FEATURE_LEVEL_RECORD", 0, {"name": name, "featureLevel": level}) for name, level in features.items()),
        ("CONFIG_RECORD", 0, {"resourceType": 4, "resourceName": "", "name": "min.insync.replicas", "value": "1"}),
        ("END_TRANSACTION_RECORD", 0, {}),
        (CHANGE, 0, {"brokerId": NODE_ID, "fenced": -1}),
        (CHANGE, 3, {"brokerId": NODE_ID, "cordonedLogDirs": []}),
        ("REGISTER_BROKER_RECORD", 4, {"brokerId": NODE_ID, "fenced": True, "logDirs": [directory_id(node)]}),
        ("REGISTER_CONTROLLER_RECORD", 0, {"controllerId": NODE_ID, "zkMigrationReady": False}),
    ]
    found = [each for each in records(dump) if each.kind != "NO_OP_RECORD"]
    found[12:] = sorted(found[12:], key=lambda each: (each.kind, each.version))  # Apache Kafka's come in any order
    assert [(each.kind, each.version) for each in found] == [(kind, version) for kind, version, _ in expected]
    for record, (_, _, data) in zip(found, expected, strict=True):
        assert record.data | data == record.data, record
    assert [each.offset for each in found[:12]] == list(range(12))


def test_what_refers_to_other_records(node: Node, dump: str) -> None:
    by_kind = {each.kind: each for each in records(dump)}
    (voter,) = by_kind["KRaftVoters"].data["voters"]
    assert (voter["voterId"], voter["voterDirectoryId"]) == (NODE_ID, directory_id(node))
    (endpoint,) = voter["endpoints"]
    assert f"{endpoint['host']}:{endpoint['port']}" == node.controller_servers
    broker = by_kind["REGISTER_BROKER_RECORD"]
    assert broker.data["brokerEpoch"] == broker.offset
    assert {each.data["brokerEpoch"] for each in records(dump) if each.kind == CHANGE} == {broker.offset}


def test_the_first_batches(dump: str) -> None:
    """The records of the new leader are one batch, and those that make a cluster another."""
    batches = [match.groups() for line in dump.splitlines() if (match := _BATCH.match(line))]
    assert batches[:2] == [("0", "2", "true"), ("3", "11", "false")]
    assert {is_control for _, _, is_control in batches[2:]} == {"false"}


def test_the_status(node: Node) -> None:
    said = tool(METADATA_QUORUM, "--bootstrap-server", node.bootstrap_servers, "describe", "--status", timeout_s=WAIT_S)
    endpoints = [f"CONTROLLER://{node.controller_servers}"]
    assert_status(
        said, CLUSTER_ID, NODE_ID, [{"id": NODE_ID, "directoryId": directory_id(node), "endpoints": endpoints}]
    )
