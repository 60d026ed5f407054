"""What speaks against taking a node out of a cluster, and what is missing of one that comes back."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.client.cluster import BrokerDescription, QuorumDescription, Replica
from ottla.client.metadata import Partition, TopicPartition
from ottla.client.node_replacement import ClusterState, doubts, missing, present

ORDERS = TopicPartition("orders", 0)


def broker(node_id: int, *, is_fenced: bool = False) -> BrokerDescription:
    return BrokerDescription(node_id, "127.0.0.1", 9000 + node_id, None, is_fenced)


def quorum(*ends: int, leader_id: int = 1) -> QuorumDescription:
    """Voters 1, 2 and so on, and where their logs end. All but the last record is committed."""
    voters = tuple(Replica(node_id, None, end, None, None) for node_id, end in enumerate(ends, 1))
    return QuorumDescription(leader_id, 1, 100, voters, ())


def state(**changes: Any) -> ClusterState:
    whole = ClusterState(
        {node_id: broker(node_id) for node_id in (1, 2, 3)},
        quorum(101, 101, 100),
        {ORDERS: Partition(0, 1, 0, (1, 2, 3), (1, 2, 3))},
        {"orders": 2},
    )
    return whole._replace(**changes)


@pytest.mark.parametrize("node_id", [1, 2, 3])
def test_a_whole_cluster_can_spare_any_node(node_id: int):
    assert doubts(state(), node_id) == []


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"brokers": {1: broker(1), 2: broker(2), 3: broker(3, is_fenced=True)}}, "broker 3 is fenced"),
        ({"quorum": quorum(101, 101, 99)}, "controller 3 is behind the leader of the quorum"),
        (
            {"quorum": quorum(101, 101)},
            "without node 1 the controllers are no majority: 1 of 2 would be left",
        ),
        ({"quorum": quorum(101)}, "without node 1 the controllers are no majority: 0 of 1 would be left"),
        ({"partitions": {ORDERS: Partition(0, -1, 0, (1, 2), (1, 2))}, "min_isr": {}}, "orders-0 has no leader"),
        ({"partitions": {ORDERS: Partition(0, 1, 0, (1, 2, 3), (1, 2))}, "min_isr": {}}, "orders-0 is not in sync"),
        ({"moving": {ORDERS}}, "partition orders-0 is being moved"),
        (
            {"min_isr": {"orders": 3}},
            "partition orders-0 could not be written to with acks=all while node 1 is away",
        ),
        (
            {"partitions": {TopicPartition("orders", n): Partition(n, 1, 0, (1,), (1,)) for n in range(5)}},
            "5 partitions could not be written to with acks=all while node 1 is away: orders-0, orders-1, orders-2, …",
        ),
    ],
)
def test_each_doubt_is_named(changes: dict[str, Any], reason: str):
    (found,) = doubts(state(**changes), 1)
    assert found.endswith(reason)


def test_partitions_elsewhere_do_not_need_the_node():
    at = {ORDERS: Partition(0, 2, 0, (2,), (2,))}
    assert doubts(state(partitions=at), 1) == []
    assert len(doubts(state(partitions=at), 2)) == 1
    assert doubts(state(partitions=at), 2, may_be_unavailable=True) == []


def test_more_replicas_are_never_asked_for_than_there_are():
    """min.insync.replicas=3 with two replicas: the smaller of the two counts."""
    at = {ORDERS: Partition(0, 1, 0, (1, 2), (1, 2))}
    assert len(doubts(state(partitions=at, min_isr={"orders": 3}), 1)) == 1
    assert len(doubts(state(partitions=at, min_isr={"orders": 1}), 1)) == 0


def test_a_node_that_is_not_there():
    assert doubts(state(), 7) == ["the cluster has no node 7"]


def test_the_leader_of_the_quorum_comes_last():
    assert state(quorum=quorum(101, 101, 101, leader_id=2)).node_ids == [1, 3, 2]


def test_a_stopped_node_is_fenced_and_leads_nothing():
    assert present(state(), 1) == ["broker 1 is not fenced", "partition orders-0 is led by node 1"]
    brokers = {1: broker(1, is_fenced=True), 2: broker(2)}
    moved = {ORDERS: Partition(0, 2, 1, (1, 2), (2,))}
    assert present(state(brokers=brokers, partitions=moved), 1) == []
    assert present(state(brokers={2: broker(2)}, partitions=moved), 1) == []


def test_a_node_is_back_when_nothing_is_missing():
    roles = {"is_broker": True, "is_voter": True}
    assert missing(state(), 1, **roles) == []
    assert missing(state(brokers={2: broker(2)}), 1, **roles) == ["broker 1 is not registered"]
    assert missing(state(brokers={1: broker(1, is_fenced=True)}), 1, **roles) == ["broker 1 is fenced"]
    assert missing(state(quorum=quorum(99, 101)), 1, **roles) == ["controller 1 is behind the leader of the quorum"]
    assert missing(state(quorum=quorum(101)), 2, **roles) == ["node 2 is no voter any more"]
    behind = {ORDERS: Partition(0, 2, 1, (1, 2), (2,))}
    assert missing(state(partitions=behind), 1, **roles) == ["partition orders-0 is not in sync on node 1"]


def test_a_controller_alone_is_no_broker():
    assert missing(state(brokers={}), 1, is_broker=False, is_voter=True) == []
