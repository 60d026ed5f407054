"""DescribeProducers over the wire."""

from __future__ import annotations

from typing import Any

from ottla.wire.types import DescribeProducersRequest
from tests.component.broker.raw_client import RawClient, RunningNode, Topic, batch
from tests.component.broker.transactional_batches import DATA, in_transaction


def describe(client: RawClient, topic: Topic, partition: int = 0) -> Any:
    named = DescribeProducersRequest.TopicRequest(topic.name, (partition,))
    return client.ask(DescribeProducersRequest((named,)), 0).topics[0].partitions[0]


def test_a_partition_without_producers(client: RawClient):
    topic = client.topic()
    assert (describe(client, topic).error_code, describe(client, topic).active_producers) == (0, ())
    client.produce(topic, batch(b"a"))
    assert describe(client, topic).active_producers == ()


def test_a_producer_and_what_it_wrote_last(client: RawClient):
    topic = client.topic()
    for sequence in (0, 2):
        records = batch(b"a", b"b", timestamp=5_000, producer_id=77, producer_epoch=1, base_sequence=sequence)
        assert client.produce(topic, records).error_code == 0
    (known,) = describe(client, topic).active_producers
    assert (known.producer_id, known.producer_epoch, known.last_sequence) == (77, 1, 3)
    assert (known.last_timestamp, known.coordinator_epoch, known.current_txn_start_offset) == (5_001, -1, -1)


def test_unknown_and_illegal_topics(client: RawClient):
    assert describe(client, Topic("nowhere", bytes(16))).error_code == 3
    assert describe(client, client.topic(), 5).error_code == 3
    assert describe(client, Topic("a b", bytes(16))).error_code == 17


def test_an_open_transaction(running: RunningNode):
    client = running.client
    topic = client.topic()
    client.produce(topic, batch(b"a"))
    in_transaction(running, topic, DATA)
    (known,) = describe(client, topic).active_producers
    assert (known.producer_id, known.current_txn_start_offset) == (5, 1)
