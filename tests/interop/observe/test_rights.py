"""An observer that may see little says what it may not see, and reports the rest. Only Apache Kafka has ACLs so far."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.cli import run
from ottla.client import Plain
from ottla.health.facts import Cluster, Coverage, Group, Lag, Topic
from ottla.health.samples import OBSERVATIONS
from tests.interop.apache import ApacheKafka, free_ports, tool
from tests.interop.node.brokers import APACHE
from tests.interop.observe.conftest import new_node
from tests.interop.observe.watching import Watched
from tests.interop.spark import group_history as history
from tests.interop.spark.topics import Topics

USER, PASSWORD = "ana", "thyme"
LOGIN = f'org.apache.kafka.common.security.plain.PlainLoginModule required user_{USER}="{PASSWORD}";'
ACLS = "org.apache.kafka.tools.AclCommand"
RIGHTS = (
    ("--topic", history.TOPIC, "--operation", "Describe"),
    ("--topic", OBSERVATIONS, "--operation", "All"),
    ("--group", history.SIMPLE, "--operation", "Describe"),
)


@pytest.fixture(scope="module")
def guarded(apache_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A cluster with groups of all kinds, of which the user may see one group, one topic, and where to write."""
    kafka = new_node(APACHE, tmp_path_factory.mktemp("guarded"))
    assert isinstance(kafka, ApacheKafka)
    door = f"127.0.0.1:{free_ports(1)[0]}"
    listeners = f"PLAINTEXT://{kafka.bootstrap_servers},CONTROLLER://{kafka.controller_servers},SASL://{door}"
    kafka.settings |= {
        "listeners": listeners,
        "advertised.listeners": listeners,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.name.sasl.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl.plain.sasl.jaas.config": LOGIN,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    with kafka:
        topics = Topics(kafka.bootstrap_servers)
        history.make_history(topics)
        for right in RIGHTS:
            who = ("--add", "--allow-principal", f"User:{USER}")
            tool(ACLS, "--bootstrap-server", kafka.bootstrap_servers, *who, *right)
        yield door
        history.let_go()
        topics.close()


@pytest.fixture(scope="module")
def watched(guarded: str) -> Watched:
    return Watched.of(guarded, for_s=3, sasl=Plain(USER, PASSWORD))


def test_what_may_be_seen_is_seen(watched: Watched):
    assert {each.group for each in watched.facts(Group)} == {history.SIMPLE}
    assert {each.topic for each in watched.facts(Topic)} == {history.TOPIC, OBSERVATIONS}
    lags = {(each.topic, each.partition): each for each in watched.facts(Lag)}
    assert lags[history.TOPIC, 0].committed == 4
    assert lags[history.TOPIC, 0].high_watermark == 30
    assert lags[history.TOPIC, 0].committed_ts is None  # it may not be read
    assert all(each.reachable for seen in watched.facts(Cluster) for each in seen.brokers)


def test_what_may_not_be_seen_is_said(watched: Watched):
    errors = watched.errors()
    assert ("quorum", "CLUSTER_AUTHORIZATION_FAILED") in errors
    assert ("log_dirs", "CLUSTER_AUTHORIZATION_FAILED") in errors
    assert ("configs", "TOPIC_AUTHORIZATION_FAILED") in errors
    hidden = {each.what: each.why for each in watched.facts(Coverage) if not each.visible}
    assert hidden["quorum"] == "needs DescribeQuorum: DESCRIBE on the cluster (error: CLUSTER_AUTHORIZATION_FAILED)"
    assert hidden["log_dirs"] == "needs DescribeLogDirs: DESCRIBE on the cluster (error: CLUSTER_AUTHORIZATION_FAILED)"


def test_rules_that_lack_facts_are_listed_and_nothing_is_made_up(watched: Watched):
    engine = watched.judged()
    assert engine.findings() == []
    unseen = {each.rule: each.why for each in engine.unseen()}
    assert {"voter-lagging", "single-voter", "log-dir-offline", "disk-filling"} <= set(unseen)
    assert not {"lag-growing", "offline-partitions", "node-unreachable"} & set(unseen)


def test_the_command_reports_the_rest(guarded: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    login = tmp_path / "client.properties"
    module = (
        f'org.apache.kafka.common.security.plain.PlainLoginModule required username="{USER}" password="{PASSWORD}";'
    )
    login.write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config={module}\n")
    assert run(["health", "--bootstrap", guarded, "--command-config", str(login), "--for", "6s"]) == 0
    out = capsys.readouterr().out
    assert "needs DescribeQuorum: DESCRIBE on the cluster (error: CLUSTER_AUTHORIZATION_FAILED)" in out
    login.write_text(login.read_text().replace(PASSWORD, "basil"))
    assert run(["health", "--bootstrap", guarded, "--command-config", str(login)]) == 4
