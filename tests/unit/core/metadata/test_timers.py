"""What the controller does by itself: leaders go back, and partitions that nobody leads get a leader."""

from itertools import chain
from typing import Any

import pytest

from ottla.core.metadata import context
from ottla.core.metadata.context import Result
from ottla.core.metadata.topic_image import NO_LEADER, RECOVERING, PartitionImage
from ottla.wire.types.broker_heartbeat import BrokerHeartbeatRequest
from ottla.wire.types.cluster_metadata import BrokerRegistrationChangeRecord, PartitionChangeRecord
from ottla.wire.types.incremental_alter_configs import IncrementalAlterConfigsRequest
from tests.unit.core.metadata.cluster import Cluster

MINUTES_MS = 60_000


def partition(cluster: Cluster, name: str = "t") -> PartitionImage:
    return cluster.image.topics_by_name[name].partitions[0]


def wait(cluster: Cluster, duration_ms: int) -> list[Any]:
    """Time passes, in which every broker is heard of; gives what was written meanwhile."""
    records = []
    until_ms = cluster.now_ms + duration_ms
    while cluster.now_ms < until_ms:
        cluster.now_ms = min(until_ms, cluster.now_ms + 8_000)
        for broker in list(cluster.image.brokers.values()):
            cluster.heartbeat(broker.broker_id, want_fence=broker.fenced)
        records += [record.message for record in cluster.tick()]
    return records


def led_by_another(three: Cluster) -> PartitionImage:
    """A partition whose preferred leader went and is in sync again."""
    three.create("t", 1, 3)
    first, *others = partition(three).replicas
    three.heartbeat(first, want_fence=True)
    three.heartbeat(first)
    three.in_sync("t", *others, first)
    found = partition(three)
    assert found.leader == others[0]
    return found


def test_preferred_leaders_lead_again_after_a_while(three: Cluster):
    before = led_by_another(three)
    assert wait(three, 5 * MINUTES_MS - 1) == []
    topic_id = three.image.topics_by_name["t"].topic_id
    assert wait(three, 1) == [PartitionChangeRecord(0, topic_id, leader=before.replicas[0])]
    assert partition(three).leader == before.replicas[0]
    assert wait(three, 5 * MINUTES_MS) == []


def test_who_is_not_in_sync_does_not_lead_again(three: Cluster):
    before = led_by_another(three)
    three.in_sync("t", *before.replicas[1:])
    assert wait(three, 10 * MINUTES_MS) == []


def test_leaders_stay_if_the_settings_say_so():
    cluster = Cluster(settings={"rebalances_leaders": False}).with_brokers(1, 2, 3)
    led_by_another(cluster)
    assert wait(cluster, 20 * MINUTES_MS) == []


def test_intervals_come_from_the_settings():
    cluster = Cluster(settings={"leader_imbalance_check_interval_ms": 7_000, "unclean_election_interval_ms": 6_000})
    assert cluster.controller.next_deadline_ms() == cluster.now_ms + 6_000
    cluster.with_brokers(1, 2, 3)
    led_by_another(cluster)
    assert len(wait(cluster, 7_000)) == 1


def lost(three: Cluster, **configs: str) -> int:
    """A partition without a leader, of which one replica that is not in sync lives; gives that one."""
    three.create("t", 1, 2, **configs)
    first, second = partition(three).replicas
    three.heartbeat(second, want_fence=True)
    three.heartbeat(first, want_fence=True)
    three.heartbeat(second)
    assert partition(three).leader == NO_LEADER
    return second


def allow_unclean(cluster: Cluster) -> None:
    kind = IncrementalAlterConfigsRequest
    config = kind.AlterableConfig("unclean.leader.election.enable", 0, "true")
    assert not cluster.submit(kind((kind.AlterConfigsResource(2, "t", (config,)),))).responses[0].error_code


def test_a_partition_without_a_leader_gets_one_once_its_topic_allows_it(three: Cluster):
    alive = lost(three)
    assert wait(three, 5 * MINUTES_MS) == []
    allow_unclean(three)
    (record,) = wait(three, 5 * MINUTES_MS)
    assert (record.leader, record.isr, record.leader_recovery_state) == (alive, (alive,), RECOVERING)
    assert wait(three, 10 * MINUTES_MS) == []


def test_without_a_living_replica_it_stays_without_a_leader(three: Cluster):
    alive = lost(three)
    three.heartbeat(alive, want_fence=True)
    allow_unclean(three)
    assert wait(three, 10 * MINUTES_MS) == []


def test_a_new_controller_begins_to_count_anew(three: Cluster):
    led_by_another(three)
    wait(three, 4 * MINUTES_MS)
    three.restart()
    three.activate()
    assert wait(three, 5 * MINUTES_MS - 1) == []
    assert len(wait(three, 1)) == 1


# --- many partitions


@pytest.fixture
def short_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context, "SLICE_WORK", 5 * context.RECORD_WORK)


@pytest.mark.usefixtures("short_slices")
def test_a_broker_is_fenced_in_slices_its_own_record_last(three: Cluster):
    for number in range(3):
        three.create(f"t{number}", 20, 3)
    three.now_ms += 5_000
    three.heartbeat(1)
    three.heartbeat(3)
    three.now_ms += 4_000
    result = three.controller.tick(three.now_ms, three.now_ms)
    assert result is not None
    written = []
    for records in chain((result.records,), result.rest):
        assert not three.image.brokers[2].fenced
        assert len(records) <= 5
        three.append(Result(records, None))
        written += [record.message for record in records]
    assert [type(message) for message in written] == [PartitionChangeRecord] * 60 + [BrokerRegistrationChangeRecord]
    assert three.image.brokers[2].fenced
    for _, each in three.image.partitions():
        assert (len(each.isr), 2 in each.isr, each.leader in each.isr) == (2, False, True)
    assert three.controller.tick(three.now_ms, three.now_ms) is None


@pytest.mark.usefixtures("short_slices")
def test_partitions_that_stay_as_they_are_take_time_too(three: Cluster):
    three.create("t", 300, 1)
    three.heartbeat(2, want_fence=True)
    result = three.ask(BrokerHeartbeatRequest(2, three.image.brokers[2].epoch, three.end_offset))
    parts = [result.records, *result.rest]
    assert [type(record.message) for record in parts[0]][:1] == [BrokerRegistrationChangeRecord]
    assert len(parts) > 300 // (5 * context.RECORD_WORK)
