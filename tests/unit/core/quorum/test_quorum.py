from pathlib import Path

import pytest

from ottla.core.quorum.errors import QuorumError
from ottla.core.quorum.events import (
    Actions,
    AppendControl,
    AppendFailed,
    SnapshotId,
    Start,
    StateNotStored,
    StateStored,
    Stop,
    StoreState,
    Synced,
)
from ottla.core.quorum.quorum import Quorum
from ottla.core.quorum.states import State
from ottla.core.quorum.stored import StoredState, read_stored
from ottla.core.quorum.voters import BOOTSTRAP_OFFSET, ControlHistory, Listener, Voter, VoterSet, voters_record
from ottla.wire import decode, encode
from ottla.wire.batch import BatchView, ControlRecordType, read_control_batch, read_header, split_batches
from ottla.wire.errors import ErrorCode
from ottla.wire.types.control_records import KRaftVersionRecord, VotersRecord
from ottla.wire.types.describe_quorum import DescribeQuorumRequest
from simulation.quorum.virtual_log import Batch, VirtualLog, batches_of

LIFE = Path(__file__).parents[3] / "golden" / "storage" / "life"
DIRECTORY = bytes(range(16))
NODE = Voter(1, DIRECTORY, (Listener("CONTROLLER", "127.0.0.1", 9093),))
NOW_MS = 1_800_000_000_000


def formatted(*voters: Voter) -> ControlHistory:
    """What a directory says that was just formatted."""
    history = ControlHistory()
    history.replay(KRaftVersionRecord(k_raft_version=1), BOOTSTRAP_OFFSET)
    history.replay(voters_record(VoterSet(voters or (NODE,))), BOOTSTRAP_OFFSET)
    return history


def quorum(
    control: ControlHistory | None = None, *, stored: StoredState | None = None, end: int = 0, epoch: int = 0
) -> Quorum:
    return replica(NODE, control or formatted(), stored=stored, end=end, epoch=epoch)


def replica(
    node: Voter, control: ControlHistory, *, stored: StoredState | None = None, end: int = 0, epoch: int = 0
) -> Quorum:
    log = VirtualLog()
    if end:
        log.append([Batch(0, end, epoch, b"")])
    elif epoch:
        log.add_snapshot(SnapshotId(0, epoch), b"")
    return Quorum(node, control, log, stored=stored, cluster_id="c", random=lambda below: 0)


def grow(node: Quorum, end_offset: int) -> Actions:
    """Append to the leader's log, and sync it."""
    assert isinstance(node.log, VirtualLog)
    node.log.append([Batch(node.log.end_offset, end_offset, node.epoch, b"")])
    return node.step(Synced(end_offset), 0, NOW_MS)


def lead(node: Quorum) -> AppendControl:
    """Step until the first batch of the epoch is to be written."""
    (store,) = node.step(Start(), 0, NOW_MS).writes
    assert isinstance(store, StoreState)
    (append,) = node.step(StateStored(), 0, NOW_MS).writes
    assert isinstance(append, AppendControl)
    assert isinstance(node.log, VirtualLog)
    node.log.append(batches_of(append.batch))
    return append


def kinds(append: AppendControl) -> list[str]:
    return [record.type.name for record in read_control_batch(read_header(append.batch))]


def test_the_state_is_stored_before_anything_is_written():
    node = quorum()
    actions = node.step(Start(), 0, NOW_MS)
    (store,) = actions.writes
    assert isinstance(store, StoreState)
    assert read_stored(store.content) == StoredState(epoch=1, leader_id=1)
    assert not node.is_leader
    assert node.leader_id == -1
    (append,) = node.step(StateStored(), 0, NOW_MS).writes
    assert isinstance(append, AppendControl)
    assert node.is_leader
    assert node.high_watermark == -1
    assert node.step(Synced(append.end_offset), 0, NOW_MS) == Actions(high_watermark=3)


def test_the_first_epoch_puts_the_voters_into_the_log():
    node = quorum()
    append = lead(node)
    assert kinds(append) == ["LEADER_CHANGE", "KRAFT_VERSION", "KRAFT_VOTERS"]
    assert append.end_offset == 3
    batch = read_header(append.batch)
    assert (batch.base_offset, batch.partition_leader_epoch, batch.base_timestamp) == (0, 1, NOW_MS)
    leader, version, voters = (record.message for record in read_control_batch(batch))
    assert leader.leader_id == 1
    assert [voter.voter_id for voter in (*leader.voters, *leader.granting_voters)] == [1, 1]
    assert version.k_raft_version == 1
    assert voters == voters_record(VoterSet((NODE,)))
    assert node.control.voters_offset == 2


def test_later_epochs_name_the_leader_only():
    control = formatted()
    control.replay(voters_record(VoterSet((NODE,))), 2)
    node = quorum(control, stored=StoredState(3, leader_id=1), end=50, epoch=3)
    append = lead(node)
    assert kinds(append) == ["LEADER_CHANGE"]
    assert (node.epoch, append.end_offset) == (4, 51)


def test_a_node_that_has_moved_says_so():
    control = formatted()
    moved = Voter(1, DIRECTORY, (Listener("CONTROLLER", "127.0.0.1", 1234),))
    control.replay(voters_record(VoterSet((moved,))), 2)
    node = quorum(control, end=50, epoch=3)
    assert kinds(lead(node)) == ["LEADER_CHANGE", "KRAFT_VERSION", "KRAFT_VOTERS"]
    assert node.control.voters.voters == (NODE,)


@pytest.mark.parametrize(
    ("stored", "log_epoch", "led"),
    [
        (None, 0, 1),
        (None, 7, 8),  # the file was lost
        (StoredState(3, leader_id=1), 3, 4),  # never again in an epoch it has led
        (StoredState(9, voted_id=1), 3, 10),
        (StoredState(2), 5, 6),
    ],
)
def test_an_epoch_that_was_seen_is_never_led_again(stored: StoredState | None, log_epoch: int, led: int):
    node = quorum(stored=stored, end=10, epoch=log_epoch)
    lead(node)
    assert node.epoch == led


def test_the_first_batch_is_apaches():
    batches = [batch for batch in split_batches((LIFE / "00000000000000000000.log").read_bytes())]
    first = batches[0]
    assert isinstance(first, BatchView)
    _, _, voters = (record.message for record in read_control_batch(first))
    assert isinstance(voters, VotersRecord)
    (voter,) = voters.voters
    (endpoint,) = voter.endpoints
    own = Voter(voter.voter_id, voter.voter_directory_id, (Listener(endpoint.name, endpoint.host, endpoint.port),))
    node = replica(own, formatted(own))
    node.step(Start(), 0, NOW_MS)
    (append,) = node.step(StateStored(), 0, first.base_timestamp).writes
    assert isinstance(append, AppendControl)
    assert append.batch == bytes(first.data)


def test_what_is_appended_is_committed_and_never_falls():
    node = quorum()
    append = lead(node)
    node.step(Synced(append.end_offset), 0, NOW_MS)
    assert grow(node, 9) == Actions(high_watermark=9)
    assert node.step(Synced(5), 0, NOW_MS) == Actions()
    assert (node.high_watermark, node.log.end_offset) == (9, 9)


def test_records_of_former_epochs_are_committed_with_one_of_this():
    node = quorum(end=40, epoch=2)
    append = lead(node)
    assert node.step(Synced(40), 0, NOW_MS) == Actions()
    assert node.high_watermark == -1
    assert node.step(Synced(append.end_offset), 0, NOW_MS).high_watermark == append.end_offset


def test_a_state_that_could_not_be_stored_is_not_acted_on():
    node = quorum(stored=StoredState(3), epoch=3)
    node.step(Start(), 0, NOW_MS)
    assert node.step(StateNotStored(), 0, NOW_MS) == Actions()
    assert (node.state, node.epoch, node.leader_id) == (State.UNATTACHED, 3, -1)
    assert node.step(Synced(5), 0, NOW_MS) == Actions()
    lead(node)  # once the disk is well again
    assert node.epoch == 4


def test_after_a_failed_append_nothing_more_is_written_in_the_epoch():
    node = quorum()
    append = lead(node)
    node.step(Synced(append.end_offset), 0, NOW_MS)
    node.step(AppendFailed(), 0, NOW_MS)
    assert (node.state, node.leader_id) == (State.RESIGNED, -1)
    assert node.step(Synced(99), 0, NOW_MS) == Actions()
    assert node.step(Start(), 0, NOW_MS) == Actions()
    assert node.high_watermark == append.end_offset


def test_stopping_resigns():
    node = quorum()
    lead(node)
    node.step(Stop(), 0, NOW_MS)
    assert not node.is_leader


def test_events_out_of_place_do_nothing():
    node = quorum()
    for event in (StateStored(), StateNotStored(), Synced(3), AppendFailed()):
        assert node.step(event, 0, NOW_MS) == Actions()
        assert node.state is State.UNATTACHED


def test_a_configured_quorum_keeps_its_voters_out_of_the_log():
    control = ControlHistory(VoterSet((Voter(1),)))
    node = quorum(control)
    (store,) = node.step(Start(), 0, NOW_MS).writes
    assert isinstance(store, StoreState)
    assert b'"currentVoters":[{"voterId":1}],"data_version":0' in store.content
    (append,) = node.step(StateStored(), 0, NOW_MS).writes
    assert isinstance(append, AppendControl)
    assert kinds(append) == ["LEADER_CHANGE"]


@pytest.mark.parametrize(
    ("control", "reason"),
    [
        (ControlHistory(), "no voters"),
        (formatted(Voter(1, bytes(16)[:-1] + b"\x09")), "not among the voters"),
        (formatted(Voter(2, DIRECTORY)), "not among the voters"),
    ],
)
def test_quorums_it_cannot_lead(control: ControlHistory, reason: str):
    node = quorum(control)
    with pytest.raises(QuorumError, match=reason):
        node.step(Start(), 0, NOW_MS)
    assert node.state is State.UNATTACHED


def test_a_later_kraft_version():
    control = formatted()
    control.replay(KRaftVersionRecord(k_raft_version=2), 5)
    with pytest.raises(QuorumError, match="0 to 1"):
        quorum(control).step(Start(), 0, NOW_MS)


# --- DescribeQuorum


def asked(topic: str = "__cluster_metadata", *partitions: int) -> DescribeQuorumRequest:
    kind = DescribeQuorumRequest
    return kind((kind.TopicData(topic, tuple(kind.PartitionData(number) for number in partitions or (0,))),))


def test_describing_the_leader():
    node = quorum()
    node.step(Synced(lead(node).end_offset), 0, NOW_MS)
    grow(node, 12)
    reply = node.describe(asked(), 2, 0, NOW_MS)
    assert (reply.error_code, reply.error_message) == (0, "")
    (topic,) = reply.topics
    (partition,) = topic.partitions
    assert (topic.topic_name, partition.partition_index) == ("__cluster_metadata", 0)
    assert (partition.error_code, partition.error_message) == (0, "")
    assert (partition.leader_id, partition.leader_epoch, partition.high_watermark) == (1, 1, 12)
    (row,) = partition.current_voters
    assert (row.replica_id, row.replica_directory_id, row.log_end_offset) == (1, DIRECTORY, 12)
    assert (row.last_fetch_timestamp, row.last_caught_up_timestamp) == (NOW_MS, NOW_MS)
    assert partition.observers == ()
    (described,) = reply.nodes
    assert (described.node_id, described.listeners[0].port) == (1, 9093)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_every_version_of_every_answer_can_be_sent(version: int):
    node = quorum()
    for request in (asked(), asked("orders"), asked()):
        answer = node.describe(request, version, 0, NOW_MS)
        received = decode("DescribeQuorumResponse", version, encode(answer, version))
        assert received.topics[0].topic_name == request.topics[0].topic_name
        if not node.is_leader:
            lead(node)
    assert bool(answer.nodes) == (version == 2)


def test_describing_before_the_first_commit():
    node = quorum()
    lead(node)
    assert node.describe(asked(), 2, 0, NOW_MS).topics[0].partitions[0].high_watermark == -1


def test_a_configured_voter_shows_no_directory():
    node = quorum(ControlHistory(VoterSet((Voter(1),))))
    lead(node)
    row = node.describe(asked(), 2, 0, NOW_MS).topics[0].partitions[0].current_voters[0]
    assert row.replica_directory_id == bytes(16)


@pytest.mark.parametrize(
    "request_", [asked("orders", 3), asked("__cluster_metadata", 1), asked("__cluster_metadata", 0, 1)]
)
def test_describing_anything_else(request_: DescribeQuorumRequest):
    node = quorum()
    lead(node)
    reply = node.describe(request_, 2, 0, NOW_MS)
    assert (reply.error_code, reply.nodes) == (0, ())
    assert reply.topics[0].topic_name == request_.topics[0].topic_name
    numbers = [(each.partition_index, ErrorCode(each.error_code)) for each in reply.topics[0].partitions]
    wanted = [(each.partition_index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) for each in request_.topics[0].partitions]
    assert numbers == wanted


def test_describing_when_it_does_not_lead():
    (partition,) = quorum().describe(asked(), 2, 0, NOW_MS).topics[0].partitions
    assert ErrorCode(partition.error_code) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (partition.leader_id, partition.leader_epoch, partition.high_watermark) == (0, 0, 0)
    assert partition.current_voters == ()


def test_control_record_types_are_kafkas():
    append = lead(quorum())
    types = [record.type for record in read_control_batch(read_header(append.batch))]
    assert types == [ControlRecordType.LEADER_CHANGE, ControlRecordType.KRAFT_VERSION, ControlRecordType.KRAFT_VOTERS]
