"""Where epochs of leaders end, after elections that leave no data behind: the same answers from both kinds."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from ottla.wire.types import (
    AlterPartitionReassignmentsRequest,
    CreateTopicsRequest,
    OffsetForLeaderEpochRequest,
)
from tests.component.broker.raw_client import Closed, RawClient, Topic, batch
from tests.interop.quorum.members import Quorum, ask, until

NODES = (1, 2, 3)
TOPIC = "orders"
ELECTIONS = 5


def test_every_epoch_of_five_elections_ends_where_records_of_a_later_one_begin(kind: str, tmp_path: Path) -> None:
    with Quorum(tmp_path, voters=dict.fromkeys(NODES, kind)) as quorum:
        topic = create(quorum)
        write(quorum, topic, b"first", b"second")
        for number in range(ELECTIONS):
            elect(quorum, 1 + (number + 1) % len(NODES))
        (leader,) = quorum.leaders(TOPIC)
        without = [*[(0, 0, 2)] * ELECTIONS, (0, ELECTIONS, 2), (0, -1, -1)]
        until(lambda: ends(quorum, leader, ELECTIONS + 2) == without, "the new leader to lead")
        write(quorum, topic, b"third")
        elect(quorum, 1 + leader % len(NODES))
        (later,) = quorum.leaders(TOPIC)
        assert later != leader
        expected = [*[(0, 0, 2)] * ELECTIONS, (0, ELECTIONS, 3), (0, ELECTIONS + 1, 3), (0, -1, -1)]
        until(lambda: ends(quorum, later, ELECTIONS + 3) == expected, "a former follower to say the same")
        quorum.check_health()


def create(quorum: Quorum) -> Topic:
    kind = CreateTopicsRequest
    configs = (kind.CreatableTopicConfig("retention.ms", "-1"),)  # records of 1970 must outlive the test
    wanted = kind.CreatableTopic(TOPIC, -1, -1, (kind.CreatableReplicaAssignment(0, NODES),), configs)
    (created,) = ask(quorum.nodes[1].bootstrap_servers, kind((wanted,), 60_000), 7).topics
    assert created.error_code == 0, created
    quorum.wait_in_sync(TOPIC)
    return Topic(TOPIC, created.topic_id)


def write(quorum: Quorum, topic: Topic, *values: bytes) -> None:
    """One batch, once its leader has heard that it leads. What is refused is not written."""
    (leader,) = quorum.leaders(TOPIC)
    client = RawClient.at(quorum.nodes[leader].bootstrap_servers)
    until(lambda: client.produce(topic, batch(*values)).error_code == 0, "the leader to take a batch")
    client.close_all()


def elect(quorum: Quorum, chosen: int) -> None:
    """Let the controller choose another leader, and wait until all are in sync with it."""
    (before,) = quorum.partitions(TOPIC, at=1)
    kind = AlterPartitionReassignmentsRequest
    order = (chosen, *(each for each in NODES if each != chosen))
    wanted = kind.ReassignableTopic(TOPIC, (kind.ReassignablePartition(0, order),))
    answer = ask(quorum.nodes[1].bootstrap_servers, kind(60_000, topics=(wanted,)), 0)
    assert (answer.error_code, answer.responses[0].partitions[0].error_code) == (0, 0), answer

    def is_in_order() -> bool:
        with suppress(OSError, Closed):
            return all(quorum.partitions(TOPIC, at=each)[0].replica_nodes == order for each in NODES)
        return False

    until(is_in_order, "the new order")
    quorum.elect_preferred(TOPIC)
    quorum.wait_in_sync(TOPIC)
    (after,) = quorum.partitions(TOPIC, at=1)
    assert (after.leader_id, after.leader_epoch) == (chosen, before.leader_epoch + 1)


def ends(quorum: Quorum, number: int, count: int) -> list[tuple[int, int, int]]:
    """Error, epoch and end offset that a node gives for each of the first epochs."""
    kind, found = OffsetForLeaderEpochRequest, []
    for epoch in range(count):
        asked = kind.OffsetForLeaderTopic(TOPIC, (kind.OffsetForLeaderPartition(0, -1, epoch),))
        (answer,) = ask(quorum.nodes[number].bootstrap_servers, kind(-1, (asked,)), 4).topics[0].partitions
        found.append((answer.error_code, answer.leader_epoch, answer.end_offset))
    return found
