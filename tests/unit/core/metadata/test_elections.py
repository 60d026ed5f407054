"""Single partitions through elections; the brokers' part is in test_brokers.py."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from ottla.core.metadata import features
from ottla.core.metadata.elections import Election, Terms, change_partition
from ottla.core.metadata.topic_image import NO_LEADER, NO_LEADER_CHANGE, RECOVERED, RECOVERING, PartitionImage
from ottla.wire.types.cluster_metadata import PartitionChangeRecord
from tests.unit.core.metadata.cluster import Cluster, uuid

TOPIC_ID = uuid(1)


def partition(**fields: Any) -> PartitionImage:
    given: dict[str, Any] = {
        "partition_id": 0,
        "replicas": (1, 2, 3),
        "isr": (1, 2, 3),
        "leader": 1,
        "leader_epoch": 4,
        "partition_epoch": 7,
        "directories": (uuid(1), uuid(2), uuid(3)),
    }
    return PartitionImage(**{**given, **fields})


def alive(*brokers: int) -> Callable[[int], bool]:
    return lambda broker: broker in brokers


def terms(*brokers: int, **fields: Any) -> Terms:
    given: dict[str, Any] = {"metadata_version": 30, "elr_enabled": True, "min_isr": 1, "may_lead": alive(*brokers)}
    return Terms(**{**given, **fields})


def change(before: PartitionImage, isr: tuple[int, ...], with_terms: Terms) -> PartitionChangeRecord | None:
    record = change_partition(TOPIC_ID, before, msgspec.structs.replace(before, isr=isr), with_terms)
    return None if record is None else record.message


def test_nothing_to_do_is_no_record():
    assert change(partition(), (1, 2, 3), terms(1, 2, 3)) is None


def test_a_follower_leaves():
    record = change(partition(), (1, 2), terms(1, 2))
    assert record is not None
    assert (record.isr, record.leader, record.eligible_leader_replicas) == ((1, 2), NO_LEADER_CHANGE, None)


def test_the_leader_leaves_and_the_next_replica_in_sync_takes_over():
    record = change(partition(replicas=(1, 3, 2)), (2, 3), terms(2, 3))
    assert record is not None
    assert (record.isr, record.leader) == ((2, 3), 3)


def test_only_replicas_that_live_lead():
    record = change(partition(), (2, 3), terms(3))
    assert record is not None
    assert record.leader == 3


def test_below_the_minimum_who_leaves_stays_eligible():
    record = change(partition(), (1,), terms(1, min_isr=2))
    assert record is not None
    assert (record.isr, record.eligible_leader_replicas) == ((1,), (2, 3))


def test_back_above_the_minimum_nobody_need_be_eligible():
    record = change(partition(isr=(1,), elr=(2, 3)), (1, 2), terms(1, 2, min_isr=2))
    assert record is not None
    assert (record.isr, record.eligible_leader_replicas) == ((1, 2), ())


def test_the_last_one_leaves():
    record = change(partition(isr=(1,), elr=(2,)), (), terms(min_isr=2))
    assert record is not None
    assert (record.isr, record.leader) == ((), NO_LEADER)
    assert (record.eligible_leader_replicas, record.last_known_elr) == ((1, 2), (1,))


def test_an_eligible_one_returns_and_leads_alone():
    dead = partition(isr=(), elr=(1, 2), leader=NO_LEADER, last_known_elr=(1,))
    record = change(dead, (), terms(2, min_isr=2))
    assert record is not None
    assert (record.isr, record.leader, record.eligible_leader_replicas) == ((2,), 2, (1,))
    assert (record.last_known_elr, record.leader_recovery_state) == ((), -1)


def test_who_stopped_uncleanly_is_not_eligible():
    record = change(partition(isr=(1,), elr=(2,)), (), terms(min_isr=2, stopped_uncleanly=1))
    assert record is not None
    assert (record.isr, record.leader) == ((), NO_LEADER)
    assert (record.eligible_leader_replicas, record.last_known_elr) == (None, (1,))


def test_the_last_known_leader_is_better_than_nobody():
    dead = partition(isr=(), leader=NO_LEADER, last_known_elr=(1,))
    record = change(dead, (), terms(1, 2, min_isr=2))
    assert record is not None
    assert (record.isr, record.leader, record.leader_recovery_state) == ((1,), 1, RECOVERING)
    assert record.last_known_elr == ()
    assert change(dead, (), terms(2, min_isr=2)) is None


def test_several_last_known_are_not_a_leader():
    assert change(partition(isr=(), leader=NO_LEADER, last_known_elr=(1, 2)), (), terms(1, 2, min_isr=2)) is None


def test_recovering_is_said_once():
    dead = partition(isr=(), leader=NO_LEADER, last_known_elr=(1,), leader_recovery_state=RECOVERING)
    record = change(dead, (), terms(1, min_isr=2))
    assert record is not None
    assert record.leader_recovery_state == -1


def test_an_unclean_election_takes_whoever_lives():
    dead = partition(isr=(), elr=(1,), leader=NO_LEADER, last_known_elr=(1,))
    assert change(dead, (), terms(2, 3, min_isr=2)) is None
    record = change(dead, (), terms(2, 3, min_isr=2, election=Election.UNCLEAN))
    assert record is not None
    assert (record.isr, record.leader, record.leader_recovery_state) == ((2,), 2, RECOVERING)
    assert (record.eligible_leader_replicas, record.last_known_elr) == ((), ())


def test_the_preferred_replica_takes_its_place_back():
    before = partition(leader=2)
    assert change(before, (1, 2, 3), terms(1, 2, 3)) is None
    record = change(before, (1, 2, 3), terms(1, 2, 3, election=Election.PREFERRED))
    assert record is not None
    assert (record.leader, record.isr) == (1, None)
    assert change(before, (1, 2, 3), terms(2, 3, election=Election.PREFERRED)) is None


# --- without eligible leader replicas


def test_without_elr_the_last_one_stays_in_the_isr():
    record = change(partition(isr=(1,)), (), terms(elr_enabled=False))
    assert record is not None
    assert (record.isr, record.leader) == (None, NO_LEADER)
    assert (record.eligible_leader_replicas, record.last_known_elr) == (None, None)


def test_without_elr_the_last_in_sync_returns():
    record = change(partition(isr=(1,), leader=NO_LEADER), (1,), terms(1, elr_enabled=False))
    assert record is not None
    assert (record.leader, record.isr, record.leader_recovery_state) == (1, None, -1)


def test_elr_switched_off_clears_what_was_eligible():
    record = change(partition(elr=(2,)), (1, 2, 3), terms(1, 2, 3, elr_enabled=False))
    assert record is not None
    assert record.eligible_leader_replicas == ()


@pytest.mark.parametrize(("level", "leader"), [(11, 1), (12, NO_LEADER_CHANGE)])
def test_old_clusters_raise_the_leaders_epoch_when_the_isr_shrinks(level: int, leader: int):
    record = change(partition(), (1, 2), terms(1, 2, metadata_version=level, elr_enabled=False))
    assert record is not None
    assert record.leader == leader
    grown = change(partition(isr=(1,)), (1, 2), terms(1, 2, metadata_version=level, elr_enabled=False))
    assert grown is not None
    assert grown.leader == NO_LEADER_CHANGE


@pytest.mark.parametrize(("level", "version"), [(16, 0), (17, 1), (22, 1), (23, 2), (30, 2)])
def test_versions(level: int, version: int):
    shrunk = partition(isr=(1, 2))
    record = change_partition(TOPIC_ID, partition(), shrunk, terms(1, 2, metadata_version=level, elr_enabled=False))
    assert record is not None
    assert record.version == version


# --- in a cluster


def states(cluster: Cluster) -> list[tuple[Any, ...]]:
    partitions = cluster.image.topics_by_name["t"].partitions
    return [(partitions[n].isr, partitions[n].elr, partitions[n].leader) for n in sorted(partitions)]


def test_three_replicas_die_one_by_one_and_come_back(three: Cluster):
    three.create("t", 1, 3, min_insync_replicas="2")
    first, second, third = three.image.topics_by_name["t"].partitions[0].replicas
    three.heartbeat(first, want_fence=True)
    assert states(three) == [((second, third), (), second)]
    three.heartbeat(second, want_fence=True)
    assert states(three) == [((third,), (second,), third)]
    three.heartbeat(third, want_fence=True)
    assert states(three) == [((), tuple(sorted((second, third))), NO_LEADER)]
    three.heartbeat(first)
    assert states(three)[0][2] == NO_LEADER  # it has missed what was committed since
    three.heartbeat(second)
    assert states(three) == [((second,), (third,), second)]
    assert three.image.topics_by_name["t"].partitions[0].leader_recovery_state == RECOVERED


def test_the_minimum_is_no_more_than_there_are_replicas(cluster: Cluster):
    cluster.create("t", 1, 1, min_insync_replicas="2")
    cluster.heartbeat(want_fence=True)
    cluster.heartbeat()
    assert states(cluster) == [((1,), (), 1)]


def test_a_topic_may_allow_unclean_elections(three: Cluster):
    three.create("t", 1, 2, unclean_leader_election_enable="true")
    first, second = three.image.topics_by_name["t"].partitions[0].replicas
    three.heartbeat(second, want_fence=True)
    three.heartbeat(first, want_fence=True)
    assert states(three)[0][2] == NO_LEADER
    three.heartbeat(second)
    assert states(three) == [((second,), (), second)]
    assert three.image.topics_by_name["t"].partitions[0].leader_recovery_state == RECOVERING


def test_a_lost_directory_keeps_its_broker_from_leading(cluster: Cluster):
    cluster.create("t")
    cluster.heartbeat(want_fence=True)
    cluster.register(1, log_dirs=(uuid(999),))  # the same process says that it has another disk now
    cluster.heartbeat()
    assert states(cluster)[0][2] == NO_LEADER


def test_before_elr_a_fenced_single_node_keeps_its_isr():
    cluster = Cluster(levels=features.levels_for_format({features.METADATA_VERSION: 22})).with_brokers(1)
    cluster.create("t")
    cluster.heartbeat(want_fence=True)
    assert states(cluster) == [((1,), (), NO_LEADER)]
    cluster.heartbeat()
    assert states(cluster) == [((1,), (), 1)]
    cluster.check_law()
