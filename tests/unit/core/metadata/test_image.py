import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from ottla.core.metadata.fault import MetadataFault, UnsupportedMetadataError
from ottla.core.metadata.image import BROKER, TOPIC, MetadataImage
from ottla.core.metadata.uuids import MIGRATING
from ottla.wire.compile import classes_of
from ottla.wire.index import MESSAGES
from ottla.wire.keyed import decode_metadata
from ottla.wire.types import cluster_metadata as log
from tests.unit.core.metadata.cluster import Cluster, through_snapshot, uuid

VECTORS = Path(__file__).parents[3] / "golden" / "wire" / "records.jsonl.gz"
TOPIC_ID = uuid(1)


def image_of(*records: Any) -> MetadataImage:
    image = MetadataImage()
    for offset, record in enumerate(records):
        image.replay(record, offset, 1)
    return image


def topic(partitions: int = 1, name: str = "t", topic_id: bytes = TOPIC_ID) -> list[Any]:
    return [
        log.TopicRecord(name, topic_id),
        *(
            log.PartitionRecord(number, topic_id, (1, 2), (1, 2), leader=1, leader_epoch=0, partition_epoch=0)
            for number in range(partitions)
        ),
    ]


def test_a_new_image_is_empty():
    image = MetadataImage()
    assert (image.last_offset, image.last_epoch, image.metadata_version, image.next_producer_id) == (-1, -1, 0, -1)
    assert image.topic("t") is None
    assert image.partition("t", 0) is None
    assert image.configs(TOPIC, "t") == {}


def test_lookups():
    image = image_of(*topic(2))
    assert image.topic("t") is image.topic_by_id(TOPIC_ID)
    partition = image.partition("t", 1)
    assert partition is not None
    assert partition.directories == (MIGRATING, MIGRATING)
    assert image.partition("t", 2) is None
    assert [each.partition_id for _, each in image.partitions()] == [0, 1]
    assert (image.last_offset, image.last_epoch) == (2, 1)


def test_images_differ_by_any_part_of_the_state():
    first, second = image_of(*topic()), image_of(*topic())
    assert first == second
    second.replay(log.ConfigRecord(TOPIC, "t", "retention.ms", "1"), 2, 1)
    assert first != second
    first.replay(log.NoOpRecord(), 2, 1)
    assert first != second


# --- partitions


def test_a_change_raises_the_partitions_epoch_and_an_election_the_leaders():
    image = image_of(*topic(), log.PartitionChangeRecord(0, TOPIC_ID, isr=(1,)))
    partition = image.partition("t", 0)
    assert partition is not None
    assert (partition.isr, partition.leader_epoch, partition.partition_epoch) == ((1,), 0, 1)
    image.replay(log.PartitionChangeRecord(0, TOPIC_ID, leader=1), 9, 1)
    partition = image.partition("t", 0)
    assert partition is not None
    assert (partition.leader, partition.leader_epoch, partition.partition_epoch) == (1, 1, 2)


def test_every_field_of_a_change_is_taken():
    change = log.PartitionChangeRecord(
        0,
        TOPIC_ID,
        isr=(3,),
        leader=3,
        replicas=(3, 4),
        removing_replicas=(4,),
        adding_replicas=(3,),
        leader_recovery_state=1,
        directories=(uuid(8), uuid(9)),
        eligible_leader_replicas=(4,),
        last_known_elr=(5,),
    )
    partition = image_of(*topic(), change).partition("t", 0)
    assert partition is not None
    assert (partition.isr, partition.leader, partition.replicas) == ((3,), 3, (3, 4))
    assert (partition.removing_replicas, partition.adding_replicas) == ((4,), (3,))
    assert (partition.leader_recovery_state, partition.directories) == (1, (uuid(8), uuid(9)))
    assert (partition.elr, partition.last_known_elr) == ((4,), (5,))
    assert partition.is_reassigning
    assert partition.directory_of(4) == uuid(9)


def test_replicas_that_stay_keep_their_directories():
    placed = log.PartitionChangeRecord(0, TOPIC_ID, directories=(uuid(8), uuid(9)))
    moved = log.PartitionChangeRecord(0, TOPIC_ID, replicas=(2, 3))
    partition = image_of(*topic(), placed, moved).partition("t", 0)
    assert partition is not None
    assert partition.directories == (uuid(9), MIGRATING)


def test_clearing_the_eligible():
    eligible = [log.PartitionChangeRecord(number, TOPIC_ID, eligible_leader_replicas=(2,)) for number in (0, 1)]
    others = topic(1, "u", uuid(2))
    elsewhere = log.PartitionChangeRecord(0, uuid(2), last_known_elr=(2,))
    image = image_of(*topic(3), *eligible, *others, elsewhere, log.ClearElrRecord("t"))
    partitions = image.topics_by_name["t"].partitions
    assert [partitions[number].elr for number in range(3)] == [(), (), ()]
    assert [partitions[number].partition_epoch for number in range(3)] == [2, 2, 0]
    assert image.topics_by_name["u"].partitions[0].last_known_elr == (2,)
    image.replay(log.ClearElrRecord(), 20, 1)
    assert image.topics_by_name["u"].partitions[0].last_known_elr == ()


def test_removing_a_topic_drops_its_configs_and_frees_its_name():
    config = log.ConfigRecord(TOPIC, "t", "retention.ms", "1")
    image = image_of(*topic(), config, log.RemoveTopicRecord(TOPIC_ID), *topic(1, "t", uuid(2)))
    assert image.configs(TOPIC, "t") == {}
    assert set(image.topics_by_id) == {uuid(2)}


# --- brokers


def broker(**fields: Any) -> Any:
    return log.RegisterBrokerRecord(1, broker_epoch=5, **fields)


def test_old_and_new_words_for_fencing():
    image = image_of(broker(), log.UnfenceBrokerRecord(1, 5))
    assert image.brokers[1].is_active
    image.replay(log.FenceBrokerRecord(1, 5), 9, 1)
    assert image.brokers[1].fenced
    image.replay(log.BrokerRegistrationChangeRecord(1, 5, fenced=-1, in_controlled_shutdown=1), 10, 1)
    assert not image.brokers[1].fenced
    assert image.brokers[1].in_controlled_shutdown
    assert image.shutdown_at == {1: 10}


def test_directories_change_only_when_named():
    dirs = (uuid(1), uuid(2))
    image = image_of(broker(log_dirs=dirs), log.BrokerRegistrationChangeRecord(1, 5, fenced=-1))
    assert image.brokers[1].log_dirs == dirs
    image.replay(log.BrokerRegistrationChangeRecord(1, 5, log_dirs=(uuid(2),), cordoned_log_dirs=(uuid(2),)), 3, 1)
    assert image.brokers[1].log_dirs == (uuid(2),)
    assert not image.brokers[1].takes_replicas


# --- the other kinds


def test_features_and_their_removal():
    image = image_of(log.FeatureLevelRecord("metadata.version", 30), log.FeatureLevelRecord("share.version", 1))
    assert image.features == {"metadata.version": 30, "share.version": 1}
    image.replay(log.FeatureLevelRecord("share.version", 0), 2, 1)
    assert image.features == {"metadata.version": 30}


def test_kraft_version_is_not_kept_here():
    assert image_of(log.FeatureLevelRecord("kraft.version", 9)).features == {}


def test_configs_that_were_given_out_do_not_change():
    image = image_of(log.ConfigRecord(BROKER, "", "a", "1"))
    given = image.configs(BROKER, "")
    image.replay(log.ConfigRecord(BROKER, "", "b", "2"), 1, 1)
    assert (given, image.configs(BROKER, "")) == ({"a": "1"}, {"a": "1", "b": "2"})
    image.replay(log.ConfigRecord(BROKER, "", "a", None), 2, 1)
    image.replay(log.ConfigRecord(BROKER, "", "b", None), 3, 1)
    assert image.config_resources(BROKER) == []


def test_quotas_are_by_entity_whatever_the_order_of_its_parts():
    part = log.ClientQuotaRecord.EntityData
    user, client = part("user", "alice"), part("client-id", None)
    image = image_of(
        log.ClientQuotaRecord((user, client), "producer_byte_rate", 1.0),
        log.ClientQuotaRecord((client, user), "consumer_byte_rate", 2.0),
    )
    assert image.quotas == {
        (("client-id", None), ("user", "alice")): {"producer_byte_rate": 1.0, "consumer_byte_rate": 2.0}
    }
    image.replay(log.ClientQuotaRecord((user, client), "producer_byte_rate", remove=True), 2, 1)
    image.replay(log.ClientQuotaRecord((user, client), "consumer_byte_rate", remove=True), 3, 1)
    assert image.quotas == {}


def test_acls_users_tokens_and_producer_ids():
    image = image_of(
        log.AccessControlEntryRecord(uuid(1), 2, "t"),
        log.UserScramCredentialRecord("alice", 1),
        log.DelegationTokenRecord(token_id="token"),
        log.ProducerIdsRecord(1, 5, 1000),
        log.RegisterControllerRecord(1, uuid(2)),
    )
    assert list(image.acls) == [uuid(1)]
    assert list(image.acl_rules.values()) == [1]
    assert list(image.scram) == [(1, "alice")]
    assert list(image.tokens) == ["token"]
    assert (image.next_producer_id, list(image.controllers)) == (1000, [1])
    image.replay(log.RemoveAccessControlEntryRecord(uuid(1)), 5, 1)
    image.replay(log.RemoveUserScramCredentialRecord("alice", 1), 6, 1)
    image.replay(log.RemoveDelegationTokenRecord("token"), 7, 1)
    assert (image.acls, image.acl_rules, image.scram, image.tokens) == ({}, {}, {}, {})


def test_what_4_x_no_longer_uses_is_read_and_left():
    assert image_of(log.ZkMigrationStateRecord(1), log.NoOpRecord()).topics_by_id == {}


# --- faults


@pytest.mark.parametrize(
    "record",
    [
        log.TopicRecord("t", uuid(9)),
        log.TopicRecord("u", TOPIC_ID),
        log.PartitionRecord(0, uuid(9)),
        log.PartitionRecord(-1, TOPIC_ID),
        log.PartitionRecord(0, TOPIC_ID, (1, 2), directories=(uuid(1),)),
        log.PartitionRecord(0, TOPIC_ID, leader_recovery_state=7),
        log.PartitionChangeRecord(0, uuid(9)),
        log.PartitionChangeRecord(5, TOPIC_ID),
        log.PartitionChangeRecord(0, TOPIC_ID, directories=(uuid(1),)),
        log.PartitionChangeRecord(0, TOPIC_ID, leader_recovery_state=7),
        log.RemoveTopicRecord(uuid(9)),
        log.ClearElrRecord("nobody"),
        log.UnregisterBrokerRecord(7, 5),
        log.UnregisterBrokerRecord(1, 4),
        log.BrokerRegistrationChangeRecord(7, 5),
        log.BrokerRegistrationChangeRecord(1, 4),
        log.BrokerRegistrationChangeRecord(1, 5, fenced=3),
        log.BrokerRegistrationChangeRecord(1, 5, in_controlled_shutdown=-1),
        log.FenceBrokerRecord(7, 5),
        log.UnfenceBrokerRecord(1, 4),
        log.ProducerIdsRecord(1, 5, 1000),
        log.RemoveAccessControlEntryRecord(uuid(9)),
        log.RemoveUserScramCredentialRecord("nobody", 1),
        log.RemoveDelegationTokenRecord("nothing"),
        log.EndTransactionRecord(),
        log.AbortTransactionRecord(),
    ],
    ids=lambda record: type(record).__name__,
)
def test_a_record_that_does_not_fit_is_named_and_changes_nothing(record: Any):
    image = image_of(*topic(), broker(), log.ProducerIdsRecord(1, 5, 1000))
    before = {**image.state(), "position": None}
    with pytest.raises(MetadataFault, match=f"offset 77, {type(record).__name__}: "):
        image.replay(record, 77, 2)
    assert {**image.state(), "position": None} == before
    assert image.last_offset == 77  # it was read all the same


@pytest.mark.parametrize(
    "record",
    [
        log.FeatureLevelRecord("metadata.version", 31),
        log.FeatureLevelRecord("metadata.version", 6),
        log.FeatureLevelRecord("share.version", 3),
        log.FeatureLevelRecord("later.version", 1),
        object(),
    ],
)
def test_what_cannot_be_understood_is_another_fault(record: Any):
    with pytest.raises(UnsupportedMetadataError, match="offset 3"):
        MetadataImage().replay(record, 3, 1)


def test_kafkas_own_vectors_never_raise_anything_else():
    tried = applied = 0
    with gzip.open(VECTORS, "rt") as lines:
        vectors = [json.loads(line) for line in lines]
    for vector in vectors:
        if vector["kind"] != "metadata" or not vector["source"].startswith("kafka-metadata "):
            continue
        record = decode_metadata("__cluster_metadata", bytes.fromhex(vector["framedHex"])).message
        image = image_of(*topic(3), broker())
        tried += 1
        try:
            image.replay(record, 99, 1)
        except MetadataFault:
            continue
        applied += 1
        if isinstance(record, log.BeginTransactionRecord):
            assert image.in_transaction
        elif image.metadata_version == 0:
            image.replay(log.FeatureLevelRecord("metadata.version", 30), 99, 1)
            assert through_snapshot(image) == image
    assert tried > 100
    assert applied > 50


# --- transactions


def test_records_of_a_transaction_take_effect_at_its_end():
    image = image_of(log.BeginTransactionRecord("x"), *topic())
    assert image.in_transaction
    assert image.transaction_start_offset == 0
    assert image.topics_by_id == {}
    image.replay(log.EndTransactionRecord(), 3, 1)
    assert set(image.topics_by_name) == {"t"}
    assert not image.in_transaction


def test_an_aborted_transaction_leaves_nothing():
    image = image_of(log.BeginTransactionRecord(), *topic(), log.AbortTransactionRecord("failover"))
    assert image.topics_by_id == {}
    assert not image.in_transaction


def test_transactions_do_not_nest():
    image = image_of(log.BeginTransactionRecord(), *topic())
    with pytest.raises(MetadataFault, match="still open"):
        image.replay(log.BeginTransactionRecord(), 9, 1)
    image.replay(log.EndTransactionRecord(), 10, 1)
    assert set(image.topics_by_name) == {"t"}


def test_a_bad_record_in_a_transaction_does_not_take_the_good_ones_along():
    image = image_of(log.BeginTransactionRecord(), log.RemoveTopicRecord(uuid(9)), *topic())
    with pytest.raises(MetadataFault, match="offset 1, RemoveTopicRecord"):
        image.replay(log.EndTransactionRecord(), 9, 1)
    assert set(image.topics_by_name) == {"t"}


def test_an_open_transaction_is_part_of_the_state():
    assert image_of(log.BeginTransactionRecord()) != image_of(log.NoOpRecord())


# --- changes and views


def test_changes_since_the_last_time(cluster: Cluster):
    cluster.image.take_changes()
    topic_id = cluster.create("t", 2, retention_ms="5")
    changes = cluster.image.take_changes()
    assert list(changes.topics_created) == [topic_id]
    assert changes.topics_created[topic_id] is cluster.image.topics_by_id[topic_id]
    assert changes.partitions == {(topic_id, 0), (topic_id, 1)}
    assert changes.configs == {(TOPIC, "t")}
    assert not changes.brokers
    cluster.heartbeat(want_fence=True)
    changes = cluster.image.take_changes()
    assert (changes.brokers, changes.topics_created) == ({1}, {})
    assert changes.partitions == {(topic_id, 0), (topic_id, 1)}
    assert cluster.image.take_changes().partitions == set()


def test_a_topic_made_and_removed_between_two_looks_was_never_there():
    image = image_of(*topic(), log.RemoveTopicRecord(TOPIC_ID))
    changes = image.take_changes()
    assert (changes.topics_created, changes.topics_deleted) == ({}, {})
    for record in topic():
        image.replay(record, 5, 1)
    image.take_changes()
    image.replay(log.RemoveTopicRecord(TOPIC_ID), 6, 1)
    assert [each.name for each in image.take_changes().topics_deleted.values()] == ["t"]


def test_a_view_stands_still(three: Cluster):
    three.create("t", 3, 3, retention_ms="5")
    held = three.image.fork()
    expected = through_snapshot(three.image)
    three.heartbeat(2, want_fence=True)
    three.create("u")
    created = three.image.take_changes().topics_created
    assert held == expected
    assert held != three.image
    assert all(topic.topic_id in three.image.topics_by_id for topic in created.values())
    assert held.collisions("t") == frozenset()


def test_what_is_replayed_onto_a_view_stays_in_it(three: Cluster):
    topic_id = three.create("t", 1, 3)
    held = three.image.fork()
    held.replay(log.PartitionChangeRecord(0, topic_id, leader=-1), 99, 1)
    partition = three.image.partition("t", 0)
    assert partition is not None
    assert partition.leader != -1


def test_a_topic_created_before_a_view_is_reported_as_it_is_after():
    image = image_of(*topic())
    image.fork()
    image.replay(log.PartitionChangeRecord(0, TOPIC_ID, leader=2), 9, 1)
    assert image.take_changes().topics_created[TOPIC_ID].partitions[0].leader == 2


@pytest.mark.parametrize("name", [name for name, entry in MESSAGES.items() if entry.file == "cluster_metadata"])
def test_every_record_type_of_the_log_is_known(name: str):
    is_known = True
    try:
        image_of(classes_of(name)(name)())
    except MetadataFault as fault:
        is_known = not isinstance(fault, UnsupportedMetadataError)
    assert is_known
