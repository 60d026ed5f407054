"""Fetch and FetchSnapshot: the leader's answers, in each state, and what a follower makes of them."""

from typing import Any

import pytest
from msgspec.structs import replace

from ottla.core.quorum.errors import QuorumError
from ottla.core.quorum.events import (
    AppendRecords,
    AppendSnapshot,
    BeginSnapshot,
    InstallSnapshot,
    NotAnswered,
    SnapshotId,
    Synced,
    TruncateLog,
)
from ottla.core.quorum.states import State
from ottla.wire import decode, encode, versions
from ottla.wire.errors import ErrorCode
from ottla.wire.types.fetch import FetchRequest
from ottla.wire.types.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from simulation.quorum.virtual_log import Batch
from tests.unit.core.quorum.replica import (
    CLUSTER,
    EPOCH,
    LOG_END,
    LOG_EPOCH,
    STATES,
    TOPIC,
    Replica,
    directory,
    fetch,
    fetch_response,
    fetched,
    follower,
    leader,
    partition_of,
    records_of,
    unattached,
)

# --- the leader's side ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"cluster_id": "another"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({"topic_id": bytes(16)}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_requests_that_are_refused_as_a_whole(fields: dict[str, Any], code: ErrorCode):
    response = leader().ask(fetch(**fields))
    assert (ErrorCode(response.error_code), response.responses) == (code, ())


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"max_wait_ms": -1}, ErrorCode.INVALID_REQUEST),
        ({"offset": -1}, ErrorCode.INVALID_REQUEST),
        ({"last_epoch": -1}, ErrorCode.INVALID_REQUEST),
        ({"last_epoch": EPOCH + 1}, ErrorCode.INVALID_REQUEST),
        ({"epoch": EPOCH - 1}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"epoch": EPOCH + 1}, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_errors_of_the_partition(fields: dict[str, Any], code: ErrorCode):
    replica = leader()
    replica.ask(fetch(offset=replica.log.end_offset, last_epoch=EPOCH))
    partition = partition_of(replica.ask(fetch(**fields)))
    assert ErrorCode(partition.error_code) is code
    assert partition.high_watermark == -1, "an error tells nothing of what is committed"
    assert (partition.current_leader.leader_id, partition.current_leader.leader_epoch) == (1, EPOCH)


@pytest.mark.parametrize("state", sorted(set(STATES) - {"leader"}))
def test_whoever_does_not_lead_says_who_does(state: str):
    replica = STATES[state]()
    response = replica.ask(fetch())
    partition = partition_of(response)
    assert ErrorCode(partition.error_code) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert partition.current_leader.leader_id == replica.quorum.leader_id
    assert bool(response.node_endpoints) == (replica.quorum.leader_id == 2)


def test_records_up_to_the_end_and_no_high_watermark_before_the_first_commit():
    replica = leader()
    partition = partition_of(replica.ask(fetch()))
    assert (partition.error_code, partition.high_watermark, partition.last_stable_offset) == (0, -1, -1)
    assert partition.records == replica.log.read(LOG_END, 1 << 20)
    assert replica.high_watermarks == []


def test_a_majority_commits_only_past_the_start_of_the_epoch():
    replica = leader()
    end_offset = replica.log.end_offset
    replica.ask(fetch(offset=LOG_END))
    assert replica.high_watermarks == []
    partition = partition_of(replica.ask(fetch(offset=end_offset, last_epoch=EPOCH)))
    assert replica.high_watermarks == [end_offset]
    assert partition.high_watermark == end_offset


def test_the_leader_counts_its_own_end_when_it_is_synced():
    replica = leader()
    replica.defers_syncs = True
    offset = replica.log.end_offset
    replica.ask(fetch(offset=offset, last_epoch=EPOCH))
    replica.log.append([Batch(offset, offset + 1, EPOCH, records_of(offset, offset + 1, EPOCH))])
    replica.ask(fetch(offset=offset + 1, last_epoch=EPOCH))
    replica.ask(fetch(offset=offset, last_epoch=EPOCH, replica_id=3))
    assert replica.high_watermarks == [offset]
    replica.step(Synced(offset + 1))
    assert replica.high_watermarks == [offset, offset + 1]


def test_only_the_size_of_the_whole_answer_counts():
    replica = leader()
    partition = replace(partition_of(fetch()), fetch_offset=6, last_fetched_epoch=2, partition_max_bytes=1)
    request = fetch(offset=6, last_epoch=2)
    request = replace(request, topics=(replace(request.topics[0], partitions=(partition,)),))
    assert partition_of(replica.ask(request)).records == replica.log.read(6, 1 << 20)
    request = replace(request, max_bytes=1)
    assert partition_of(replica.ask(request)).records == replica.log.read(6, 1)


def test_a_fetch_waits_for_records():
    replica = leader()
    end_offset = replica.log.end_offset
    replica.ask(fetch(offset=end_offset, last_epoch=EPOCH))
    request = fetch(offset=end_offset, last_epoch=EPOCH, high_watermark=end_offset)
    assert replica.ask(request) is None
    before = set(replica.replies)
    replica.append()
    (token,) = set(replica.replies) - before
    assert partition_of(replica.replies[token]).records


def test_a_fetch_waits_for_the_high_watermark():
    replica = leader()
    end_offset = replica.log.end_offset
    observer = fetch(offset=end_offset, last_epoch=EPOCH, replica_id=7)
    assert replica.ask(observer) is None
    before = set(replica.replies)
    replica.ask(fetch(offset=end_offset, last_epoch=EPOCH, replica_id=2))
    answers = [partition_of(replica.replies[each]) for each in set(replica.replies) - before]
    assert [each.high_watermark for each in answers] == [end_offset, end_offset]


def test_a_fetch_waits_no_longer_than_it_wants():
    replica = leader()
    end_offset = replica.log.end_offset
    replica.ask(fetch(offset=end_offset, last_epoch=EPOCH))
    assert replica.ask(fetch(offset=end_offset, last_epoch=EPOCH, high_watermark=end_offset)) is None
    before = len(replica.replies)
    replica.advance(499)
    assert len(replica.replies) == before
    replica.advance(1)
    assert len(replica.replies) == before + 1


def test_a_fetch_that_does_not_want_to_wait_is_answered_at_once():
    replica = leader()
    end_offset = replica.log.end_offset
    replica.ask(fetch(offset=end_offset, last_epoch=EPOCH))
    request = fetch(offset=end_offset, last_epoch=EPOCH, high_watermark=end_offset, max_wait_ms=0)
    assert partition_of(replica.ask(request)).error_code == 0


@pytest.mark.parametrize(
    ("offset", "last_epoch", "diverging"),
    [
        (LOG_END + 3, LOG_EPOCH, (LOG_EPOCH, LOG_END)),
        (LOG_END, 3, (2, 6)),
        (8, 2, (2, 6)),
        (6, 2, None),
        (LOG_END, LOG_EPOCH, None),
        (0, 0, None),
    ],
)
def test_a_log_that_differs_is_told_where(offset: int, last_epoch: int, diverging: tuple[int, int] | None):
    replica = leader()
    partition = partition_of(replica.ask(fetch(offset=offset, last_epoch=last_epoch)))
    told = (partition.diverging_epoch.epoch, partition.diverging_epoch.end_offset)
    assert told == (diverging or (-1, -1))
    assert bool(partition.records) == (diverging is None)
    known = dict(replica.quorum.leading.progress.items())
    assert any(each.last_fetch_ms >= 0 for each in known.values()) == (diverging is None), "only good fetches count"


def with_snapshots(*ids: SnapshotId, start: int) -> Replica:
    replica = leader()
    for each in ids:
        replica.log.add_snapshot(each, b"s" * 100)
    replica.log.drop_below(min(ids)) if start else None
    return replica


@pytest.mark.parametrize(
    ("start", "offset", "last_epoch", "is_told"),
    [
        (0, 0, 0, True),
        (0, 6, 2, False),
        (6, 3, 2, True),
        (6, 6, 1, True),
        (6, 6, 2, False),
        (6, 8, 1, True),
        (6, LOG_END, LOG_EPOCH, False),
    ],
)
def test_a_replica_that_is_behind_the_log_needs_a_snapshot(start: int, offset: int, last_epoch: int, is_told: bool):
    replica = with_snapshots(SnapshotId(6, 2), SnapshotId(LOG_END, LOG_EPOCH), start=start)
    partition = partition_of(replica.ask(fetch(offset=offset, last_epoch=last_epoch)))
    told = (partition.snapshot_id.end_offset, partition.snapshot_id.epoch)
    assert told == ((LOG_END, LOG_EPOCH) if is_told else (-1, -1))


def test_a_reader_without_an_id_is_not_remembered():
    replica = leader()
    assert partition_of(replica.ask(fetch(replica_id=-1))).records
    assert all(key.node_id >= 0 for key, _ in replica.quorum.leading.progress.items())


@pytest.mark.parametrize("version", [13, 14, 15, 17, 18])
def test_every_version_of_the_answer_can_be_sent(version: int):
    response = leader().ask(fetch(), version)
    assert partition_of(decode("FetchResponse", version, encode(response, version))).records


# --- check-quorum


def test_a_leader_that_hears_no_majority_resigns():
    replica = leader()
    replica.advance(2_999)
    assert replica.quorum.state is State.LEADER
    replica.advance(1)
    assert replica.quorum.state is State.RESIGNED


def test_every_majority_that_fetches_gives_it_more_time():
    replica = leader()
    for _ in range(5):
        replica.advance(2_000)
        replica.ask(fetch(replica_id=3))
    assert replica.quorum.state is State.LEADER


def test_fetches_that_differ_and_those_of_observers_give_none():
    replica = leader()
    replica.advance(2_000)
    replica.ask(fetch(offset=99))
    replica.ask(fetch(replica_id=7))
    replica.advance(1_000)
    assert replica.quorum.state is State.RESIGNED


def test_a_sole_voter_needs_nobody():
    replica = Replica(voters=(1,)).start()
    replica.advance(1_000_000)
    assert replica.quorum.state is State.LEADER


# --- the follower's side ----------------------------------------------------------------------------------------------


def asked(replica: Replica) -> Any:
    """The fetch that is under way."""
    (sent,) = replica.take_sent(FetchRequest)
    return sent


def test_records_are_synced_before_the_next_fetch():
    replica = follower()
    replica.defers_syncs = True
    sent = asked(replica)
    assert (sent.to.node_id, sent.to.host) == (2, "host2")
    partition = sent.request.topics[0].partitions[0]
    assert (partition.fetch_offset, partition.last_fetched_epoch) == (LOG_END, LOG_EPOCH)
    replica.answer(sent, fetch_response(records=records_of(LOG_END, 12, EPOCH), high_watermark=11))
    assert replica.high_watermarks == [11]
    assert replica.take_sent(FetchRequest) == []
    replica.step(Synced(12))
    assert asked(replica).request.topics[0].partitions[0].fetch_offset == 12


def test_the_high_watermark_of_a_follower_is_not_behind_its_log():
    replica = follower()
    replica.answer(asked(replica), fetch_response(records=records_of(LOG_END, 12, EPOCH), high_watermark=40))
    assert replica.high_watermarks == [12]


@pytest.mark.parametrize(
    ("records", "end_offset"),
    [
        (records_of(LOG_END, 12, EPOCH) + records_of(12, 14, EPOCH + 1), 12),
        (records_of(LOG_END, 12, EPOCH) + records_of(12, 14, EPOCH)[:-1] + b"\xff", 12),
        (records_of(LOG_END, 12, EPOCH) + records_of(12, 14, EPOCH)[:-3], 12),
        (records_of(LOG_END, 12, EPOCH) + records_of(13, 14, EPOCH), 12),
        (records_of(8, 12, EPOCH), LOG_END),
        (records_of(LOG_END, 12, EPOCH + 1), LOG_END),
    ],
    ids=["later epoch", "damaged", "cut", "gap", "from before", "all of a later epoch"],
)
def test_only_what_continues_the_log_is_appended(records: bytes, end_offset: int):
    replica = follower()
    replica.answer(asked(replica), fetch_response(records=records))
    assert replica.log.end_offset == end_offset
    assert any(isinstance(each, AppendRecords) for each in replica.writes) == (end_offset > LOG_END)


@pytest.mark.parametrize(
    ("diverging", "end_offset"),
    [((LOG_EPOCH, 8), 8), ((LOG_EPOCH, 99), LOG_END), ((3, 8), 6), ((2, 4), 4), ((0, 3), 3), ((1, 0), 0)],
)
def test_the_log_is_cut_where_both_may_agree(diverging: tuple[int, int], end_offset: int):
    replica = follower()
    replica.log.truncate(0)
    replica.log.append([Batch(each, each + 1, 2, records_of(each, each + 1, 2)) for each in range(6)])
    replica.log.append([Batch(each, each + 1, 4, records_of(each, each + 1, 4)) for each in range(6, LOG_END)])
    replica.answer(asked(replica), fetch_response(diverging=diverging))
    assert replica.writes[-1] == TruncateLog(end_offset)
    partition = asked(replica).request.topics[0].partitions[0]
    assert partition.fetch_offset == end_offset


def test_what_is_committed_is_never_cut():
    replica = follower()
    replica.answer(asked(replica), fetch_response(high_watermark=LOG_END))
    with pytest.raises(QuorumError, match="committed up to 10"):
        replica.answer(asked(replica), fetch_response(diverging=(LOG_EPOCH, 8)))


def test_a_follower_without_an_answer_stands_for_election():
    replica = fetched()
    replica.advance(1_999)
    assert replica.quorum.state is State.FOLLOWER
    replica.advance(1)
    assert replica.quorum.state is State.PROSPECTIVE


def test_an_observer_without_an_answer_asks_the_bootstrap_servers():
    replica = follower(voters=(2, 3, 4))
    replica.step(NotAnswered(asked(replica).request_id))
    sent = asked(replica)
    assert sent.to.node_id == -1
    replica.advance(60_000)
    assert replica.quorum.state is State.FOLLOWER
    assert asked(replica).to.node_id == 2, "the leader is tried again, however late it is"


def test_an_observer_whose_leader_is_silent_asks_others_until_one_knows_another():
    replica = follower(voters=(2, 3, 4))
    replica.take_sent(FetchRequest)
    replica.advance(2_000)
    sent = asked(replica)
    assert sent.to.host == "host3", "the first server is the leader itself"
    replica.answer(sent, fetch_response(error=ErrorCode.NOT_LEADER_OR_FOLLOWER, leader_id=2))
    replica.advance(100)
    sent = asked(replica)
    assert sent.to.host == "host3"
    replica.answer(sent, fetch_response(error=ErrorCode.NOT_LEADER_OR_FOLLOWER, epoch=EPOCH + 1, leader_id=4))
    assert asked(replica).to.node_id == 4


def test_bootstrap_servers_are_asked_one_after_another():
    replica = unattached(voters=(2, 3, 4))
    sent = asked(replica)
    assert sent.to.node_id == -1
    answer = fetch_response(error=ErrorCode.NOT_LEADER_OR_FOLLOWER, leader_id=-1)
    replica.answer(sent, answer)
    assert replica.take_sent(FetchRequest) == []
    replica.advance(100)
    answer = fetch_response(error=ErrorCode.NOT_LEADER_OR_FOLLOWER, leader_id=3)
    replica.answer(asked(replica), answer)
    assert (replica.quorum.state, replica.quorum.leader_id) == (State.FOLLOWER, 3)
    assert asked(replica).to.node_id == 3


@pytest.mark.parametrize(
    ("error", "epoch", "leader_id", "state"),
    [
        (ErrorCode.FENCED_LEADER_EPOCH, EPOCH + 1, 3, State.FOLLOWER),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, EPOCH + 1, -1, State.UNATTACHED),
        (ErrorCode.UNKNOWN_LEADER_EPOCH, EPOCH - 1, -1, State.FOLLOWER),
        (ErrorCode.BROKER_NOT_AVAILABLE, EPOCH, 2, State.FOLLOWER),
    ],
)
def test_errors_that_a_follower_meets(error: ErrorCode, epoch: int, leader_id: int, state: State):
    replica = follower()
    replica.answer(asked(replica), fetch_response(error=error, epoch=epoch, leader_id=leader_id))
    assert (replica.quorum.state, replica.quorum.epoch) == (state, max(epoch, EPOCH))


# --- FetchSnapshot ----------------------------------------------------------------------------------------------------


AT_6 = SnapshotId(6, 2)


def fetch_snapshot(
    snapshot_id: SnapshotId = AT_6,
    position: int = 0,
    *,
    epoch: int = EPOCH,
    cluster_id: str = CLUSTER,
    topic: str = TOPIC,
    max_bytes: int = 40,
) -> FetchSnapshotRequest:
    kind = FetchSnapshotRequest
    partition = kind.PartitionSnapshot(0, epoch, kind.SnapshotId(*snapshot_id), position, directory(2))
    return kind(cluster_id, 2, max_bytes, (kind.TopicSnapshot(topic, (partition,)),))


def test_a_snapshot_is_given_in_pieces():
    replica = with_snapshots(SnapshotId(6, 2), start=6)
    sizes = []
    for position in (0, 40, 80):
        partition = partition_of(replica.ask(fetch_snapshot(position=position)))
        assert (partition.error_code, partition.size, partition.position) == (0, 100, position)
        sizes.append(len(partition.unaligned_records))
    assert sizes == [40, 40, 20]


@pytest.mark.parametrize("max_bytes", [0, -1])
def test_a_snapshot_is_not_given_to_whoever_wants_no_bytes(max_bytes: int):
    replica = with_snapshots(SnapshotId(6, 2), start=6)
    partition = partition_of(replica.ask(fetch_snapshot(max_bytes=max_bytes)))
    assert (partition.error_code, partition.unaligned_records) == (0, b"")


def test_a_snapshot_of_another_cluster():
    response = leader().ask(fetch_snapshot(cluster_id="another"))
    assert (ErrorCode(response.error_code), response.topics) == (ErrorCode.INCONSISTENT_CLUSTER_ID, ())


def test_what_else_is_asked_for_beside_a_snapshot_is_passed_over():
    request = fetch_snapshot()
    (topic,), other = request.topics, fetch_snapshot(topic="orders").topics[0]
    more = replace(request, topics=(other, replace(topic, partitions=topic.partitions * 2), topic))
    replica = with_snapshots(SnapshotId(6, 2), start=6)
    assert replica.ask(more) == replica.ask(request)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"topic": "orders"}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"epoch": EPOCH - 1}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"epoch": EPOCH + 1}, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ({"snapshot_id": SnapshotId(7, 2)}, ErrorCode.SNAPSHOT_NOT_FOUND),
        ({"snapshot_id": SnapshotId(0, 0)}, ErrorCode.SNAPSHOT_NOT_FOUND),
        ({"position": -1}, ErrorCode.POSITION_OUT_OF_RANGE),
        ({"position": 100}, ErrorCode.POSITION_OUT_OF_RANGE),
    ],
)
def test_errors_of_a_snapshot(fields: dict[str, Any], code: ErrorCode):
    replica = with_snapshots(SnapshotId(6, 2), start=6)
    for version in versions("FetchSnapshotResponse"):
        response = replica.ask(fetch_snapshot(**fields), version)
        assert ErrorCode(partition_of(response).error_code) is code
        assert encode(response, version)


@pytest.mark.parametrize("state", sorted(set(STATES) - {"leader"}))
def test_only_the_leader_gives_snapshots(state: str):
    partition = partition_of(STATES[state]().ask(fetch_snapshot()))
    assert ErrorCode(partition.error_code) is ErrorCode.NOT_LEADER_OR_FOLLOWER


def snapshot_piece(data: bytes, position: int, size: int, error: int = 0) -> FetchSnapshotResponse:
    kind = FetchSnapshotResponse
    partition = kind.PartitionSnapshot(
        0, error, kind.SnapshotId(50, EPOCH), kind.LeaderIdAndEpoch(2, EPOCH), size, position, data
    )
    return kind(topics=(kind.TopicSnapshot(TOPIC, (partition,)),))


def downloading() -> tuple[Replica, Any]:
    replica = follower()
    replica.answer(asked(replica), fetch_response(snapshot=SnapshotId(50, EPOCH)))
    assert replica.writes[-1] == BeginSnapshot(SnapshotId(50, EPOCH))
    (sent,) = replica.take_sent(FetchSnapshotRequest)
    return replica, sent


def test_a_snapshot_is_copied_and_replaces_the_log():
    replica, sent = downloading()
    replica.answer(sent, snapshot_piece(b"abc", 0, 5))
    (sent,) = replica.take_sent(FetchSnapshotRequest)
    assert sent.request.topics[0].partitions[0].position == 3
    replica.answer(sent, snapshot_piece(b"de", 3, 5))
    assert replica.writes[-2:] == [
        AppendSnapshot(SnapshotId(50, EPOCH), b"de"),
        InstallSnapshot(SnapshotId(50, EPOCH)),
    ]
    assert replica.high_watermarks == [50]
    partition = asked(replica).request.topics[0].partitions[0]
    assert (partition.fetch_offset, partition.last_fetched_epoch) == (50, EPOCH)


@pytest.mark.parametrize("error", [ErrorCode.SNAPSHOT_NOT_FOUND, ErrorCode.POSITION_OUT_OF_RANGE])
def test_a_snapshot_that_is_gone_is_forgotten(error: ErrorCode):
    replica, sent = downloading()
    replica.answer(sent, snapshot_piece(b"", 0, 0, error))
    assert asked(replica).request.topics[0].partitions[0].fetch_offset == LOG_END


def test_after_an_error_without_a_partition_the_leader_is_asked_anew():
    """So answers Apache Kafka 4.3.1 when its snapshot is gone."""
    replica, sent = downloading()
    replica.answer(sent, FetchSnapshotResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR))
    assert asked(replica).to.node_id == -1, "a bootstrap server, while the leader is left alone"
    assert replica.quorum.epoch_state.download is None


def test_each_piece_gives_the_leader_more_time():
    replica, sent = downloading()
    for position in range(5):
        replica.advance(1_500)
        replica.answer(sent, snapshot_piece(b"x", position, 9))
        (sent,) = replica.take_sent(FetchSnapshotRequest)
    assert replica.quorum.state is State.FOLLOWER


@pytest.mark.parametrize(("end", "epoch"), [(6, 2), (LOG_END, LOG_EPOCH)])
def test_snapshots_are_made_of_what_is_committed(end: int, epoch: int):
    replica = follower()
    replica.answer(asked(replica), fetch_response(high_watermark=6))
    if end == 6:
        replica.quorum.check_snapshot(SnapshotId(end, epoch))
        return
    with pytest.raises(QuorumError, match="committed is 6"):
        replica.quorum.check_snapshot(SnapshotId(end, epoch))


@pytest.mark.parametrize(("end", "reason"), [(4, "the log starts at 6"), (8, "inside of a batch"), (LOG_END, None)])
def test_snapshots_contain_whole_batches_of_the_log(end: int, reason: str | None):
    replica = with_snapshots(SnapshotId(6, 2), start=6)
    replica.ask(fetch(offset=replica.log.end_offset, last_epoch=EPOCH))
    snapshot_id = SnapshotId(end, LOG_EPOCH)
    if reason is None:
        replica.quorum.check_snapshot(snapshot_id)
        return
    with pytest.raises(QuorumError, match=reason):
        replica.quorum.check_snapshot(snapshot_id)


def test_snapshots_name_the_epoch_of_their_last_record():
    replica = follower()
    replica.answer(asked(replica), fetch_response(high_watermark=6))
    for epoch in (1, 3, 4):
        with pytest.raises(QuorumError, match=f"epoch {epoch} is not there"):
            replica.quorum.check_snapshot(SnapshotId(6, epoch))
