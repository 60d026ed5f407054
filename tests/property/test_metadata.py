"""The law of the metadata: live, replayed and through any snapshot, the state is the same.

Once with requests through the controller, whose records must always fit; once with any records in any order, of which
some do not fit and must then change nothing.
"""

from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.core.metadata import features
from ottla.core.metadata.fault import MetadataFault
from ottla.core.metadata.image import MetadataImage
from ottla.core.metadata.topic_image import NO_LEADER
from ottla.wire.types import cluster_metadata as log
from ottla.wire.types.allocate_producer_ids import AllocateProducerIdsRequest
from ottla.wire.types.create_partitions import CreatePartitionsRequest
from ottla.wire.types.create_topics import CreateTopicsRequest
from ottla.wire.types.delete_topics import DeleteTopicsRequest
from ottla.wire.types.incremental_alter_configs import IncrementalAlterConfigsRequest
from ottla.wire.types.unregister_broker import UnregisterBrokerRequest
from tests.unit.core.metadata.cluster import Cluster, registration, through_snapshot, uuid

# --- through the controller

brokers = st.integers(1, 3)
names = st.sampled_from(["orders", "pay.ments", "pay_ments", "x"])
Step = Callable[[Cluster], object]


def create(name: str, partitions: int, factor: int, min_isr: str | None) -> Step:
    kind = CreateTopicsRequest
    configs = () if min_isr is None else (kind.CreatableTopicConfig("min.insync.replicas", min_isr),)
    return lambda cluster: cluster.submit(kind((kind.CreatableTopic(name, partitions, factor, configs=configs),)))


def delete(name: str) -> Step:
    return lambda cluster: cluster.submit(DeleteTopicsRequest((DeleteTopicsRequest.DeleteTopicState(name),)))


def grow(name: str, count: int) -> Step:
    kind = CreatePartitionsRequest
    return lambda cluster: cluster.submit(kind((kind.CreatePartitionsTopic(name, count, None),)))


def alter(resource_type: int, name: str, key: str, operation: int, value: str) -> Step:
    kind = IncrementalAlterConfigsRequest
    config = kind.AlterableConfig(key, operation, None if operation == 1 else value)
    return lambda cluster: cluster.submit(kind((kind.AlterConfigsResource(resource_type, name, (config,)),)))


def register(broker_id: int, incarnation: int, *, is_clean: bool) -> Step:
    def step(cluster: Cluster) -> object:
        known = cluster.image.brokers.get(broker_id)
        previous = known.epoch if known is not None and is_clean else -1
        return cluster.submit(registration(broker_id, incarnation_id=uuid(incarnation), previous_broker_epoch=previous))

    return step


def heartbeat(broker_id: int, **wants: bool) -> Step:
    return lambda cluster: cluster.heartbeat(broker_id, **wants) if broker_id in cluster.image.brokers else None


def silence(broker_id: int) -> Step:
    """Everybody but one is heard of, and then that one is fenced."""

    def step(cluster: Cluster) -> None:
        cluster.now_ms += 5_000
        for other in [each for each in cluster.image.brokers if each != broker_id]:
            cluster.heartbeat(other, want_fence=cluster.image.brokers[other].fenced)
        cluster.now_ms += 4_000
        while (result := cluster.controller.tick(cluster.now_ms, cluster.now_ms)) is not None:
            cluster.append(result)

    return step


def restart(cluster: Cluster) -> None:
    cluster.restart()
    cluster.activate(own_broker_id=1)


def allocate(cluster: Cluster) -> None:
    for broker in list(cluster.image.brokers.values())[:1]:
        cluster.submit(AllocateProducerIdsRequest(broker.broker_id, broker.epoch))


steps = st.one_of(
    st.builds(create, names, st.integers(-1, 4), st.integers(-1, 4), st.sampled_from([None, "1", "2"])),
    st.builds(delete, names),
    st.builds(grow, names, st.integers(0, 6)),
    st.builds(
        alter,
        st.sampled_from([2, 4, 32]),
        st.sampled_from(["orders", "x", "", "1", "g"]),
        st.sampled_from(["cleanup.policy", "retention.ms", "min.insync.replicas", "unclean.leader.election.enable"]),
        st.integers(0, 3),
        st.sampled_from(["1", "2", "true", "compact", "compact,delete"]),
    ),
    st.builds(register, brokers, st.integers(500, 503), is_clean=st.booleans()),
    st.builds(heartbeat, brokers, want_fence=st.booleans(), want_shut_down=st.booleans()),
    st.builds(silence, brokers),
    st.builds(lambda broker_id: lambda cluster: cluster.submit(UnregisterBrokerRequest(broker_id)), brokers),
    st.just(restart),
    st.just(allocate),
)


def check_partitions(image: MetadataImage) -> None:
    """What must hold of every partition, whatever has happened."""
    for topic in image.topics_by_id.values():
        assert sorted(topic.partitions) == list(range(len(topic.partitions)))
        assert image.topics_by_name[topic.name] is topic
        for partition in topic.partitions.values():
            assert partition.replicas
            assert set(partition.isr) <= set(partition.replicas)
            assert not set(partition.isr) & set(partition.elr)
            assert len(partition.directories) == len(partition.replicas)
            if partition.leader != NO_LEADER:
                assert partition.leader in partition.isr
                assert image.brokers[partition.leader].is_active


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from([30, 30, 30, 25, 22, 17, 7]),
    st.lists(steps, max_size=25),
)
def test_a_life_of_requests(metadata_version: int, life: list[Step]):
    levels = features.levels_for_format({features.METADATA_VERSION: metadata_version})
    cluster = Cluster(levels=levels).with_brokers(1, 2, 3)
    for step in life:
        step(cluster)
        check_partitions(cluster.image)
    cluster.check_law()


# --- any records

ids = st.integers(1, 4).map(uuid)
ints = st.lists(st.integers(1, 4), max_size=3, unique=True).map(tuple)
maybe_ints = st.none() | ints
flags = st.integers(-1, 1)
texts = st.sampled_from(["", "a", "b.c", "b_c"])

records: st.SearchStrategy[Any] = st.one_of(
    st.builds(log.TopicRecord, texts, ids),
    st.builds(log.RemoveTopicRecord, ids),
    st.builds(
        log.PartitionRecord,
        st.integers(-1, 3),
        ids,
        replicas=ints,
        isr=ints,
        removing_replicas=ints,
        adding_replicas=ints,
        leader=st.integers(-1, 4),
        leader_recovery_state=st.integers(0, 1),
        leader_epoch=st.integers(0, 9),
        partition_epoch=st.integers(0, 9),
        eligible_leader_replicas=maybe_ints,
        last_known_elr=maybe_ints,
    ),
    st.builds(
        log.PartitionChangeRecord,
        st.integers(0, 3),
        ids,
        isr=maybe_ints,
        leader=st.integers(-2, 4),
        replicas=maybe_ints,
        removing_replicas=maybe_ints,
        adding_replicas=maybe_ints,
        leader_recovery_state=flags,
        directories=st.none() | st.lists(ids, max_size=3).map(tuple),
        eligible_leader_replicas=maybe_ints,
        last_known_elr=maybe_ints,
    ),
    st.builds(log.ClearElrRecord, texts),
    st.builds(log.ConfigRecord, st.sampled_from([2, 4, 16, 32]), texts, texts, st.none() | texts),
    st.builds(
        log.RegisterBrokerRecord,
        st.integers(1, 3),
        st.booleans(),
        ids,
        st.integers(1, 2),
        rack=st.none() | texts,
        fenced=st.booleans(),
        in_controlled_shutdown=st.booleans(),
        log_dirs=st.lists(ids, max_size=2).map(tuple),
        cordoned_log_dirs=st.none() | st.lists(ids, max_size=2).map(tuple),
    ),
    st.builds(log.UnregisterBrokerRecord, st.integers(1, 3), st.integers(1, 2)),
    st.builds(log.BrokerRegistrationChangeRecord, st.integers(1, 3), st.integers(1, 2), flags, flags),
    st.builds(log.FenceBrokerRecord, st.integers(1, 3), st.integers(1, 2)),
    st.builds(log.UnfenceBrokerRecord, st.integers(1, 3), st.integers(1, 2)),
    st.builds(log.RegisterControllerRecord, st.integers(1, 3), ids),
    st.builds(log.FeatureLevelRecord, st.sampled_from(sorted(features.FEATURES)), st.integers(0, 2)),
    st.builds(
        log.ClientQuotaRecord,
        st.lists(st.builds(log.ClientQuotaRecord.EntityData, texts, st.none() | texts), max_size=2).map(tuple),
        texts,
        st.floats(allow_nan=False),
        st.booleans(),
    ),
    st.builds(log.ProducerIdsRecord, st.just(1), st.just(1), st.integers(0, 5000)),
    st.builds(log.AccessControlEntryRecord, ids, st.integers(0, 7), texts),
    st.builds(log.RemoveAccessControlEntryRecord, ids),
    st.builds(log.UserScramCredentialRecord, texts, st.integers(0, 2), st.binary(max_size=4)),
    st.builds(log.RemoveUserScramCredentialRecord, texts, st.integers(0, 2)),
    st.builds(log.DelegationTokenRecord, token_id=texts),
    st.builds(log.RemoveDelegationTokenRecord, texts),
    st.builds(log.BeginTransactionRecord, st.none() | texts),
    st.just(log.EndTransactionRecord()),
    st.builds(log.AbortTransactionRecord, st.none() | texts),
    st.just(log.NoOpRecord()),
)


def apply(image: MetadataImage, record: object, offset: int) -> bool:
    try:
        image.replay(record, offset, 1)
    except MetadataFault:
        return False
    return True


@settings(max_examples=300, deadline=None)
@given(st.lists(records, max_size=40), st.integers(0, 40))
def test_a_soup_of_records(soup: list[Any], cut: int):
    soup = [log.FeatureLevelRecord(features.METADATA_VERSION, 30), *soup]
    live, resumed = MetadataImage(), MetadataImage()
    for offset, record in enumerate(soup):
        before = None if isinstance(record, log.EndTransactionRecord) else {**live.state(), "position": None}
        held = live.fork()
        if not apply(live, record, offset) and before is not None:
            assert {**live.state(), "position": None} == before
        assert held.state()["position"] == (offset - 1, -1 if offset == 0 else 1)
        if offset == cut:
            live_then = through_snapshot(live)
            resumed = live_then if live_then is not None else live.fork()
        elif offset > cut:
            apply(resumed, record, offset)
    if cut < len(soup):
        assert resumed.state() == live.state()
    again = MetadataImage()
    for offset, record in enumerate(soup):
        apply(again, record, offset)
    assert again == live


@settings(max_examples=100, deadline=None)
@given(st.lists(records, max_size=25), st.lists(records, max_size=10))
def test_a_view_never_moves(first: list[Any], then: list[Any]):
    image, same = MetadataImage(), MetadataImage()
    for offset, record in enumerate(first):
        apply(image, record, offset)
        apply(same, record, offset)
    held = image.fork()
    for offset, record in enumerate(then, len(first)):
        apply(image, record, offset)
    assert held == same
