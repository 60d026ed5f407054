"""kafka-configs against both brokers: changes and how they are shown, and every default of topics and brokers."""

from __future__ import annotations

import re
import uuid
from pathlib import Path

import pytest

from tests.interop.apache import ApacheKafka, tool
from tests.interop.node.brokers import Broker
from tests.interop.process import ProgramFailed
from tests.interop.serving import OttlaServe

CONFIGS = "kafka.admin.ConfigCommand"
TOPICS = "org.apache.kafka.tools.TopicCommand"

OWN = {
    # Of the place where a node runs.
    "advertised.listeners",
    "broker.id",
    "controller.quorum.bootstrap.servers",
    "controller.quorum.voters",
    "listeners",
    "log.dir",
    "log.dirs",
    "node.id",
    # What tests set to make Apache Kafka quick.
    "auto.create.topics.enable",
    "broker.heartbeat.interval.ms",
    "broker.session.timeout.ms",
    "default.replication.factor",
    # Where ottla's defaults are not Apache Kafka's.
    "metadata.max.idle.interval.ms",
}
PREFIXES_OF_TESTS = ("group.", "offsets.topic.", "share.coordinator.", "transaction.state.log.")


def configs(bootstrap_servers: str, *arguments: str) -> str:
    return tool(CONFIGS, "--bootstrap-server", bootstrap_servers, *arguments)


def make_topic(bootstrap_servers: str, *arguments: str) -> str:
    name = f"configs-{uuid.uuid4().hex[:8]}"
    tool(TOPICS, "--bootstrap-server", bootstrap_servers, "--create", "--topic", name, *arguments)
    return name


def shown(text: str) -> dict[str, str]:
    """Setting -> its value, with the synonyms that stand behind it."""
    rows = (re.match(r"\s+([\w.]+)=(.*?)(?: sensitive=(\w+) synonyms=(\{.*\}))?$", line) for line in text.splitlines())
    return {row[1]: f"{row[2]} {row[4]}" for row in rows if row}


def test_settings_of_a_topic_come_and_go(bootstrap_servers: str):
    topic = make_topic(bootstrap_servers)
    entity = ("--entity-type", "topics", "--entity-name", topic)
    changed = configs(
        bootstrap_servers, "--alter", *entity, "--add-config", "retention.ms=1000,cleanup.policy=[compact,delete]"
    )
    assert changed == f"Completed updating config for topic {topic}.\n"
    assert configs(bootstrap_servers, "--describe", *entity).splitlines() == [
        f"Dynamic configs for topic {topic} are:",
        "  cleanup.policy=compact,delete sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:cleanup.policy=compact,delete, "
        "DEFAULT_CONFIG:log.cleanup.policy=delete}",
        "  retention.ms=1000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=1000}",
    ]
    configs(bootstrap_servers, "--alter", *entity, "--delete-config", "retention.ms,cleanup.policy")
    left = shown(configs(bootstrap_servers, "--describe", *entity))
    assert "retention.ms" not in left
    assert "cleanup.policy" not in left


@pytest.mark.parametrize("setting", ["retention.ms=soon", "no.such.setting=1", "cleanup.policy=burn"])
def test_settings_that_cannot_be(bootstrap_servers: str, setting: str):
    topic = make_topic(bootstrap_servers)
    entity = ("--entity-type", "topics", "--entity-name", topic)
    with pytest.raises(ProgramFailed, match="InvalidConfigurationException"):
        configs(bootstrap_servers, "--alter", *entity, "--add-config", setting)


def test_settings_of_brokers(bootstrap_servers: str):
    one = ("--entity-type", "brokers", "--entity-name", "1")
    configs(bootstrap_servers, "--alter", *one, "--add-config", "log.cleaner.threads=2")
    every = ("--entity-type", "brokers", "--entity-default")
    configs(bootstrap_servers, "--alter", *every, "--add-config", "log.cleaner.threads=3")
    try:
        seen = shown(configs(bootstrap_servers, "--describe", *one))["log.cleaner.threads"]
        assert seen == (
            "2 {DYNAMIC_BROKER_CONFIG:log.cleaner.threads=2, DYNAMIC_DEFAULT_BROKER_CONFIG:log.cleaner.threads=3, "
            "DEFAULT_CONFIG:log.cleaner.threads=1}"
        )
        assert "log.cleaner.threads=3" in configs(bootstrap_servers, "--describe", *every)
    finally:
        configs(bootstrap_servers, "--alter", *one, "--delete-config", "log.cleaner.threads")
        configs(bootstrap_servers, "--alter", *every, "--delete-config", "log.cleaner.threads")


def test_settings_of_a_group(bootstrap_servers: str):
    group = ("--entity-type", "groups", "--entity-name", "readers")
    said = configs(bootstrap_servers, "--alter", *group, "--add-config", "consumer.session.timeout.ms=50000")
    assert said == "Completed updating config for group readers.\n"
    configs(bootstrap_servers, "--alter", *group, "--delete-config", "consumer.session.timeout.ms")


@pytest.fixture
def beside(tmp_path: Path):  # type: ignore[no-untyped-def]
    node = OttlaServe(tmp_path)
    node.start()
    yield node
    node.kill()


def test_every_setting_of_a_topic_is_shown_as_the_original_shows_it(beside: OttlaServe, apache_kafka: ApacheKafka):
    told = [
        shown(configs(each.bootstrap_servers, "--describe", "--all", "--entity-type", "topics", "--entity-name", name))
        for each in (beside, apache_kafka)
        for name in [make_topic(each.bootstrap_servers)]
    ]
    assert told[0] == told[1]


def test_every_setting_of_a_broker_is_shown_as_the_original_shows_it(beside: OttlaServe, apache_kafka: ApacheKafka):
    asked = ("--describe", "--all", "--entity-type", "brokers", "--entity-name", "1")
    ours, theirs = (shown(configs(each.bootstrap_servers, *asked)) for each in (beside, apache_kafka))
    names = {name for name in ours.keys() | theirs.keys() if name not in OWN and not name.startswith("ottla.")}
    names = {name for name in names if not name.startswith(PREFIXES_OF_TESTS)}
    different = {name: (ours.get(name), theirs.get(name)) for name in names if ours.get(name) != theirs.get(name)}
    assert different == {}
    assert len(names) > 150


def test_the_broker_is_one(broker: Broker):
    said = configs(broker.bootstrap_servers, "--describe", "--entity-type", "brokers")
    assert "Dynamic configs for broker 1 are:" in said
