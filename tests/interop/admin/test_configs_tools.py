"""kafka-configs prints for ottla what it prints for Apache Kafka: the same commands on both, line by line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.admin.pair import Pair, is_difference, running_pair
from tests.interop.apache import ApacheKafka, tool

CONFIGS = "kafka.admin.ConfigCommand"
TOPICS = "org.apache.kafka.tools.TopicCommand"
TOPIC = ("--entity-type", "topics", "--entity-name", "told")
BROKER = ("--entity-type", "brokers", "--entity-name", "1")
BROKERS = ("--entity-type", "brokers", "--entity-default")
LOGGERS = ("--entity-type", "broker-loggers", "--entity-name", "1")
GROUP = ("--entity-type", "groups", "--entity-name", "readers")
METRICS = ("--entity-type", "client-metrics", "--entity-name", "all")

OF_THE_PLACE = re.compile(r"^\s+(advertised\.listeners|listeners|log\.dirs?|controller\.quorum\.bootstrap\.servers)=")


@pytest.fixture(scope="module")
def pair(apache_kafka: ApacheKafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    for found in running_pair(apache_kafka, tmp_path_factory.mktemp("beside")):
        for servers in found.servers:
            tool(TOPICS, "--bootstrap-server", servers, "--create", "--topic", "told", "--partitions", "1")
        yield found


def both(pair: Pair, *words: str, check: bool = True) -> tuple[str, str]:
    apache, ottla = (tool(CONFIGS, "--bootstrap-server", each, *words, check=check) for each in pair.servers)
    return apache, ottla


def said(text: str) -> list[str]:
    """The lines; what is each node's own is left out."""
    return [line for line in text.splitlines() if not OF_THE_PLACE.match(line)]


@pytest.mark.parametrize(
    "words",
    [
        (
            ("--alter", *TOPIC, "--add-config", "retention.ms=1000,cleanup.policy=[compact,delete]"),
            ("--describe", *TOPIC),
            ("--alter", *TOPIC, "--delete-config", "retention.ms,cleanup.policy"),
            ("--describe", "--all", *TOPIC),
        ),
        (
            ("--alter", *BROKERS, "--add-config", "log.retention.ms=3000,message.max.bytes=2000000"),
            ("--alter", *BROKER, "--add-config", "log.retention.ms=2000"),
            ("--describe", *BROKER),
            ("--describe", *BROKERS),
            ("--alter", *BROKER, "--delete-config", "log.retention.ms"),
            ("--alter", *BROKERS, "--delete-config", "log.retention.ms,message.max.bytes"),
        ),
        (
            ("--alter", *GROUP, "--add-config", "share.record.lock.duration.ms=45000"),
            ("--describe", *GROUP),
            ("--alter", *GROUP, "--delete-config", "share.record.lock.duration.ms"),
        ),
        (
            ("--alter", *METRICS, "--add-config", "interval.ms=1000,metrics=[org.apache.kafka.producer.]"),
            ("--describe", *METRICS),
            ("--alter", *METRICS, "--delete-config", "interval.ms,metrics"),
        ),
        (
            ("--alter", *LOGGERS, "--add-config", "root=DEBUG"),
            ("--alter", *LOGGERS, "--add-config", "root=INFO"),
        ),
    ],
    ids=["topics", "brokers", "groups", "client-metrics", "broker-loggers"],
)
def test_the_same_is_printed(pair: Pair, words: tuple[tuple[str, ...], ...]):
    for each in words:
        theirs, ours = both(pair, *each)
        assert said(ours) == said(theirs), each


def test_every_setting_of_a_broker_is_printed_alike(pair: Pair):
    theirs, ours = both(pair, "--describe", "--all", *BROKER)
    assert is_difference("own-settings")
    own = [line for line in said(ours) if line.strip().startswith(("ottla.", "metadata.max.idle.interval.ms="))]
    assert len([line for line in own if "ottla." in line]) > 3
    assert is_difference("idle-records")
    left = [line for line in said(theirs) if not line.strip().startswith("metadata.max.idle.interval.ms=")]
    assert sorted(set(said(ours)) - set(own)) == sorted(set(left))
    assert len(left) > 330


def test_loggers_have_our_own_names(pair: Pair):
    theirs, ours = both(pair, "--describe", *LOGGERS)
    assert is_difference("logger-names")
    assert ours.splitlines()[0] == theirs.splitlines()[0]
    assert "  root=INFO sensitive=false synonyms={}" in ours.splitlines()
    assert "  ottla.requests=WARN sensitive=false synonyms={}" in ours.splitlines()


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("--alter", *TOPIC, "--add-config", "retention.ms=soon"), "InvalidConfigurationException"),
        (("--alter", *BROKER, "--add-config", "num.partitions=3"), "InvalidRequestException"),
        (("--alter", *LOGGERS, "--add-config", "no.such.logger=INFO"), "Invalid broker logger(s)"),
    ],
)
def test_mistakes_have_the_same_names(pair: Pair, words: tuple[str, ...], error: str):
    theirs, ours = both(pair, *words, check=False)
    assert error in theirs
    assert error in ours


def test_a_level_acts_from_the_tool_on(pair: Pair):
    requests = ("--alter", *LOGGERS, "--add-config")
    tool(CONFIGS, "--bootstrap-server", pair.ottla.bootstrap_servers, *requests, "ottla.requests=INFO")
    tool(CONFIGS, "--bootstrap-server", pair.ottla.bootstrap_servers, *requests, "ottla.requests=WARN")
    log = [line for line in pair.ottla.log.splitlines() if "INFO ottla.requests" in line]
    assert any("IncrementalAlterConfigs" in line for line in log)
    count = len(log)
    tool(TOPICS, "--bootstrap-server", pair.ottla.bootstrap_servers, "--list")
    assert len([line for line in pair.ottla.log.splitlines() if "INFO ottla.requests" in line]) == count


def test_secrets_of_providers_are_shown_by_neither(tmp_path: Path, apache_jars: Path):
    from tests.interop.node.brokers import APACHE, OTTLA, node_of

    secrets = tmp_path / "secrets.properties"
    secrets.write_text("key=hush-hush\npartitions=3\n")
    settings = {
        "config.providers": "file",
        "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
        "ssl.key.password": f"${{file:{secrets}:key}}",
        "num.partitions": f"${{file:{secrets}:partitions}}",
    }
    for kind in (OTTLA, APACHE):
        with node_of(kind, tmp_path / kind, **settings) as node:
            told = tool(CONFIGS, "--bootstrap-server", node.bootstrap_servers, "--describe", "--all", *BROKER)
            assert "  num.partitions=3 sensitive=false synonyms={STATIC_BROKER_CONFIG:num.partitions=3, " in told
            assert "  ssl.key.password=null sensitive=true synonyms={STATIC_BROKER_CONFIG:ssl.key.pass" in told
            assert "hush-hush" not in told
            assert "hush-hush" not in node.log
