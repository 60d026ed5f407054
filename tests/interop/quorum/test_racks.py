"""Consumers read from a replica in their rack (KIP-392), on three nodes of either kind."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.interop import process
from tests.interop.apache import tool
from tests.interop.jars import APACHE_KAFKA, classpath
from tests.interop.programs import compiled
from tests.interop.quorum.members import WAIT_S, Quorum, until

RACKS = {1: "a", 2: "b", 3: "c"}
TOPIC, RECORDS = "orders", 500
SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


@pytest.fixture(scope="module")
def quorum(kind: str, apache_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Quorum]:
    """The topic is on nodes 1, which leads it, and 2."""
    settings = {"replica.selector.class": SELECTOR}
    quorum = Quorum(tmp_path_factory.mktemp("quorum"), voters=dict.fromkeys(RACKS, kind), **settings)
    for number, rack in RACKS.items():
        quorum.nodes[number].settings["broker.rack"] = rack
    with quorum:
        create = ("--create", "--topic", TOPIC, "--replica-assignment", "1:2")
        tool("org.apache.kafka.tools.TopicCommand", "--bootstrap-server", servers(quorum), *create, timeout_s=WAIT_S)
        producer = Producer({"bootstrap.servers": servers(quorum), "acks": "all"})
        for number in range(RECORDS):
            producer.produce(TOPIC, str(number), partition=0)
        assert producer.flush(WAIT_S) == 0
        yield quorum
        quorum.check_health()


def servers(quorum: Quorum) -> str:
    return ",".join(node.bootstrap_servers for node in quorum.nodes.values())


@pytest.mark.parametrize(("rack", "replica"), [("a", -1), ("b", 2), ("c", -1), ("nowhere", -1)])
def test_java_is_sent_to_its_rack(quorum: Quorum, rack: str, replica: int) -> None:
    command = process.java(
        classpath(APACHE_KAFKA, compiled("4.3.1")),
        "interop.RackConsumer",
        *(servers(quorum), TOPIC, rack, str(RECORDS)),
        properties={"org.slf4j.simpleLogger.defaultLogLevel": "warn"},
    )
    assert f"replica {replica}" in process.run(command, timeout_s=WAIT_S).splitlines()


@pytest.mark.parametrize(("rack", "broker"), [("a", 1), ("b", 2), ("c", 1)])
def test_librdkafka_is_sent_to_its_rack(quorum: Quorum, rack: str, broker: int) -> None:
    fetched_from: list[int] = []

    def note(text: str) -> None:
        partition = json.loads(text)["topics"].get(TOPIC, {}).get("partitions", {}).get("0")
        if partition is not None:
            fetched_from.append(partition["broker"])

    consumer = Consumer(
        {
            "bootstrap.servers": servers(quorum),
            "client.rack": rack,
            "group.id": "nobody",
            "enable.auto.commit": False,
            "statistics.interval.ms": 200,
            "stats_cb": note,
        }
    )
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    values: list[int] = []

    def read() -> bool:
        values.extend(int(message.value() or b"") for message in consumer.consume(100, timeout=0.2))
        return len(values) == RECORDS and fetched_from[-3:] == [broker] * 3

    until(read, f"all records, from broker {broker}")
    consumer.close()
    assert values == list(range(RECORDS))
