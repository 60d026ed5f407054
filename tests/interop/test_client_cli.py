"""`ottla topics`, `configs` and `quorum` against Apache Kafka, and Apache's own tools beside them."""

import json
from typing import Any

import pytest

from ottla.cli import run
from tests.interop.apache import ApacheKafka

TOPICS = "org.apache.kafka.tools.TopicCommand"
CONFIGS = "kafka.admin.ConfigCommand"
QUORUM = "org.apache.kafka.tools.MetadataQuorumCommand"


class Commands:
    """Runs commands against one cluster and gives what they print."""

    def __init__(self, kafka: ApacheKafka, capture: pytest.CaptureFixture[str]) -> None:
        self.kafka = kafka
        self.capture = capture
        self.to = ("--bootstrap-server", kafka.bootstrap_servers)

    def __call__(self, *words: str) -> str:
        assert run([*words, *self.to]) == 0, self.capture.readouterr().err
        return self.capture.readouterr().out

    def json(self, *words: str) -> Any:
        return json.loads(self(*words, "--json"))

    def refused(self, *words: str) -> str:
        assert run([*words, *self.to]) in (1, 2)
        out, err = self.capture.readouterr()
        assert out == ""
        assert err.count("\n") <= 2
        return err

    def apache(self, main: str, *words: str) -> str:
        return self.kafka.tool(main, *self.to, *words)


@pytest.fixture
def commands(apache_kafka: ApacheKafka, capsys: pytest.CaptureFixture[str]) -> Commands:
    return Commands(apache_kafka, capsys)


def facts_of(line: str) -> dict[str, str]:
    """`Topic: a\tPartition: 0\tLeader: 1` as a dict."""
    pairs = (part.partition(":") for part in line.strip().split("\t") if ":" in part)
    return {name.strip(): value.strip() for name, _, value in pairs}


def test_topics_are_the_same_to_both(commands: Commands):
    assert (
        commands("topics", "create", "cli-a", "--partitions", "3", "--config", "retention.ms=77") == "cli-a created\n"
    )
    described, *partitions = map(facts_of, commands.apache(TOPICS, "--describe", "--topic", "cli-a").splitlines())
    (ours,) = commands.json("topics", "describe", "cli-a")["rows"]
    assert described["TopicId"] == ours["id"]
    assert int(described["PartitionCount"]) == len(ours["partitions"]) == 3
    assert f"retention.ms={ours['configs'][0]['value']}" in described["Configs"]
    for theirs, mine in zip(partitions, ours["partitions"], strict=True):
        assert int(theirs["Partition"]) == mine["partition"]
        assert int(theirs["Leader"]) == mine["leader"]
        assert theirs["Replicas"].split(",") == list(map(str, mine["replicas"]))
        assert theirs["Isr"].split(",") == list(map(str, mine["isr"]))
        assert (mine["start_offset"], mine["end_offset"], mine["size_bytes"]) == (0, 0, 0)
    assert commands("topics", "grow", "cli-a", "4") == "cli-a has 4 partitions\n"
    assert facts_of(commands.apache(TOPICS, "--describe", "--topic", "cli-a").splitlines()[0])["PartitionCount"] == "4"
    assert "INVALID_PARTITIONS (37)" in commands.refused("topics", "grow", "cli-a", "2")
    assert "TOPIC_ALREADY_EXISTS (36)" in commands.refused("topics", "create", "cli-a")
    assert commands("topics", "create", "cli-a", "--if-not-exists") == "cli-a already exists\n"
    assert commands("topics", "delete", "cli-a", "--yes") == "cli-a deleted\n"
    assert "cli-a" not in commands.apache(TOPICS, "--list").split()
    assert commands("topics", "delete", "cli-a", "--if-exists", "--yes") == "cli-a does not exist\n"


def test_lists_are_the_same_to_both(commands: Commands):
    commands("topics", "create", "cli-b", "cli-c")
    commands.apache(TOPICS, "--create", "--topic", "cli-d")
    ours = {each["name"] for each in commands.json("topics", "list", "--internal")["rows"]}
    assert ours == set(commands.apache(TOPICS, "--list").split())
    assert {"cli-b", "cli-c", "cli-d"} <= ours
    assert "topic 'cli-e' does not exist\n  → did you mean cli-" in commands.refused("topics", "describe", "cli-e")
    commands("topics", "delete", "cli-b", "cli-c", "cli-d", "--yes")


def test_settings_are_the_same_to_both(commands: Commands):
    commands("topics", "create", "cli-f")
    changed = commands("configs", "set", "topic", "cli-f", "retention.ms=5", "cleanup.policy+=compact")
    assert changed == "topic cli-f changed: retention.ms, cleanup.policy\n"
    where = ("--entity-type", "topics", "--entity-name", "cli-f")
    theirs = commands.apache(CONFIGS, *where, "--describe")
    assert "retention.ms=5 " in theirs
    assert "cleanup.policy=delete,compact " in theirs
    commands.apache(CONFIGS, *where, "--alter", "--add-config", "flush.ms=9", "--delete-config", "retention.ms")
    ours = {each["name"]: each for each in commands.json("configs", "list", "topic", "cli-f", "--all")["rows"]}
    assert len(ours) == 33
    assert (ours["flush.ms"]["value"], ours["flush.ms"]["source"]) == ("9", "TOPIC")
    assert ours["retention.ms"]["source"] == "DEFAULT"
    everything = commands.apache(CONFIGS, *where, "--describe", "--all")
    for name, each in ours.items():
        assert f"  {name}={each['value']} sensitive=false" in everything, name
    assert "did you mean flush.ms?" in commands.refused("configs", "set", "topic", "cli-f", "flush.ns=1")
    assert "INVALID_CONFIG (40)" in commands.refused("configs", "set", "topic", "cli-f", "flush.ms=-1")
    commands("topics", "delete", "cli-f", "--yes")


def test_a_broker_s_settings(commands: Commands):
    shown = {each["name"]: each for each in commands.json("configs", "list", "broker", "1", "--all")["rows"]}
    assert len(shown) == 340
    assert shown["node.id"]["read_only"]
    assert "INVALID_REQUEST (42)" in commands.refused("configs", "set", "broker", "1", "node.id=3")


def test_the_quorum_is_the_same_to_both(commands: Commands):
    ours = commands.json("quorum", "describe")
    status = dict(
        line.split(":", 1) for line in commands.apache(QUORUM, "describe", "--status").splitlines() if ":" in line
    )
    assert status["ClusterId"].strip() == ours["cluster_id"]
    assert int(status["LeaderId"]) == ours["leader_id"]
    assert int(status["LeaderEpoch"]) == ours["leader_epoch"]
    assert ours["rows"][0]["directory_id"] in status["CurrentVoters"]
    table = commands("quorum", "describe").splitlines()
    assert table[2].split()[:2] == ["1", "leader"]
