"""AlterPartition: the order of its checks, and what becomes of a partition."""

from typing import Any

import pytest

from ottla.core.metadata import features
from ottla.core.metadata.context import Result
from ottla.core.metadata.topic_image import NO_LEADER, PartitionImage
from ottla.wire.access import Operation
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import Versioned
from ottla.wire.types.alter_partition import AlterPartitionRequest
from ottla.wire.types.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from ottla.wire.types.cluster_metadata import PartitionChangeRecord
from ottla.wire.types.create_topics import CreateTopicsRequest
from ottla.wire.types.unregister_broker import UnregisterBrokerRequest
from tests.unit.core.metadata.cluster import Cluster, uuid


def created(cluster: Cluster, *replicas: int, name: str = "t", **configs: str) -> PartitionImage:
    """A topic of one partition on these brokers."""
    kind = CreateTopicsRequest
    settings = tuple(kind.CreatableTopicConfig(key.replace("_", "."), value) for key, value in configs.items())
    assignment = (kind.CreatableReplicaAssignment(0, replicas),)
    reply = cluster.submit(kind((kind.CreatableTopic(name, -1, -1, assignment, settings),)))
    assert reply.topics[0].error_code == 0, reply
    return partition(cluster, name)


def partition(cluster: Cluster, name: str = "t") -> PartitionImage:
    found = cluster.image.partition(name, 0)
    assert found is not None
    return found


def proposal(cluster: Cluster, *isr: int, sender: int | None = None, **fields: Any) -> AlterPartitionRequest:
    """What the partition's leader would send, but for the fields given."""
    kind = AlterPartitionRequest
    now = partition(cluster)
    sender = now.leader if sender is None else sender
    broker_epoch = fields.pop("broker_epoch", cluster.image.brokers[sender].epoch)
    topic_id = fields.pop("topic_id", cluster.image.topics_by_name["t"].topic_id)
    epochs = fields.pop("epochs", {})
    known = {broker.broker_id: broker.epoch for broker in cluster.image.brokers.values()}
    given: dict[str, Any] = {
        "leader_epoch": now.leader_epoch,
        "partition_epoch": now.partition_epoch,
        "leader_recovery_state": 0,
        "new_isr_with_epochs": tuple(kind.BrokerState(each, {**known, **epochs}.get(each, -1)) for each in isr),
        **fields,
    }
    return kind(sender, broker_epoch, (kind.TopicData(topic_id, (kind.PartitionData(0, **given),)),))


def answer(reply: Any) -> Any:
    assert reply.error_code == 0
    ((only,),) = (topic.partitions for topic in reply.topics)
    return only


def fence(cluster: Cluster, *broker_ids: int) -> None:
    for broker_id in broker_ids:
        cluster.heartbeat(broker_id, want_fence=True)


# --- who is in sync


def test_a_follower_that_has_caught_up_comes_into_the_isr(three: Cluster):
    created(three, 1, 2, 3)
    fence(three, 2)
    three.heartbeat(2)
    before = partition(three)
    assert before.isr == (1, 3)
    result = three.ask(proposal(three, 1, 3, 2))
    (record,) = result.records
    topic_id = three.image.topics_by_name["t"].topic_id
    assert record == Versioned(PartitionChangeRecord(0, topic_id, isr=(1, 3, 2)), 2)
    given = answer(result.reply)
    assert (given.error_code, given.leader_id, given.isr) == (0, 1, (1, 3, 2))
    assert (given.leader_epoch, given.partition_epoch) == (before.leader_epoch, before.partition_epoch + 1)
    three.append(result)
    assert (partition(three).isr, partition(three).partition_epoch) == (given.isr, given.partition_epoch)


def test_a_follower_that_lags_leaves_the_isr_and_below_the_minimum_stays_eligible(three: Cluster):
    created(three, 1, 2, 3, min_insync_replicas="2")
    three.submit(proposal(three, 1, 2))
    assert (partition(three).isr, partition(three).elr) == ((1, 2), ())
    three.submit(proposal(three, 1))
    assert (partition(three).isr, partition(three).elr, partition(three).leader_epoch) == ((1,), (2,), 0)
    three.submit(proposal(three, 1, 3))
    assert (partition(three).isr, partition(three).elr) == ((1, 3), ())


def test_what_is_on_record_already_is_answered_and_not_written(three: Cluster):
    created(three, 1, 2, 3)
    result = three.ask(proposal(three, 1, 2, 3))
    assert result.records == ()
    given = answer(result.reply)
    assert (given.error_code, given.isr, given.partition_epoch) == (0, (1, 2, 3), 0)


def test_before_version_3_members_come_without_epochs(three: Cluster):
    created(three, 1, 2, 3)
    three.submit(proposal(three, new_isr=(1, 2), new_isr_with_epochs=()), api_version=2)
    assert partition(three).isr == (1, 2)


def test_several_partitions_succeed_or_fail_on_their_own(three: Cluster):
    kind = AlterPartitionRequest
    created(three, 1, 2, 3)
    created(three, 1, 2, 3, name="u")
    good = proposal(three, 1, 2).topics[0]
    other = three.image.topics_by_name["u"].topic_id
    asked = (
        kind.TopicData(uuid(4711), (kind.PartitionData(0), kind.PartitionData(7))),
        kind.TopicData(good.topic_id, (*good.partitions, kind.PartitionData(9))),
        kind.TopicData(other, (kind.PartitionData(0, 0, (), (kind.BrokerState(1), kind.BrokerState(3))),)),
    )
    reply = three.submit(kind(1, three.image.brokers[1].epoch, asked))
    codes = [[(each.partition_index, each.error_code) for each in topic.partitions] for topic in reply.topics]
    assert [topic.topic_id for topic in reply.topics] == [uuid(4711), good.topic_id, other]
    assert codes == [[(0, 100), (7, 100)], [(0, 0), (9, 3)], [(0, 0)]]
    assert (partition(three).isr, partition(three, "u").isr) == ((1, 2), (1, 3))


# --- the order of the checks

LOW, HIGH = -1, 5


@pytest.mark.parametrize(
    ("isr", "fields", "code"),
    [
        # each with everything behind it wrong, too
        ((9, 9), {"topic_id": uuid(4711), "leader_epoch": HIGH}, ErrorCode.UNKNOWN_TOPIC_ID),
        ((9, 9), {"topic_id": bytes(16), "leader_epoch": HIGH}, ErrorCode.UNKNOWN_TOPIC_ID),
        ((9, 9), {"partition_index": 9, "leader_epoch": HIGH}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ((9, 9), {"leader_epoch": HIGH, "partition_epoch": LOW, "sender": 2}, ErrorCode.NOT_CONTROLLER),
        ((9, 9), {"leader_epoch": LOW, "partition_epoch": HIGH, "sender": 2}, ErrorCode.NOT_CONTROLLER),
        ((9, 9), {"leader_epoch": LOW, "partition_epoch": LOW, "sender": 2}, ErrorCode.FENCED_LEADER_EPOCH),
        ((9, 9), {"partition_epoch": LOW, "sender": 2}, ErrorCode.INVALID_REQUEST),
        ((9, 9), {"partition_epoch": LOW}, ErrorCode.INVALID_UPDATE_VERSION),
        ((1, 9), {"epochs": {1: 0}}, ErrorCode.INVALID_REQUEST),  # no replica
        ((1, 1), {"epochs": {1: 0}}, ErrorCode.INVALID_REQUEST),  # twice
        ((1, -1), {"epochs": {1: 0}}, ErrorCode.INVALID_REQUEST),
        ((2, 3), {"epochs": {2: 0}}, ErrorCode.INVALID_REQUEST),  # without the leader
        ((), {}, ErrorCode.INVALID_REQUEST),
        ((1, 2), {"leader_recovery_state": 1, "epochs": {2: 0}}, ErrorCode.INVALID_REQUEST),
        ((1,), {"leader_recovery_state": 1, "epochs": {1: 0}}, ErrorCode.INVALID_REQUEST),  # recovered -> recovering
        ((1, 2), {"epochs": {2: 0}}, ErrorCode.INELIGIBLE_REPLICA),
        ((1, 2), {"epochs": {2: -1}}, ErrorCode.NONE),
    ],
)
def test_the_first_thing_wrong_is_the_answer(
    three: Cluster, isr: tuple[int, ...], fields: dict[str, Any], code: ErrorCode
):
    created(three, 1, 2, 3)
    index = fields.get("partition_index", 0)
    asked = proposal(three, *isr, **{key: value for key, value in fields.items() if key != "partition_index"})
    if index:
        (topic,) = asked.topics
        moved = AlterPartitionRequest.PartitionData(index, HIGH)
        asked = AlterPartitionRequest(
            asked.broker_id, asked.broker_epoch, (AlterPartitionRequest.TopicData(topic.topic_id, (moved,)),)
        )
    result = three.ask(asked)
    given = answer(result.reply)
    assert (ErrorCode(given.error_code), given.partition_index) == (code, index)
    if code:
        assert result.records == ()
        assert (given.leader_id, given.leader_epoch, given.isr, given.partition_epoch) == (0, 0, (), 0)


@pytest.mark.parametrize("broker_epoch", [-1, 0, 10**6])
def test_another_broker_epoch_fails_the_whole_request(three: Cluster, broker_epoch: int):
    created(three, 1, 2, 3)
    result = three.ask(proposal(three, 1, 2, broker_epoch=broker_epoch))
    assert (result.reply.error_code, result.reply.topics) == (ErrorCode.STALE_BROKER_EPOCH, ())


def test_who_may_not_act_for_the_cluster_is_refused(three: Cluster):
    created(three, 1, 2, 3)

    def authorize(operation: Operation, *_: object) -> bool:
        return operation is not Operation.CLUSTER_ACTION

    result = three.ask(proposal(three, 1, 2), authorize=authorize)
    assert (result.reply.error_code, result.records) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ())


@pytest.mark.parametrize("reason", ["unregistered", "fenced", "shutting down"])
def test_who_cannot_serve_does_not_come_into_the_isr(three: Cluster, reason: str):
    created(three, 1, 2, 3)
    created(three, 2, 3, name="led-by-2")
    if reason == "unregistered":
        three.submit(UnregisterBrokerRequest(2))
    elif reason == "fenced":
        fence(three, 2)
    else:
        three.heartbeat(2, want_shut_down=True)
        assert three.image.brokers[2].in_controlled_shutdown
    given = answer(three.ask(proposal(three, 1, 3, 2)).reply)
    assert ErrorCode(given.error_code) is ErrorCode.INELIGIBLE_REPLICA
    assert answer(three.submit(proposal(three, 1))).error_code == 0


# --- recovery after an unclean election


def recovering(three: Cluster) -> PartitionImage:
    """A partition whose leader was elected although it may have lost records."""
    created(three, 1, 2, 3, unclean_leader_election_enable="true")
    three.submit(proposal(three, 1))
    fence(three, 1)
    found = partition(three)
    assert (found.leader, found.isr, found.leader_recovery_state) == (2, (2,), 1)
    return found


def test_a_leader_recovers_before_others_are_in_sync_with_it(three: Cluster):
    recovering(three)
    asked = proposal(three, 2, 3, leader_recovery_state=1)
    assert ErrorCode(answer(three.ask(asked).reply).error_code) is ErrorCode.INVALID_REQUEST
    same = three.ask(proposal(three, 2, leader_recovery_state=1))
    assert (same.records, answer(same.reply).leader_recovery_state) == ((), 1)
    result = three.ask(proposal(three, 2))
    (record,) = result.records
    assert (record.message.leader_recovery_state, record.message.isr, record.message.leader) == (0, None, -2)
    assert answer(result.reply).leader_recovery_state == 0
    three.append(result)
    three.submit(proposal(three, 2, 3))
    assert (partition(three).isr, partition(three).leader_recovery_state) == ((2, 3), 0)


def test_recovery_can_end_with_the_first_that_is_in_sync(three: Cluster):
    recovering(three)
    three.submit(proposal(three, 2, 3))
    assert (partition(three).isr, partition(three).leader_recovery_state) == ((2, 3), 0)


def test_an_unknown_recovery_state_is_refused(three: Cluster):
    created(three, 1, 2, 3)
    result = three.ask(proposal(three, 1, leader_recovery_state=7))
    assert (ErrorCode(answer(result.reply).error_code), result.records) == (ErrorCode.INVALID_REQUEST, ())


# --- reassignments end


def reassign(cluster: Cluster, replicas: tuple[int, ...] | None, **fields: Any) -> Any:
    kind = AlterPartitionReassignmentsRequest
    wanted = (kind.ReassignableTopic("t", (kind.ReassignablePartition(0, replicas),)),)
    reply = cluster.submit(kind(topics=wanted, **fields))
    assert reply.error_code == 0
    ((only,),) = (topic.partitions for topic in reply.responses)
    return only


def test_a_reassignment_ends_when_all_that_come_are_in_sync(three: Cluster):
    created(three, 1, 2)
    assert reassign(three, (1, 3)).error_code == 0
    moving = partition(three)
    assert (moving.replicas, moving.adding_replicas, moving.removing_replicas) == ((1, 3, 2), (3,), (2,))
    result = three.ask(proposal(three, 1, 2, 3))
    (record,) = result.records
    change = record.message
    assert (change.replicas, change.isr, change.leader) == ((1, 3), (1, 3), 1)
    assert (change.adding_replicas, change.removing_replicas) == ((), ())
    assert change.directories == (uuid(201), uuid(203))
    given = answer(result.reply)
    assert (given.error_code, given.isr, given.leader_epoch) == (0, (1, 3), moving.leader_epoch + 1)
    three.append(result)
    assert not partition(three).is_reassigning


def test_a_reassignment_goes_on_until_the_last_one_is_in_sync(three: Cluster):
    created(three, 1)
    reassign(three, (2, 3))
    assert answer(three.submit(proposal(three, 1, 2))).error_code == 0
    moving = partition(three)
    assert (moving.isr, moving.replicas, moving.leader) == ((1, 2), (2, 3, 1), 1)
    assert moving.is_reassigning


def test_a_reassignment_that_moves_the_leader_tells_the_old_one(three: Cluster):
    created(three, 1)
    reassign(three, (2, 3))
    before = partition(three)
    result = three.ask(proposal(three, 1, 2, 3))
    given = answer(result.reply)
    assert ErrorCode(given.error_code) is ErrorCode.NEW_LEADER_ELECTED
    assert (given.leader_id, given.isr, given.partition_epoch) == (0, (), 0)
    three.append(result)  # the change is made all the same
    after = partition(three)
    assert (after.replicas, after.isr, after.leader) == ((2, 3), (2, 3), 2)
    assert (after.leader_epoch, after.partition_epoch) == (before.leader_epoch + 1, before.partition_epoch + 1)


def test_who_leaves_with_a_reassignment_is_not_eligible_to_lead(three: Cluster):
    created(three, 1, 2, min_insync_replicas="2")
    reassign(three, (1,))
    after = partition(three)
    assert (after.replicas, after.isr, after.elr, after.leader_epoch) == ((1,), (1,), (), 1)


def test_a_fenced_target_holds_a_reassignment_up(three: Cluster):
    created(three, 1, 2)
    fence(three, 3)
    reassign(three, (1, 3))
    assert partition(three).is_reassigning
    assert ErrorCode(answer(three.ask(proposal(three, 1, 2, 3)).reply).error_code) is ErrorCode.INELIGIBLE_REPLICA
    three.heartbeat(3)
    assert answer(three.submit(proposal(three, 1, 2, 3))).error_code == 0
    assert partition(three).replicas == (1, 3)


def test_removing_a_replica_waits_until_all_that_stay_are_in_sync(three: Cluster):
    created(three, 1, 2, 3)
    three.submit(proposal(three, 1, 3))
    reassign(three, (1, 2))
    moving = partition(three)
    assert (moving.replicas, moving.adding_replicas, moving.removing_replicas) == ((1, 2, 3), (), (3,))
    three.submit(proposal(three, 1, 2, 3))
    after = partition(three)
    assert (after.replicas, after.isr) == ((1, 2), (1, 2))
    assert not after.is_reassigning


def test_fencing_the_one_that_goes_ends_what_waited_for_it(three: Cluster):
    """The target is in sync already; the change that takes the other one out of the ISR ends the reassignment."""
    created(three, 1, 2, 3)
    three.submit(proposal(three, 1, 3))
    reassign(three, (1, 2))
    three.submit(proposal(three, 1, 3))
    fence(three, 3)
    assert partition(three).is_reassigning  # 2 is not in sync yet
    three.submit(proposal(three, 1, 2))
    assert partition(three).replicas == (1, 2)


def test_old_metadata_versions_have_no_directories_to_tell():
    cluster = Cluster(levels=features.levels_for_format({features.METADATA_VERSION: 16})).with_brokers(1, 2, 3)
    created(cluster, 1, 2)
    reassign(cluster, (1, 3))
    cluster.submit(proposal(cluster, 1, 2, 3))
    assert partition(cluster).replicas == (1, 3)
    cluster.check_law()


def test_an_isr_that_shrinks_raises_the_leaders_epoch_on_old_clusters():
    cluster = Cluster(levels=features.levels_for_format({features.METADATA_VERSION: 11})).with_brokers(1, 2, 3)
    created(cluster, 1, 2, 3)
    cluster.submit(proposal(cluster, 1, 2))
    assert (partition(cluster).isr, partition(cluster).leader_epoch) == ((1, 2), 1)
    cluster.check_law()


def test_a_leader_whose_directory_is_lost_cannot_keep_its_partition(three: Cluster):
    created(three, 1, 2, 3)
    topic_id = three.image.topics_by_name["t"].topic_id
    gone = PartitionChangeRecord(0, topic_id, directories=(uuid(999), uuid(202), uuid(203)))
    three.append(Result((Versioned(gone, 2),), None))
    given = answer(three.submit(proposal(three, 1, 2)))
    assert ErrorCode(given.error_code) is ErrorCode.NEW_LEADER_ELECTED
    assert partition(three).leader == 2 != NO_LEADER
