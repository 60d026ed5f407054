"""Hand-over of one node, both ways: what one broker acknowledged, the other serves from the same directory."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.apache import ApacheKafka, dump_log, tool
from tests.interop.handing_over import TOPICS, Ledger, Node
from tests.interop.serving import OttlaServe

SHELL_TOOL = "org.apache.kafka.tools.MetadataQuorumCommand"
METADATA_LOG = Path("__cluster_metadata-0") / "00000000000000000000.log"


@pytest.fixture
def apache(apache_jars: Path, tmp_path: Path) -> Iterator[ApacheKafka]:
    kafka = ApacheKafka(tmp_path / "apache", data_dir=tmp_path / "data")
    yield kafka
    if kafka.running:
        kafka.kill()


@pytest.fixture
def ottla(tmp_path: Path) -> Iterator[OttlaServe]:
    node = OttlaServe(tmp_path / "ottla", data_dir=tmp_path / "data")
    yield node
    if node.running:
        node.kill()


def end(node: Node, how: str) -> None:
    if how == "stopped":
        node.stop()
    else:
        node.kill()


@pytest.mark.parametrize("how", ["stopped", "killed"])
def test_apache_takes_over_from_ottla(apache: ApacheKafka, ottla: OttlaServe, how: str):
    ledger = Ledger()
    ottla.start()
    ledger.create_topics(ottla.bootstrap_servers)
    ledger.produce(ottla.bootstrap_servers)
    end(ottla, how)
    apache.start()
    ledger.check(apache.bootstrap_servers)
    ledger.produce(apache.bootstrap_servers)
    ledger.check(apache.bootstrap_servers)
    assert "stray" not in " ".join(path.name for path in apache.data_dir.iterdir())
    if how == "stopped":
        assert "Skipping recovery of 7 logs" in apache.log or "clean shutdown file was found" in apache.log


@pytest.mark.parametrize("how", ["stopped", "killed"])
def test_ottla_takes_over_from_apache(apache: ApacheKafka, ottla: OttlaServe, how: str):
    ledger = Ledger()
    apache.start()
    ledger.create_topics(apache.bootstrap_servers)
    ledger.produce(apache.bootstrap_servers)
    end(apache, how)
    ottla.start()
    ledger.check(ottla.bootstrap_servers)
    ledger.produce(ottla.bootstrap_servers)
    ledger.check(ottla.bootstrap_servers)
    assert "stray" not in " ".join(path.name for path in ottla.data_dir.iterdir())


def test_to_and_fro(apache: ApacheKafka, ottla: OttlaServe):
    ledger = Ledger()
    ottla.start()
    ledger.create_topics(ottla.bootstrap_servers)
    nodes: list[Node] = [ottla, apache, ottla, apache, ottla]
    for turn, node in enumerate(nodes):
        if turn:
            node.start()
            ledger.check(node.bootstrap_servers)
        ledger.produce(node.bootstrap_servers)
        end(node, "killed" if turn in (1, 2) else "stopped")
    ottla.start()
    ledger.check(ottla.bootstrap_servers)


def test_apaches_tools_read_the_metadata(apache_jars: Path, ottla: OttlaServe):
    ottla.start()
    Ledger().create_topics(ottla.bootstrap_servers)
    status = tool(SHELL_TOOL, "--bootstrap-server", ottla.bootstrap_servers, "describe", "--status")
    fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    assert fields["LeaderId"].strip() == "1"
    assert fields["MaxFollowerLag"].strip() == "0"
    replication = tool(SHELL_TOOL, "--bootstrap-controller", ottla.controller_servers, "describe", "--replication")
    assert "Leader" in replication
    ottla.stop()
    text = dump_log(ottla.data_dir / METADATA_LOG, "--cluster-metadata-decoder")
    assert "isvalid: false" not in text
    assert "Exception" not in text
    payloads = [json.loads(line.split("payload: ", 1)[1]) for line in text.splitlines() if "payload: " in line]
    topics = {each["data"]["name"] for each in payloads if each.get("type") == "TOPIC_RECORD"}
    assert topics == set(TOPICS)
