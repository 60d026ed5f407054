"""DescribeQuorum: times and rows as Kafka computes them."""

from typing import Any

import pytest

from ottla.core.quorum.replica_progress import Progress
from ottla.wire import decode, encode
from ottla.wire.types.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from ottla.wire.types.remove_raft_voter import RemoveRaftVoterRequest
from tests.unit.core.quorum.replica import CLUSTER, EPOCH, TOPIC, Replica, directory, fetch, leader

WALL_MS = 1_000_000


def describe(replica: Replica, version: int = 2) -> DescribeQuorumResponse:
    kind = DescribeQuorumRequest
    request = kind((kind.TopicData(TOPIC, (kind.PartitionData(0),)),))
    answer = replica.quorum.describe(request, version, replica.now_ms, WALL_MS + replica.now_ms)
    decoded: DescribeQuorumResponse = decode("DescribeQuorumResponse", version, encode(answer, version))
    return decoded


def rows(replica: Replica, version: int = 2) -> dict[int, Any]:
    (partition,) = describe(replica, version).topics[0].partitions
    return {each.replica_id: each for each in (*partition.current_voters, *partition.observers)}


def times(row: Any) -> tuple[int, int, int]:
    return row.log_end_offset, row.last_fetch_timestamp, row.last_caught_up_timestamp


def test_a_new_leader_knows_nothing_of_the_others():
    replica = leader()
    replica.advance(7)
    known = rows(replica)
    assert times(known[1]) == (replica.log.end_offset, WALL_MS + 7, WALL_MS + 7)
    assert times(known[2]) == times(known[3]) == (-1, -1, -1)
    partition = describe(replica).topics[0].partitions[0]
    assert (partition.leader_id, partition.leader_epoch, partition.high_watermark) == (1, EPOCH, -1)


def test_fetches_show_how_far_a_replica_has_come():
    replica = leader()
    end = replica.log.end_offset
    replica.advance(100)
    replica.ask(fetch(offset=10))
    assert times(rows(replica)[2]) == (10, WALL_MS + 100, -1)
    replica.advance(100)
    replica.ask(fetch(offset=end, last_epoch=EPOCH))
    assert times(rows(replica)[2]) == (end, WALL_MS + 200, WALL_MS + 200)


def test_a_replica_that_never_reaches_the_end_was_caught_up_when_it_last_fetched():
    """Kafka's rule: its fetch has reached the end that the log had at its previous fetch."""
    replica = leader()
    replica.advance(100)
    replica.ask(fetch(offset=10))
    end_then = replica.log.end_offset
    replica.append()
    replica.advance(100)
    replica.ask(fetch(offset=end_then, last_epoch=EPOCH))
    assert times(rows(replica)[2]) == (end_then, WALL_MS + 200, WALL_MS + 100)


def test_the_rule_by_itself():
    progress = Progress()
    progress.fetched(5, 10, 100)
    assert progress.last_caught_up_ms == -1
    progress.fetched(9, 20, 200)
    assert progress.last_caught_up_ms == -1
    progress.fetched(20, 30, 300)
    assert progress.last_caught_up_ms == 200
    progress.fetched(30, 30, 400)
    assert progress.last_caught_up_ms == 400


@pytest.mark.parametrize(("silent_ms", "is_listed"), [(299_999, True), (300_000, False)])
def test_silent_observers_are_dropped(silent_ms: int, is_listed: bool):
    replica = leader()
    replica.advance(1_000)
    replica.ask(fetch(replica_id=7))
    begun_ms = replica.now_ms
    while replica.now_ms - begun_ms < silent_ms:
        replica.advance(min(1_000, silent_ms - (replica.now_ms - begun_ms)))
        replica.ask(fetch(replica_id=2, max_wait_ms=0))
    assert (7 in rows(replica)) == is_listed


def test_observers_have_directories_and_no_listeners():
    replica = leader()
    replica.ask(fetch(replica_id=7))
    answer = describe(replica)
    (observer,) = answer.topics[0].partitions[0].observers
    assert (observer.replica_id, observer.replica_directory_id) == (7, directory(7))
    assert [each.node_id for each in answer.nodes] == [1, 2, 3]


def test_a_removed_voter_is_an_observer():
    replica = leader()
    for node_id in (2, 3):
        replica.ask(fetch(offset=replica.log.end_offset, last_epoch=EPOCH, replica_id=node_id))
    replica.ask(RemoveRaftVoterRequest(CLUSTER, 3, directory(3)))
    (partition,) = describe(replica).topics[0].partitions
    assert [each.replica_id for each in partition.current_voters] == [1, 2]
    assert [each.replica_id for each in partition.observers] == [3]


def test_static_voters_have_no_directories():
    replica = leader(kraft_version=0)
    replica.ask(fetch(replica_id=2))
    replica.ask(fetch(replica_id=7))
    assert {key: row.replica_directory_id for key, row in rows(replica).items()} == {
        1: bytes(16), 2: bytes(16), 3: bytes(16), 7: directory(7),
    }  # fmt: skip


def test_times_follow_the_wall_clock_of_the_answer():
    """They are kept on the monotonic clock, so setting the wall clock moves all of them alike."""
    replica = leader()
    replica.advance(100)
    replica.ask(fetch(offset=10))
    replica.advance(50)
    kind = DescribeQuorumRequest
    request = kind((kind.TopicData(TOPIC, (kind.PartitionData(0),)),))
    answer = replica.quorum.describe(request, 2, replica.now_ms, 5_000_000)
    row = answer.topics[0].partitions[0].current_voters[1]
    assert row.last_fetch_timestamp == 4_999_950


@pytest.mark.parametrize("version", [0, 1, 2])
def test_versions(version: int):
    replica = leader()
    replica.advance(10)
    replica.ask(fetch(replica_id=2))
    row = rows(replica, version)[2]
    assert row.replica_directory_id == (directory(2) if version == 2 else bytes(16))
    assert row.last_fetch_timestamp == (WALL_MS + 10 if version else -1)
