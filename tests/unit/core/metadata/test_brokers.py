from typing import Any

import pytest

from ottla.core.metadata import features
from ottla.core.metadata.context import Result
from ottla.core.metadata.topic_image import NO_LEADER
from ottla.core.metadata.uuids import UNASSIGNED
from ottla.wire.access import Operation
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import Versioned
from ottla.wire.types.broker_heartbeat import BrokerHeartbeatRequest
from ottla.wire.types.broker_registration import BrokerRegistrationRequest
from ottla.wire.types.cluster_metadata import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)
from ottla.wire.types.controller_registration import ControllerRegistrationRequest
from ottla.wire.types.unregister_broker import UnregisterBrokerRequest
from tests.unit.core.metadata.cluster import Cluster, registration, uuid

Feature = BrokerRegistrationRequest.Feature


def kinds(records: tuple[Versioned, ...]) -> list[type]:
    return [type(record.message) for record in records]


def without_feature(name: str) -> tuple[Any, ...]:
    return tuple(Feature(each, low, high) for each, (low, high) in features.SUPPORTED.items() if each != name)


# --- registration


def test_a_new_broker_is_fenced_and_has_the_epoch_of_its_record(empty_cluster: Cluster):
    offset = empty_cluster.end_offset
    result = empty_cluster.ask(registration(1, rack="north"))
    (record,) = result.records
    assert (record.version, record.message.fenced, record.message.broker_epoch) == (4, True, offset)
    assert (result.reply.error_code, result.reply.broker_epoch) == (0, offset)
    empty_cluster.append(result)
    broker = empty_cluster.image.brokers[1]
    assert (broker.rack, broker.log_dirs, broker.cordoned_log_dirs) == ("north", (uuid(201),), None)
    assert broker.features["metadata.version"] == (7, 30)
    assert broker.endpoint("PLAINTEXT") is not None
    assert empty_cluster.image.registered_at == {1: offset}


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"cluster_id": "AAAAAAAAAAAAAAAAAAAAAA"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({"is_migrating_zk_broker": True}, ErrorCode.BROKER_ID_NOT_REGISTERED),
        ({"log_dirs": ()}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": (bytes(16),)}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": (uuid(5), uuid(5))}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": (uuid(201),)}, ErrorCode.INVALID_REGISTRATION),
        ({"features": without_feature("metadata.version")}, ErrorCode.INVALID_REGISTRATION),
        ({"features": without_feature("group.version")}, ErrorCode.UNSUPPORTED_VERSION),
        ({"features": without_feature("kraft.version")}, ErrorCode.UNSUPPORTED_VERSION),
        (
            {"features": (*without_feature("metadata.version"), Feature("metadata.version", 7, 29))},
            ErrorCode.UNSUPPORTED_VERSION,
        ),
        (
            {"features": (*without_feature("share.version"), Feature("share.version", 2, 3))},
            ErrorCode.UNSUPPORTED_VERSION,
        ),
        ({"features": (*without_feature(""), Feature("later.version", 1, 3))}, ErrorCode.UNSUPPORTED_VERSION),
    ],
)
def test_registrations_that_are_refused(cluster: Cluster, fields: dict[str, Any], code: ErrorCode):
    result = cluster.ask(registration(2, **fields))
    assert (ErrorCode(result.reply.error_code), result.reply.broker_epoch, result.records) == (code, -1, ())


def test_a_feature_the_cluster_does_not_use_is_welcome(cluster: Cluster):
    cluster.register(2, features=(*without_feature(""), Feature("later.version", 0, 3)))


def test_an_id_is_taken_while_its_process_is_heard_of(cluster: Cluster):
    other = registration(1, incarnation_id=uuid(7))
    assert ErrorCode(cluster.ask(other).reply.error_code) is ErrorCode.DUPLICATE_BROKER_REGISTRATION
    cluster.now_ms += 8_999
    assert ErrorCode(cluster.ask(other).reply.error_code) is ErrorCode.DUPLICATE_BROKER_REGISTRATION
    cluster.now_ms += 1
    assert cluster.submit(other).error_code == 0
    assert cluster.image.brokers[1].incarnation_id == uuid(7)


def test_a_new_process_may_take_the_place_of_one_whose_listeners_are_silent(cluster: Cluster):
    cluster.controller.broker_silent(1, cluster.image.brokers[1].epoch)
    other = registration(1, incarnation_id=uuid(7))
    assert cluster.submit(other).error_code == 0
    assert (cluster.image.brokers[1].incarnation_id, cluster.image.brokers[1].fenced) == (uuid(7), True)


@pytest.mark.parametrize("fields", [{"log_dirs": (uuid(99),)}, {"listeners": ()}])
def test_silent_listeners_do_not_let_a_process_of_another_place_in(cluster: Cluster, fields: dict[str, Any]):
    cluster.controller.broker_silent(1, cluster.image.brokers[1].epoch)
    other = registration(1, incarnation_id=uuid(7), **fields)
    assert ErrorCode(cluster.ask(other).reply.error_code) is ErrorCode.DUPLICATE_BROKER_REGISTRATION


def test_a_heartbeat_ends_the_silence(cluster: Cluster):
    cluster.controller.broker_silent(1, cluster.image.brokers[1].epoch)
    cluster.heartbeat()
    other = registration(1, incarnation_id=uuid(7))
    assert ErrorCode(cluster.ask(other).reply.error_code) is ErrorCode.DUPLICATE_BROKER_REGISTRATION


def test_a_broker_whose_process_is_dead_is_fenced_at_once(cluster: Cluster):
    epoch = cluster.image.brokers[1].epoch
    cluster.controller.broker_ended(1, epoch - 1)
    assert cluster.controller.tick(cluster.now_ms, cluster.now_ms) is None, "that was a former life of it"
    cluster.controller.broker_ended(1, epoch)
    fencing = cluster.controller.tick(cluster.now_ms, cluster.now_ms)
    assert fencing is not None
    cluster.append(fencing)
    assert cluster.image.brokers[1].fenced
    assert cluster.submit(registration(1, incarnation_id=uuid(7), log_dirs=(uuid(99),))).error_code == 0


def test_an_id_is_free_when_its_process_has_been_told_to_end(three: Cluster):
    other = registration(2, incarnation_id=uuid(7))
    three.heartbeat(2, want_shut_down=True)
    assert three.image.brokers[2].fenced
    assert three.submit(other).error_code == 0
    assert three.image.brokers[2].incarnation_id == uuid(7)


def test_a_broker_that_was_told_to_shut_down_has_no_session(cluster: Cluster):
    assert cluster.heartbeat(want_shut_down=True).should_shut_down
    assert not cluster.controller.has_session(1, cluster.image.brokers[1].epoch, cluster.now_ms)
    assert cluster.submit(registration(1, incarnation_id=uuid(7))).error_code == 0


def test_the_same_process_amends_and_keeps_epoch_and_state(cluster: Cluster):
    before = cluster.image.brokers[1]
    result = cluster.ask(registration(1, rack="south"))
    assert kinds(result.records) == [RegisterBrokerRecord]
    cluster.append(result)
    after = cluster.image.brokers[1]
    assert (after.epoch, after.fenced, after.rack) == (before.epoch, False, "south")
    assert result.reply.broker_epoch == before.epoch


def test_registering_needs_cluster_action(cluster: Cluster):
    def authorize(operation: Operation, *_: Any) -> bool:
        return operation is not Operation.CLUSTER_ACTION

    denied = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert cluster.submit(registration(2), authorize=authorize).error_code == denied
    assert cluster.submit(BrokerHeartbeatRequest(1), authorize=authorize).error_code == denied
    assert cluster.submit(ControllerRegistrationRequest(1), authorize=authorize).error_code == denied


@pytest.mark.parametrize(("level", "version"), [(7, 1), (8, 2), (16, 2), (17, 3), (29, 3), (30, 4)])
def test_record_versions_follow_metadata_version(level: int, version: int):
    cluster = Cluster(levels=features.levels_for_format({features.METADATA_VERSION: level}))
    (record,) = cluster.ask(registration(1)).records
    assert record.version == version
    assert record.message.log_dirs == ((uuid(201),) if version >= 3 else ())
    cluster.register(1)
    cluster.heartbeat(1, cordoned_log_dirs=())
    cluster.check_law()


# --- restarts


def restarted(cluster: Cluster, *, previous_epoch: int) -> tuple[Versioned, ...]:
    """The node's own broker registers anew after the node has been started again; gives the records."""
    cluster.restart()
    cluster.activate(own_broker_id=1)
    result = cluster.ask(registration(1, incarnation_id=cluster.new_uuid(), previous_broker_epoch=previous_epoch))
    assert result.reply.error_code == 0
    cluster.append(result)
    return result.records


def test_after_a_crash_the_own_broker_need_not_wait_for_its_former_self(cluster: Cluster):
    cluster.create("t")
    records = restarted(cluster, previous_epoch=-1)
    assert kinds(records) == [PartitionChangeRecord, RegisterBrokerRecord]
    partition = cluster.image.topics_by_name["t"].partitions[0]
    assert (partition.isr, partition.elr, partition.last_known_elr, partition.leader) == ((), (), (1,), NO_LEADER)
    assert cluster.heartbeat().is_fenced is False
    partition = cluster.image.topics_by_name["t"].partitions[0]
    assert (partition.isr, partition.leader, partition.leader_recovery_state) == ((1,), 1, 1)
    assert (partition.leader_epoch, partition.partition_epoch, partition.last_known_elr) == (2, 2, ())


def test_after_a_stop_in_order_nothing_is_doubtful(cluster: Cluster):
    cluster.create("t")
    epoch = cluster.image.brokers[1].epoch
    assert cluster.heartbeat(want_shut_down=True).should_shut_down is False
    assert cluster.heartbeat(want_shut_down=True).should_shut_down is True
    partition = cluster.image.topics_by_name["t"].partitions[0]
    assert (partition.isr, partition.elr, partition.leader) == ((), (1,), NO_LEADER)
    assert kinds(restarted(cluster, previous_epoch=epoch)) == [RegisterBrokerRecord]
    cluster.heartbeat()
    partition = cluster.image.topics_by_name["t"].partitions[0]
    assert (partition.isr, partition.leader, partition.leader_recovery_state) == ((1,), 1, 0)


def test_a_marker_with_another_epoch_counts_as_a_crash(cluster: Cluster):
    cluster.create("t")
    cluster.heartbeat(want_shut_down=True)
    cluster.heartbeat(want_shut_down=True)
    records = restarted(cluster, previous_epoch=cluster.image.brokers[1].epoch + 1)
    assert kinds(records) == [PartitionChangeRecord, RegisterBrokerRecord]
    assert records[0].message.eligible_leader_replicas == ()


def test_old_registrations_cannot_say_that_they_stopped_in_order(cluster: Cluster):
    cluster.create("t")
    request = registration(1, incarnation_id=uuid(7), previous_broker_epoch=cluster.image.brokers[1].epoch)
    cluster.now_ms += 9_000
    (change, _) = cluster.ask(request, api_version=2).records
    assert (change.message.isr, change.message.eligible_leader_replicas) == ((), None)
    (change, _) = cluster.ask(request, api_version=3).records
    assert (change.message.isr, change.message.eligible_leader_replicas) == ((), (1,))


def test_other_brokers_get_a_whole_session_from_a_new_controller(three: Cluster):
    three.restart()
    three.activate(own_broker_id=1)
    assert three.controller.next_deadline_ms() == three.now_ms + 9_000
    other = registration(2, incarnation_id=uuid(7))
    assert ErrorCode(three.ask(other).reply.error_code) is ErrorCode.DUPLICATE_BROKER_REGISTRATION


# --- heartbeats


def test_a_broker_is_unfenced_when_it_has_read_its_own_registration(empty_cluster: Cluster):
    epoch = empty_cluster.register(1)
    behind = empty_cluster.heartbeat(current_metadata_offset=epoch - 1)
    assert (behind.is_caught_up, behind.is_fenced) == (False, True)
    waiting = empty_cluster.heartbeat(want_fence=True)
    assert (waiting.is_caught_up, waiting.is_fenced) == (True, True)
    ready = empty_cluster.ask(BrokerHeartbeatRequest(1, epoch, epoch))
    assert (ready.reply.is_caught_up, ready.reply.is_fenced, ready.reply.should_shut_down) == (True, False, False)
    (record,) = ready.records
    assert (record.version, record.message) == (0, BrokerRegistrationChangeRecord(1, epoch, fenced=-1))


def test_a_steady_heartbeat_writes_nothing(cluster: Cluster):
    epoch = cluster.image.brokers[1].epoch
    result = cluster.ask(BrokerHeartbeatRequest(1, epoch, cluster.end_offset))
    assert (result.records, result.reply.error_code, result.reply.is_fenced) == ((), 0, False)


def test_stale_epochs(cluster: Cluster):
    stale = ErrorCode.STALE_BROKER_EPOCH
    assert cluster.heartbeat(broker_epoch=0).error_code == stale
    assert cluster.submit(BrokerHeartbeatRequest(2, 0)).error_code == stale


def test_fencing_on_request_moves_leaders(three: Cluster):
    three.create("t", 6, 3)
    reply = three.heartbeat(2, want_fence=True)
    assert reply.is_fenced is True
    for partition in three.image.topics_by_name["t"].partitions.values():
        assert set(partition.isr) == {1, 3}
        assert partition.leader in (1, 3)
    assert three.heartbeat(2).is_fenced is False


def test_shutdown_while_fenced_is_immediate(cluster: Cluster):
    cluster.heartbeat(want_fence=True)
    result = cluster.ask(BrokerHeartbeatRequest(1, cluster.image.brokers[1].epoch, want_shut_down=True))
    assert (result.reply.should_shut_down, result.reply.is_fenced, result.records) == (True, True, ())


def test_shutdown_without_leaderships_is_immediate(cluster: Cluster):
    reply = cluster.heartbeat(want_shut_down=True)
    assert reply.should_shut_down is True
    assert cluster.image.brokers[1].fenced is True


def test_to_be_fenced_and_shut_down_at_once(cluster: Cluster):
    cluster.create("t")
    assert cluster.heartbeat(want_shut_down=True, want_fence=True).should_shut_down is True
    assert cluster.image.brokers[1].fenced is True


def test_a_controlled_shutdown_waits_until_active_brokers_have_read_of_it(three: Cluster):
    three.create("t", 6, 3)
    before = three.end_offset
    first = three.heartbeat(2, want_shut_down=True)
    assert (first.should_shut_down, first.is_fenced) == (False, False)
    assert three.image.brokers[2].in_controlled_shutdown is True
    assert three.image.shutdown_at == {2: before}
    assert all(2 not in partition.isr for partition in three.image.topics_by_name["t"].partitions.values())
    three.heartbeat(1)
    assert three.heartbeat(2, want_shut_down=True).should_shut_down is False
    three.heartbeat(3)
    assert three.heartbeat(2, want_shut_down=True).should_shut_down is True
    assert three.image.brokers[2].fenced is True


def test_a_controlled_shutdown_waits_for_the_last_of_its_moves(three: Cluster):
    three.create("t", 6, 3)
    marked_at = three.end_offset
    three.heartbeat(2, want_shut_down=True)
    moved_at = three.end_offset - 1
    assert marked_at < moved_at
    for offset, may_stop in ((marked_at, False), (moved_at - 1, False), (moved_at, True)):
        three.heartbeat(1, current_metadata_offset=offset)
        three.heartbeat(3, current_metadata_offset=offset)
        assert three.heartbeat(2, want_shut_down=True).should_shut_down is may_stop


def test_a_new_controller_goes_on_with_a_shutdown(three: Cluster):
    three.create("t", 6, 3)
    three.heartbeat(2, want_shut_down=True)
    three.restart()
    three.activate()
    assert three.heartbeat(2, want_shut_down=True).should_shut_down is False
    three.heartbeat(1)
    three.heartbeat(3)
    assert three.heartbeat(2, want_shut_down=True).should_shut_down is True


def test_a_restart_ends_the_shutdown(cluster: Cluster):
    cluster.create("t")
    cluster.heartbeat(want_shut_down=True)
    cluster.now_ms += 9_000
    cluster.register(1, incarnation_id=uuid(7))
    assert cluster.image.shutdown_at == {}
    assert cluster.image.brokers[1].in_controlled_shutdown is False


def test_cordoned_directories_are_told_when_they_change(cluster: Cluster):
    epoch = cluster.image.brokers[1].epoch
    (record,) = cluster.ask(BrokerHeartbeatRequest(1, epoch, 99, cordoned_log_dirs=())).records
    assert (record.version, record.message.cordoned_log_dirs) == (3, ())
    cluster.heartbeat(cordoned_log_dirs=())
    assert cluster.ask(BrokerHeartbeatRequest(1, epoch, 99, cordoned_log_dirs=())).records == ()
    cluster.heartbeat(cordoned_log_dirs=(uuid(201),))
    assert cluster.image.brokers[1].takes_replicas is False


def test_a_failed_directory_takes_its_partitions_along(empty_cluster: Cluster):
    dirs = (uuid(11), uuid(12))
    empty_cluster.register(1, log_dirs=dirs)
    empty_cluster.heartbeat(1)
    empty_cluster.with_brokers(2)
    topic_id = empty_cluster.create("t", 2, 2)
    assert {
        directory for p in empty_cluster.image.topics_by_name["t"].partitions.values() for directory in p.directories
    } == {
        UNASSIGNED,
        uuid(202),
    }
    placed = PartitionChangeRecord(0, topic_id, replicas=(1, 2), directories=(uuid(11), uuid(202)))
    empty_cluster.append(Result((Versioned(placed, 2),), None))
    empty_cluster.heartbeat(1, offline_log_dirs=(uuid(11), uuid(99)))
    broker = empty_cluster.image.brokers[1]
    partition = empty_cluster.image.topics_by_name["t"].partitions[0]
    assert broker.log_dirs == (uuid(12),)
    assert (partition.isr, partition.leader) == ((2,), 2)
    assert 1 in empty_cluster.image.topics_by_name["t"].partitions[1].isr


def test_a_broker_that_falls_silent_is_fenced(three: Cluster):
    three.create("t", 3, 3)
    three.now_ms += 5_000
    three.heartbeat(1)
    three.heartbeat(3)
    three.now_ms += 3_999
    assert three.controller.tick(three.now_ms, three.now_ms) is None
    three.now_ms += 1
    assert three.controller.next_deadline_ms() == three.now_ms
    fencing = three.controller.tick(three.now_ms, three.now_ms)
    assert fencing is not None
    three.append(fencing)
    assert three.image.brokers[2].fenced is True
    assert all(2 not in partition.isr for partition in three.image.topics_by_name["t"].partitions.values())
    assert three.controller.tick(three.now_ms, three.now_ms) is None
    assert three.controller.next_deadline_ms() == three.now_ms + 5_000
    assert three.heartbeat(2).is_fenced is False  # it only has to speak up


def test_silent_brokers_are_fenced_one_by_one(three: Cluster):
    three.now_ms += 9_000
    fenced = []
    while (result := three.controller.tick(three.now_ms, three.now_ms)) is not None:
        three.append(result)
        fenced.append(sum(broker.fenced for broker in three.image.brokers.values()))
    assert fenced == [1, 2, 3]


def test_a_controller_that_stood_still_itself_fences_nobody_for_that(three: Cluster):
    three.now_ms += 60_000  # the process was stopped: heartbeats lie in its sockets
    three.controller.excuse(60_000)
    assert three.tick() == []
    three.heartbeat(1)
    three.heartbeat(3)
    three.now_ms += 8_999
    assert three.tick() == []
    three.now_ms += 1
    assert three.tick()
    assert [broker.fenced for broker in three.image.brokers.values()] == [True, True, True]


def test_a_dead_broker_is_fenced_no_later_than_a_session_after_a_change_of_controller(three: Cluster):
    three.now_ms += 8_000
    three.restart()
    three.activate()
    three.now_ms += 8_999
    assert three.tick() == []
    three.heartbeat(1)
    three.now_ms += 1
    assert three.tick()
    assert [broker.fenced for broker in three.image.brokers.values()] == [False, True, True]


def test_the_broker_of_the_controllers_own_process_has_a_session_like_others(three: Cluster):
    three.restart()
    three.activate()
    for _ in range(3):
        three.now_ms += 4_500
        three.heartbeat(2)
        three.heartbeat(3)
        three.tick()
    assert [broker.fenced for broker in three.image.brokers.values()] == [True, False, False]


# --- others


def test_unregistering_removes_every_trace(three: Cluster):
    three.create("t", 3, 3)
    result = three.ask(UnregisterBrokerRequest(2))
    assert kinds(result.records)[-1] is UnregisterBrokerRecord
    three.append(result)
    assert set(three.image.brokers) == {1, 3}
    assert 2 not in three.image.registered_at
    for partition in three.image.topics_by_name["t"].partitions.values():
        assert 2 not in (*partition.isr, *partition.elr)
        assert partition.leader in (1, 3)


def test_unregistering_nobody(cluster: Cluster):
    reply = cluster.submit(UnregisterBrokerRequest(2))
    assert ErrorCode(reply.error_code) is ErrorCode.BROKER_ID_NOT_REGISTERED
    assert reply.error_message
    assert cluster.submit(UnregisterBrokerRequest(1), authorize=lambda *_: False).error_code == 31


def test_controllers_register(empty_cluster: Cluster):
    kind = ControllerRegistrationRequest
    request = kind(
        1,
        uuid(5),
        listeners=(kind.Listener("CONTROLLER", "127.0.0.1", 9093),),
        features=(kind.Feature("metadata.version", 7, 30),),
    )
    reply = empty_cluster.submit(request)
    assert (reply.error_code, reply.error_message) == (0, None)
    controller = empty_cluster.image.controllers[1]
    assert controller.incarnation_id == uuid(5)
    assert controller.endpoint("CONTROLLER") is not None
    assert controller.features == {"metadata.version": (7, 30)}


def test_controllers_could_not_always_register():
    cluster = Cluster(levels=features.levels_for_format({features.METADATA_VERSION: 14}))
    reply = cluster.submit(ControllerRegistrationRequest(1))
    assert ErrorCode(reply.error_code) is ErrorCode.UNSUPPORTED_VERSION
