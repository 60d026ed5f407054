"""A broker with two log directories tells a controller of the other kind which of them holds each replica."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.broker.controller.storage_check import check_storage
from ottla.log.disk import OsDisk
from ottla.wire import uuid_bytes
from ottla.wire.properties import read_properties
from tests.interop.node.brokers import APACHE, OTTLA
from tests.interop.quorum.members import WAIT_S, Quorum, until

CONTROLLER, BROKER = 1, 2
TOPIC, PARTITIONS = "orders", 6


@pytest.mark.parametrize(("controls", "follows"), [(APACHE, OTTLA), (OTTLA, APACHE)])
def test_replicas_are_assigned_to_their_directories(controls: str, follows: str, tmp_path: Path) -> None:
    with Quorum(tmp_path, voters={CONTROLLER: controls}, brokers={BROKER: follows}) as quorum:
        node = quorum.nodes[BROKER]
        directories = [node.data_dir, node.data_dir.with_name("second")]
        node.settings["log.dirs"] = ",".join(map(str, directories))
        quorum.start(BROKER)
        fill(quorum)
        ids = {
            path: uuid_bytes(read_properties((path / "meta.properties").read_text())["directory.id"])
            for path in directories
        }

        def assigned() -> dict[int, bytes]:
            """Where the controller knows the broker's replicas to be."""
            metadata = check_storage(OsDisk(), str(quorum.nodes[CONTROLLER].data_dir)).metadata
            assert metadata is not None
            partitions = (metadata.image.partition(TOPIC, number) for number in range(PARTITIONS))
            return {each.partition_id: each.directory_of(BROKER) for each in partitions if each is not None}

        until(lambda: set(assigned().values()) == set(ids.values()), "each replica has a directory")
        for number, directory_id in assigned().items():
            (path,) = [path for path in directories if (path / f"{TOPIC}-{number}").is_dir()]
            assert ids[path] == directory_id
        for end in (node.stop, node.kill):
            end()
            quorum.start(BROKER)
            quorum.wait_in_sync(TOPIC)
        quorum.check_health()


def fill(quorum: Quorum) -> None:
    admin = AdminClient({"bootstrap.servers": quorum.bootstrap_servers})
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 2)])[TOPIC].result(WAIT_S)
    producer = Producer({"bootstrap.servers": quorum.bootstrap_servers})
    for number in range(PARTITIONS):
        producer.produce(TOPIC, b"one", partition=number)
    assert producer.flush(WAIT_S) == 0
