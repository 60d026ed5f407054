"""Two images are compared: the outcome is what the records between them have changed."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.core.metadata.image import BROKER, TOPIC, Changes, MetadataImage
from ottla.core.metadata.image_comparison import compare
from ottla.log.steps import finish
from ottla.wire.types import cluster_metadata as log
from tests.unit.core.metadata.cluster import through_snapshot, uuid

ORDERS, PAYMENTS = uuid(1), uuid(2)


def partition(number: int, topic_id: bytes) -> log.PartitionRecord:
    return log.PartitionRecord(number, topic_id, (1, 2), (1, 2), leader=1, leader_epoch=0, partition_epoch=0)


def broker(number: int) -> log.RegisterBrokerRecord:
    return log.RegisterBrokerRecord(number, incarnation_id=uuid(90 + number), broker_epoch=number, fenced=True)


HISTORY: list[Any] = [
    log.FeatureLevelRecord("metadata.version", 30),
    broker(1),
    broker(2),
    log.TopicRecord("orders", ORDERS),
    partition(0, ORDERS),
    partition(1, ORDERS),
    log.ConfigRecord(TOPIC, "orders", "retention.ms", "1"),
    log.PartitionChangeRecord(1, ORDERS, leader=2),
    log.TopicRecord("payments", PAYMENTS),
    partition(0, PAYMENTS),
    log.ConfigRecord(BROKER, "1", "log.cleaner.threads", "2"),
    log.BrokerRegistrationChangeRecord(1, 1, fenced=-1),
    log.FeatureLevelRecord("group.version", 1),
    log.RemoveTopicRecord(ORDERS),
    log.ClientQuotaRecord((log.ClientQuotaRecord.EntityData("user", "alice"),), "producer_byte_rate", 1000.0),
    log.UserScramCredentialRecord("alice", 1, b"s", b"k", b"v", 4096),
    log.AccessControlEntryRecord(uuid(50), 2, "orders", 3, "User:alice", "*", 3, 3),
    log.UnregisterBrokerRecord(2, 2),
    log.ConfigRecord(BROKER, "1", "log.cleaner.threads", None),
    log.TopicRecord("orders", uuid(3)),
    partition(0, uuid(3)),
]


def replayed(records: list[Any]) -> MetadataImage:
    image = MetadataImage()
    for offset, record in enumerate(records):
        image.replay(record, offset, 1)
    return image


def tables(image: MetadataImage) -> dict[str, dict[Any, Any]]:
    return {
        "configs": dict(image.all_configs()),
        "brokers": image.brokers,
        "controllers": image.controllers,
        "quotas": image.quotas,
        "scram": image.scram,
        "tokens": image.tokens,
    }


@pytest.mark.parametrize("begin", range(len(HISTORY)))
def test_a_snapshot_tells_what_the_records_would_have_told(begin: int) -> None:
    for end in range(begin, len(HISTORY) + 1):
        old, image = replayed(HISTORY[:begin]), replayed(HISTORY[:begin])
        image.take_changes()
        for offset in range(begin, end):
            image.replay(HISTORY[offset], offset, 1)
        told = image.take_changes()
        new = through_snapshot(image)
        assert new is not None
        found = finish(compare(old, new))
        assert found.topics_created.keys() == told.topics_created.keys()
        assert found.topics_deleted.keys() == told.topics_deleted.keys()
        assert found.partitions == {each for each in told.partitions if each[0] in new.topics_by_id}
        assert (found.features, found.acls) == (told.features, told.acls)
        for name in tables(new):
            assert getattr(found, name) <= getattr(told, name), name
            for key in getattr(told, name) - getattr(found, name):
                # What came and went in between is as it was.
                assert tables(old)[name].get(key) == tables(new)[name].get(key)


def test_equal_images_do_not_differ() -> None:
    image = replayed(HISTORY)
    assert finish(compare(image, replayed(HISTORY))) == Changes()


def test_a_large_cluster_is_compared_in_slices() -> None:
    records = [log.TopicRecord("large", ORDERS), *(partition(number, ORDERS) for number in range(600))]
    more = [log.TopicRecord("other", PAYMENTS), *(partition(number, PAYMENTS) for number in range(600))]
    steps = compare(MetadataImage(), replayed(records + more))
    assert sum(1 for _ in steps) == 3, "one for what was deleted, one for each topic"
