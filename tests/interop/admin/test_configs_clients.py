"""Settings by the admin clients of other people, on both brokers."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.interop.node.brokers import Node
from tests.interop.programs import JARS, run_program
from tests.interop.python_clients import TIME_LIMIT_S

confluent_admin = pytest.importorskip("confluent_kafka.admin")
kafka_admin = pytest.importorskip("kafka.admin")


@pytest.fixture
def topic(broker: Node, name: str) -> str:
    admin = confluent_admin.AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.create_topics([confluent_admin.NewTopic(name, 1, 1)])[name].result(TIME_LIMIT_S)
    return name


def test_librdkafka_describes_and_alters(broker: Node, topic: str):
    lib = confluent_admin
    admin = lib.AdminClient({"bootstrap.servers": broker.bootstrap_servers})

    def entries(kind: str, name: str) -> dict[str, Any]:
        (outcome,) = admin.describe_configs([lib.ConfigResource(kind, name)]).values()
        found: dict[str, Any] = outcome.result(TIME_LIMIT_S)
        return found

    change = lib.ConfigEntry("cleanup.policy", "compact", incremental_operation=lib.AlterConfigOpType.APPEND)
    resource = lib.ConfigResource("TOPIC", topic, incremental_configs=[change])
    (outcome,) = admin.incremental_alter_configs([resource]).values()
    assert outcome.result(TIME_LIMIT_S) is None
    deadline = time.monotonic() + TIME_LIMIT_S
    while (entry := entries("TOPIC", topic)["cleanup.policy"]).is_default and time.monotonic() < deadline:
        pass  # Apache Kafka's broker learns of it a little later
    assert (entry.value, entry.is_default) == ("delete,compact", False)
    assert entry.source == lib.ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    brokers = entries("BROKER", "1")
    assert len(brokers) >= 340
    assert brokers["num.io.threads"].is_read_only is False
    assert brokers["node.id"].is_read_only is True
    assert brokers["ssl.key.password"].is_sensitive is True
    groups = entries("GROUP", "anybody")
    assert groups["share.record.lock.duration.ms"].value == "30000"


def test_librdkafka_is_refused(broker: Node, topic: str):
    from confluent_kafka import KafkaError, KafkaException

    lib = confluent_admin
    admin = lib.AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    change = lib.ConfigEntry("retention.ms", "soon", incremental_operation=lib.AlterConfigOpType.SET)
    resource = lib.ConfigResource("TOPIC", topic, incremental_configs=[change])
    (outcome,) = admin.incremental_alter_configs([resource]).values()
    with pytest.raises(KafkaException) as caught:
        outcome.result(TIME_LIMIT_S)
    assert caught.value.args[0].code() == KafkaError.INVALID_CONFIG


def test_kafka_python_describes_and_alters(broker: Node, topic: str):
    lib = kafka_admin
    admin = lib.KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    try:
        resource = lib.ConfigResource(lib.ConfigResourceType.TOPIC, topic, configs={"retention.ms": "77"})
        admin.alter_configs([resource])
        told = str(admin.describe_configs([lib.ConfigResource(lib.ConfigResourceType.TOPIC, topic)]))
    finally:
        admin.close()
    assert "retention.ms" in told
    assert "'77'" in told or '"77"' in told


@pytest.mark.parametrize("release", JARS)
def test_java_describes_alters_and_is_refused(broker: Node, release: str, clients_4_4_jars: Path):
    run_program("AdminConfigs", release, broker.bootstrap_servers)
