"""Our controller's core beside Apache Kafka's controller: the same requests, the same replies, the same records."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from ottla.core.metadata import features
from ottla.core.metadata.topic_image import NO_LEADER
from ottla.wire.errors import ErrorCode
from ottla.wire.types.allocate_producer_ids import AllocateProducerIdsRequest
from ottla.wire.types.alter_partition import AlterPartitionRequest
from ottla.wire.types.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from ottla.wire.types.assign_replicas_to_dirs import AssignReplicasToDirsRequest
from ottla.wire.types.broker_heartbeat import BrokerHeartbeatRequest
from ottla.wire.types.broker_registration import BrokerRegistrationRequest
from ottla.wire.types.controller_registration import ControllerRegistrationRequest
from ottla.wire.types.create_partitions import CreatePartitionsRequest
from ottla.wire.types.delete_topics import DeleteTopicsRequest
from ottla.wire.types.elect_leaders import ElectLeadersRequest
from ottla.wire.types.incremental_alter_configs import IncrementalAlterConfigsRequest
from ottla.wire.types.list_partition_reassignments import ListPartitionReassignmentsRequest
from ottla.wire.types.unregister_broker import UnregisterBrokerRequest
from ottla.wire.types.update_features import UpdateFeaturesRequest
from tests.interop.controller.twin import Difference, Twin, registration, uuid

PREFERRED, UNCLEAN = 0, 1
HIGH, LOW = 99, -1


def reassign(twin: Twin, name: str, replicas: tuple[int, ...] | None, number: int = 0, *, resize: bool = True) -> int:
    kind = AlterPartitionReassignmentsRequest
    wanted = (kind.ReassignableTopic(name, (kind.ReassignablePartition(number, replicas),)),)
    reply = twin.ask(kind(60_000, resize, wanted), 1)
    twin.ask(ListPartitionReassignmentsRequest(60_000, None), 0)
    return int(reply.responses[0].partitions[0].error_code)


def elect(twin: Twin, election: int, *asked: tuple[str, int]) -> Any:
    topics = tuple(ElectLeadersRequest.TopicPartitions(name, (number,)) for name, number in asked)
    return twin.ask(ElectLeadersRequest(election, topics or None), 2)


def set_topic(twin: Twin, name: str, key: str, value: str | None) -> None:
    kind = IncrementalAlterConfigsRequest
    config = kind.AlterableConfig(key, 0 if value is not None else 1, value)
    twin.ask(kind((kind.AlterConfigsResource(2, name, (config,)),)), 1)


def fence(twin: Twin, *broker_ids: int) -> None:
    for broker_id in broker_ids:
        twin.heartbeat(broker_id, want_fence=True)


def only(reply: Any) -> int:
    return int(reply.topics[0].partitions[0].error_code)


# --- brokers


def test_brokers_register(twin: Twin):
    kind = BrokerRegistrationRequest
    all_features = registration(1).features
    for version in range(5):
        extra = {"log_dirs": ()} if version < 2 else {}
        twin.register(1, version=version, **extra)
    without = [
        tuple(each for each in all_features if each.name != name) for name in ("metadata.version", "group.version")
    ]
    for fields in (
        {"cluster_id": "AAAAAAAAAAAAAAAAAAAAAA"},
        {"log_dirs": ()},
        {"log_dirs": (bytes(16),)},
        {"log_dirs": (uuid(5), uuid(5))},
        {"features": without[0]},
        {"features": without[1]},
        {"features": (*without[0], kind.Feature("metadata.version", 7, 29))},
        {"features": (*without[1], kind.Feature("group.version", 2, 3))},
        {"features": (*all_features, kind.Feature("later.version", 1, 3))},
        {"is_migrating_zk_broker": True},
        {"features": (*all_features, kind.Feature("later.version", 0, 3)), "rack": "north"},
        {"listeners": (kind.Listener("A", "127.0.0.1", 1, 0), kind.Listener("B", "127.0.0.1", 2, 3))},
    ):
        twin.register(2, **fields)
    twin.register(3, log_dirs=(uuid(2002),))  # another one's
    twin.register(2, incarnation_id=uuid(9))
    twin.heartbeat(2, want_fence=True)
    assert twin.register(2, incarnation_id=uuid(8)).error_code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    twin.register(2, incarnation_id=uuid(9), rack="south")
    twin.ask(AllocateProducerIdsRequest(2, twin.image.brokers[2].epoch), 0)
    twin.ask(AllocateProducerIdsRequest(2, twin.image.brokers[2].epoch), 0)
    twin.ask(AllocateProducerIdsRequest(2, 0), 0)
    controller = ControllerRegistrationRequest
    twin.ask(
        controller(
            7,
            uuid(7),
            False,
            (controller.Listener("CONTROLLER", "127.0.0.1", 7, 0),),
            (controller.Feature("metadata.version", 7, 30),),
        ),
        0,
    )


def test_heartbeats_move_brokers_through_their_states(twin: Twin):
    twin.ask(BrokerHeartbeatRequest(1, 0), 2)
    twin.register(1)
    epoch = twin.image.brokers[1].epoch
    twin.heartbeat(1, current_metadata_offset=epoch - 1)
    twin.heartbeat(1, broker_epoch=epoch + 1)
    for version in range(3):
        twin.heartbeat(1, version=version, want_fence=True)
    twin.heartbeat(1, cordoned_log_dirs=())
    twin.heartbeat(1, cordoned_log_dirs=())
    twin.start(2, 3)
    twin.create("t", (1, 2, 3), (2, 3, 1), (3, 1, 2), min_insync_replicas="2")
    twin.heartbeat(2)
    fence(twin, 2)
    fence(twin, 2)
    twin.heartbeat(2)
    twin.heartbeat(3, want_fence=True, want_shut_down=True)
    twin.heartbeat(3, want_shut_down=True)
    twin.heartbeat(3)
    # a controlled shutdown: it waits for the others to know
    before = twin.end_offset - 1
    twin.heartbeat(1, want_shut_down=True)
    twin.heartbeat(1, want_shut_down=True)
    twin.heartbeat(2, current_metadata_offset=before)
    twin.heartbeat(3)
    assert not twin.heartbeat(1, want_shut_down=True).should_shut_down
    twin.heartbeat(2)
    assert twin.heartbeat(1).should_shut_down
    twin.heartbeat(1, want_shut_down=True)
    # without leaderships at once
    twin.start(4)
    assert twin.heartbeat(4, want_shut_down=True).should_shut_down
    twin.ask(UnregisterBrokerRequest(4), 0)
    twin.ask(UnregisterBrokerRequest(4), 0)
    twin.ask(UnregisterBrokerRequest(2), 0)


def test_directories_fail_and_are_assigned(twin: Twin):
    twin.start(1, log_dirs=(uuid(11), uuid(12), uuid(13)))
    twin.start(2, 3)
    twin.create("t", (1, 2), (1, 3), (1, 2), (2, 1))
    topic_id = twin.image.topics_by_name["t"].topic_id

    def assign(directory: bytes, *numbers: int, topic: bytes = topic_id, broker_id: int = 1, epoch: int = 0) -> None:
        kind = AssignReplicasToDirsRequest
        data = kind.TopicData(topic, tuple(map(kind.PartitionData, numbers)))
        epoch = epoch or twin.image.brokers[broker_id].epoch
        twin.ask(kind(broker_id, epoch, (kind.DirectoryData(directory, (data,)),)), 0)

    assign(uuid(11), 0, 1)
    assign(uuid(11), 0)
    assign(uuid(12), 2, 9)
    assign(uuid(12), 0, topic=uuid(4711))
    assign(uuid(2003), 0, broker_id=3)
    assign(uuid(11), 0, epoch=1)
    twin.heartbeat(1, offline_log_dirs=(uuid(11),))
    twin.heartbeat(1, offline_log_dirs=(uuid(11), uuid(99)))
    assign(uuid(11), 2, 3)  # in the one that has failed
    twin.heartbeat(1, cordoned_log_dirs=(uuid(12),))
    twin.heartbeat(1, cordoned_log_dirs=(uuid(12), uuid(13)))
    twin.heartbeat(1, want_fence=True, offline_log_dirs=(uuid(12),))
    twin.heartbeat(1)


# --- AlterPartition


def test_every_error_of_alter_partition(twin: Twin):
    twin.start(1, 2, 3)
    twin.create("t", (1, 2, 3), (1, 2, 3))
    twin.create("moving", (1,))
    kind = AlterPartitionRequest
    cases: list[tuple[tuple[int, ...], dict[str, Any], int]] = [
        ((1, 2), {"broker_epoch": 0}, -1),
        ((1, 2), {"topic_id": uuid(4711)}, 100),
        ((1, 2), {"topic_id": bytes(16)}, 100),
        ((1, 2), {"partition_index": 9}, 3),
        ((9,), {"leader_epoch": HIGH, "partition_epoch": LOW, "sender": 2}, 41),
        ((9,), {"leader_epoch": LOW, "partition_epoch": HIGH, "sender": 2}, 41),
        ((9,), {"leader_epoch": LOW, "partition_epoch": LOW, "sender": 2}, 74),
        ((9,), {"partition_epoch": LOW, "sender": 2}, 42),
        ((9,), {"partition_epoch": LOW}, 95),
        ((1, 9), {}, 42),
        ((1, 1), {}, 42),
        ((1, -1), {}, 42),
        ((2, 3), {}, 42),
        ((), {}, 42),
        ((1, 2), {"leader_recovery_state": 1}, 42),
        ((1,), {"leader_recovery_state": 1}, 42),
        ((1, 2), {"epochs": {2: 0}}, 107),
        ((1, 2), {"epochs": {2: -1}}, 0),
        ((1, 3, 2), {}, 0),
        ((1, 3, 2), {}, 0),
        ((3, 2, 1), {}, 0),
    ]
    for version in (3, 2):
        for isr, fields, wanted in cases:
            if version < 3 and "epochs" in fields:
                continue
            reply = twin.alter("t", isr, version=version, **fields)
            assert (only(reply) if reply.topics else -1) == wanted, (isr, fields)
    fence(twin, 2)
    assert only(twin.alter("t", (1, 2))) == 107
    twin.heartbeat(2)
    twin.create("led-by-2", (2, 3))
    twin.heartbeat(2, want_shut_down=True)
    assert only(twin.alter("t", (1, 2))) == 107
    twin.ask(UnregisterBrokerRequest(2), 0)
    assert only(twin.alter("t", (1, 2))) == 107
    reassign(twin, "moving", (3,))
    assert only(twin.alter("moving", (1, 3))) == 108
    several = kind.TopicData(twin.image.topics_by_name["t"].topic_id, tuple(map(kind.PartitionData, range(4))))
    twin.ask(kind(1, twin.image.brokers[1].epoch, (several, kind.TopicData(uuid(1), several.partitions))), 3)
    assert {3, 41, 42, 74, 77, 95, 100, 107, 108} <= twin.codes


def test_an_unclean_leader_recovers(twin: Twin):
    twin.start(1, 2, 3)
    twin.create("t", (1, 2, 3), unclean_leader_election_enable="true")
    twin.alter("t", (1,))
    fence(twin, 1)
    assert twin.partition("t").leader_recovery_state == 1
    assert only(twin.alter("t", (2, 3), leader_recovery_state=1)) == 42
    assert only(twin.alter("t", (2,), leader_recovery_state=1)) == 0
    assert only(twin.alter("t", (2, 3))) == 0
    twin.heartbeat(1)
    twin.alter("t", (2, 3, 1))
    elect(twin, PREFERRED, ("t", 0))
    elect(twin, PREFERRED, ("t", 0))
    elect(twin, UNCLEAN, ("t", 0), ("t", 9), ("missing", 0))
    elect(twin, PREFERRED)


def test_eligible_leaders(twin: Twin):
    twin.start(1, 2, 3, 4)
    twin.create("t", (1, 2, 3), (2, 3, 4), (3, 4, 1), min_insync_replicas="2")
    twin.create("u", (1, 2), min_insync_replicas="3")
    for name, isr in (("t", (1, 2)), ("t", (1,)), ("t", (1, 3)), ("t", (1,)), ("u", (1,))):
        twin.alter(name, isr)
    fence(twin, 1, 3)
    twin.heartbeat(3)
    twin.heartbeat(1)
    fence(twin, 4, 2, 1, 3)
    set_topic(twin, "t", "unclean.leader.election.enable", "true")
    twin.heartbeat(2)
    elect(twin, UNCLEAN)
    twin.heartbeat(1)
    set_topic(twin, "t", "min.insync.replicas", "1")
    twin.heartbeat(4)
    twin.heartbeat(3)
    twin.ask(UnregisterBrokerRequest(4), 0)
    set_topic(twin, "u", "min.insync.replicas", None)


# --- reassignments, topics, features


def test_reassignments_begin_go_on_and_end(twin: Twin):
    twin.start(1, 2, 3, 4)
    twin.create("t", (1, 2))
    twin.create("single", (1,))
    twin.create("triple", (1, 2, 3))
    assert reassign(twin, "t", None) == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    for replicas in ((9,), (1, 1), ()):
        reassign(twin, "t", replicas)
    reassign(twin, "t", (1,), number=9)
    reassign(twin, "missing", (1,))
    reassign(twin, "t", (1, 2))
    reassign(twin, "t", (2, 1))
    assert reassign(twin, "t", (1, 2, 3), resize=False) == ErrorCode.INVALID_REPLICATION_FACTOR
    # one at a time
    reassign(twin, "t", (3, 4))
    twin.alter("t", (1, 2, 3))
    twin.alter("t", (1, 2, 3, 4))
    # called back
    reassign(twin, "single", (2, 3))
    reassign(twin, "single", None)
    reassign(twin, "single", (2, 3))
    twin.alter("single", (1, 2))
    fence(twin, 1)
    assert reassign(twin, "single", None) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    set_topic(twin, "single", "unclean.leader.election.enable", "true")
    assert reassign(twin, "single", None) == 0
    twin.heartbeat(1)
    # sent elsewhere on the way
    reassign(twin, "triple", (4,))
    reassign(twin, "triple", (1, 2, 4), resize=False)
    reassign(twin, "triple", (4, 2))
    twin.alter("triple", (twin.partition("triple").leader, 4))
    twin.alter("triple", (twin.partition("triple").leader, 2, 4))
    # fewer replicas
    reassign(twin, "triple", (2,))
    reassign(twin, "triple", (2, 1))
    twin.alter("triple", (2, 1))


def test_topics_with_assignments(twin: Twin):
    twin.start(1, 2, 3)
    fence(twin, 3)
    for replicas in (((1, 2), (2, 3)), ((3,),), ((1, 2), (1,)), ((1, 1),), ((9,),), ((),)):
        twin.create(f"t{len(twin.image.topics_by_name)}", *replicas)
    twin.create("grown", (1, 2))
    kind = CreatePartitionsRequest
    for assignments, count in ((((3, 2),), 2), (((2,),), 3), (((2, 1), (1, 2)), 3), (((2, 1), (1, 2)), 4), ((), 1)):
        brokers = tuple(map(kind.CreatePartitionsAssignment, assignments))
        twin.ask(kind((kind.CreatePartitionsTopic("grown", count, brokers),), 60_000), 3)
    for _ in range(2):
        twin.ask(DeleteTopicsRequest((DeleteTopicsRequest.DeleteTopicState("grown"),), timeout_ms=60_000), 6)


def test_features_must_be_supported_by_all(twin: Twin):
    twin.start(1)
    narrow = tuple(
        BrokerRegistrationRequest.Feature(name, low, min(high, 1) if name == "share.version" else high)
        for name, (low, high) in features.SUPPORTED.items()
    )
    twin.start(2, features=narrow)
    kind = UpdateFeaturesRequest
    for name, level, upgrade_type in (
        ("share.version", 0, 1),
        ("share.version", 0, 2),
        ("share.version", 1, 1),
        ("share.version", 2, 1),
        ("group.version", 9, 1),
        ("missing.version", 1, 1),
        ("missing.version", 0, 2),
        ("metadata.version", 29, 2),
        ("metadata.version", 29, 3),
        ("metadata.version", 99, 1),
        ("transaction.version", 1, 2),
        ("transaction.version", 2, 1),
        ("transaction.version", 2, 9),
        ("eligible.leader.replicas.version", 0, 2),
        ("eligible.leader.replicas.version", 1, 1),
        ("kraft.version", 0, 2),
    ):
        for validate_only in (True, False):
            update = kind.FeatureUpdateKey(name, level, upgrade_type=upgrade_type)
            twin.ask(kind(60_000, (update,), validate_only), 2)


# --- sessions


def test_brokers_that_fall_silent_are_fenced(short_twin: Twin):
    twin = short_twin
    twin.start(1, 2, 3)
    twin.create("t", (1, 2, 3), (2, 3, 1), (3, 1, 2), min_insync_replicas="2")
    twin.create("single", (3,))
    twin.wait_for_change(1, 2)
    assert twin.image.brokers[3].fenced
    twin.wait_for_change(1)
    assert twin.image.brokers[2].fenced
    assert [each.leader for _, each in twin.image.partitions()] == [1, 1, 1, NO_LEADER]
    # one comes back having stopped in order, as far as is known, the other having crashed
    twin.register(2, incarnation_id=uuid(52), previous_broker_epoch=twin.image.brokers[2].epoch)
    twin.heartbeat(1)
    twin.heartbeat(2)
    twin.register(3, incarnation_id=uuid(53))
    twin.heartbeat(3)
    twin.heartbeat(1)
    for number in range(3):
        twin.alter("t", (1, 2, 3), number=number)


def test_leaders_are_looked_after(busy_twin: Twin):
    twin = busy_twin
    twin.start(1, 2, 3)
    twin.create("t", (1, 2, 3))
    twin.create("lost", (1, 2))
    twin.alter("lost", (1,))
    fence(twin, 1)
    assert [each.leader for _, each in twin.image.partitions()] == [2, NO_LEADER]
    set_topic(twin, "lost", "unclean.leader.election.enable", "true")
    twin.wait_for_change()
    assert twin.partition("lost").leader == 2
    twin.heartbeat(1)
    twin.alter("t", (2, 3, 1))
    twin.wait_for_change()
    assert twin.partition("t").leader == 1


# --- at random


def step(twin: Twin, source: random.Random, stopping: set[int]) -> Callable[[], object]:
    """Something that may be asked in this state, rightly or not. A broker that stops asks for nothing else any more."""
    brokers = sorted(twin.image.brokers)
    gone = {each for each in stopping if twin.image.brokers[each].fenced}
    broker_id = source.choice([each for each in brokers if each not in gone])
    name = source.choice(sorted(twin.image.topics_by_name))
    number = source.choice(sorted(twin.image.topics_by_name[name].partitions))
    partition = twin.partition(name, number)
    some = tuple(source.sample(brokers, source.randint(1, min(3, len(brokers)))))

    def new_isr() -> object:
        if partition.leader == NO_LEADER:
            return elect(twin, UNCLEAN, (name, number))
        others = [each for each in partition.replicas if each != partition.leader and source.random() < 0.7]
        state = partition.leader_recovery_state if source.random() < 0.3 else 0
        return twin.alter(name, (partition.leader, *others), number=number, leader_recovery_state=state)

    def stop() -> object:
        if len(stopping) < 2:
            stopping.add(broker_id)
        return beat()

    def beat(*, want_fence: bool = False) -> object:
        is_stopping = broker_id in stopping
        was_fenced = twin.image.brokers[broker_id].fenced
        reply = twin.heartbeat(broker_id, want_fence=want_fence and not is_stopping, want_shut_down=is_stopping)
        if was_fenced and not reply.is_fenced:
            twin.heartbeat(broker_id)  # Apache's shutdowns wait for it, ours do not
        return reply

    def reassigned() -> object:
        if partition.is_reassigning or len(some) < 2:
            return call_back()  # ours differs for partitions on their way, and for fewer replicas than the minimum
        return reassign(twin, name, some, number=number, resize=source.random() < 0.8)

    def call_back() -> object:
        before = [each for each in partition.isr if each not in partition.adding_replicas]
        return reassign(twin, name, None, number=number) if len(before) != 1 else beat()

    choices: list[tuple[int, Callable[[], object]]] = [
        (6, new_isr),
        (2, lambda: beat(want_fence=True)),
        (5, beat),
        (1, stop),
        (2, reassigned),
        (1, call_back),
        (1, lambda: elect(twin, PREFERRED, (name, number))),
        (1, lambda: elect(twin, UNCLEAN, (name, number))),
        (1, lambda: set_topic(twin, name, "min.insync.replicas", source.choice(["1", "2"]))),
        (1, lambda: set_topic(twin, name, "unclean.leader.election.enable", source.choice(["true", "false"]))),
        (1, lambda: twin.create(f"t{twin.end_offset}", some, some)),
    ]
    return source.choices([each for _, each in choices], [weight for weight, _ in choices])[0]


@pytest.mark.parametrize("seed", range(3))
def test_histories_at_random(twin: Twin, seed: int):
    source = random.Random(seed)
    stopping: set[int] = set()
    twin.start(1, 2, 3, 4, 5)
    twin.create("t", (1, 2, 3), (2, 3, 4), (3, 4, 5), (4, 5, 1), (5, 1, 2), min_insync_replicas="2")
    twin.create("u", (1, 2), (4, 3))
    for number in range(300):
        try:
            step(twin, source, stopping)()
        except Difference as difference:
            raise Difference(f"seed {seed}, step {number}: {difference}") from None
    assert twin.request_count > 300
