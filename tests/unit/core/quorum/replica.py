"""One replica of three voters, with a disk that does everything at once, in each of the states."""

from __future__ import annotations

from typing import Any

from ottla.core.quorum.events import (
    Actions,
    Answered,
    AppendControl,
    Appended,
    AppendRecords,
    AppendSnapshot,
    BeginSnapshot,
    Destination,
    Event,
    InstallSnapshot,
    QuorumSettings,
    Received,
    Send,
    SnapshotId,
    SnapshotInstalled,
    Start,
    StateStored,
    StoreState,
    Synced,
    Tick,
    TruncateLog,
)
from ottla.core.quorum.quorum import Quorum
from ottla.core.quorum.stored import StoredState, read_stored
from ottla.core.quorum.voters import BOOTSTRAP_OFFSET, ControlHistory, Listener, Voter, VoterSet, voters_record
from ottla.wire.batch import Record, build_batch
from ottla.wire.types.begin_quorum_epoch import BeginQuorumEpochRequest
from ottla.wire.types.control_records import KRaftVersionRecord
from ottla.wire.types.end_quorum_epoch import EndQuorumEpochRequest
from ottla.wire.types.fetch import FetchRequest, FetchResponse
from ottla.wire.types.vote import VoteRequest, VoteResponse
from simulation.quorum.virtual_log import Batch, VirtualLog, batches_of

CLUSTER = "quorum-test"
TOPIC = "__cluster_metadata"
TOPIC_ID = bytes(15) + b"\x01"
EPOCH = 5
LOG_EPOCH = 4
LOG_END = 10


def directory(node_id: int) -> bytes:
    return bytes([node_id]) * 16


def voter(node_id: int) -> Voter:
    return Voter(node_id, directory(node_id), (Listener("CONTROLLER", f"host{node_id}", 9000 + node_id),))


class Replica:
    """Node 1, unless said otherwise, of the voters 1, 2 and 3. Its log ends at 10, with a record of epoch 4, or it is
    one that is given."""

    def __init__(
        self,
        stored: StoredState | None = None,
        *,
        node: Voter | None = None,
        voters: tuple[int, ...] = (1, 2, 3),
        kraft_version: int = 1,
        end: int = LOG_END,
        log: VirtualLog | None = None,
        settings: QuorumSettings | None = None,
    ) -> None:
        voters_offset = 0 if end and log is None else BOOTSTRAP_OFFSET
        self.log = log or VirtualLog()
        if end and log is None:
            self.log.append([Batch(0, 6, 2, _batch(0, 6, 2)), Batch(6, end, LOG_EPOCH, _batch(6, end, LOG_EPOCH))])
        if kraft_version:
            control = ControlHistory()
            control.replay(KRaftVersionRecord(k_raft_version=1), BOOTSTRAP_OFFSET)
            control.replay(voters_record(VoterSet(tuple(map(voter, voters)))), voters_offset)
        else:
            control = ControlHistory(VoterSet(tuple(Voter(each, listeners=voter(each).listeners) for each in voters)))
        self.stored = stored or StoredState()
        self.now_ms = 0
        self.sent: list[Send] = []
        self.replies: dict[Any, Any] = {}
        self.writes: list[Any] = []
        self.high_watermarks: list[int] = []
        self.leaders: list[tuple[int, int]] = []
        """Leaders and epochs, as they were told."""
        self.draft = b""
        self.defers_stores = False
        self.defers_syncs = False
        self.quorum = Quorum(
            node or voter(1),
            control,
            self.log,
            stored=stored,
            cluster_id=CLUSTER,
            random=lambda below: 0,
            settings=settings or QuorumSettings(),
            bootstrap=[Destination(-1, f"host{each}", 9000 + each) for each in voters],
        )

    def step(self, event: Event) -> Actions:
        actions = self.quorum.step(event, self.now_ms, 1_000_000 + self.now_ms)
        self.sent += [each for each in actions.messages if isinstance(each, Send)]
        self.replies.update({each.token: each.response for each in actions.messages if not isinstance(each, Send)})
        if actions.leader is not None:
            self.leaders.append((actions.leader.leader_id, actions.leader.epoch))
        if actions.high_watermark is not None:
            self.high_watermarks.append(actions.high_watermark)
        for write in actions.writes:
            self.writes.append(write)
            self._write(write)
        return actions

    def _write(self, write: Any) -> None:
        if isinstance(write, StoreState):
            if not self.defers_stores:
                self.stored = read_stored(write.content)
                self.step(StateStored())
            return
        if isinstance(write, AppendControl):
            self.log.append(batches_of(write.batch))
        elif isinstance(write, AppendRecords):
            self.log.append(batches_of(b"".join(write.batches)))
        elif isinstance(write, TruncateLog):
            self.log.truncate(write.end_offset)
        elif isinstance(write, BeginSnapshot):
            self.draft = b""
            return
        elif isinstance(write, AppendSnapshot):
            self.draft += bytes(write.data)
            return
        elif isinstance(write, InstallSnapshot):
            self.log.replace(write.snapshot_id, self.draft)
            self.step(SnapshotInstalled(write.snapshot_id))
            return
        if not self.defers_syncs:
            self.step(Synced(self.log.end_offset))

    def start(self) -> Replica:
        self.step(Start())
        return self

    def advance(self, by_ms: int) -> Replica:
        """Let time pass, with a tick at the end of it."""
        self.now_ms += by_ms
        self.step(Tick())
        return self

    def ask(self, request: Any, version: int = 99) -> Any:
        """The response to a request; None if there is none yet."""
        newest = {VoteRequest: 2, FetchRequest: 18}.get(type(request), 1)
        token = object()
        self.step(Received(request, token, min(version, newest), "CONTROLLER"))
        return self.replies.get(token)

    def take_sent(self, kind: type) -> list[Send]:
        """The requests of a kind that were sent, which are forgotten now."""
        found = [each for each in self.sent if isinstance(each.request, kind)]
        self.sent = [each for each in self.sent if not isinstance(each.request, kind)]
        return found

    def answer(self, sent: Send, response: Any) -> None:
        self.step(Answered(sent.request_id, response))

    def append(self, count: int = 1) -> None:
        """As leader."""
        offset = self.log.end_offset
        epoch = self.quorum.epoch
        self.log.append([Batch(offset, offset + count, epoch, _batch(offset, offset + count, epoch))])
        self.step(Appended(self.log.end_offset))
        self.step(Synced(self.log.end_offset))


def _batch(base: int, end: int, epoch: int) -> bytes:
    records = [Record(each, 0, None, b"v%d" % epoch) for each in range(base, end)]
    return build_batch(records, partition_leader_epoch=epoch)


records_of = _batch


# --- replicas in each state -------------------------------------------------------------------------------------------


def unattached(**options: Any) -> Replica:
    return Replica(StoredState(EPOCH), **options).start()


def voted() -> Replica:
    """It has voted for node 2."""
    return Replica(StoredState(EPOCH, -1, 2, directory(2))).start()


def prospective() -> Replica:
    return unattached().advance(1_000)


def candidate() -> Replica:
    return Replica(StoredState(EPOCH, -1, 1, directory(1))).start()


def leader(**options: Any) -> Replica:
    """It has won its epoch with the vote of node 2; nobody has fetched."""
    replica = Replica(StoredState(EPOCH, -1, 1, directory(1)), **options).start()
    for sent in replica.take_sent(VoteRequest)[:1]:
        replica.answer(sent, vote_response(granted=True))
    return replica


def follower(**options: Any) -> Replica:
    """It follows node 2, which has not answered a fetch."""
    return Replica(StoredState(EPOCH, 2), **options).start()


def fetched() -> Replica:
    """It follows node 2, which has answered a fetch."""
    replica = follower()
    (sent,) = replica.take_sent(FetchRequest)
    replica.answer(sent, fetch_response())
    return replica


def resigned() -> Replica:
    """It was the leader when it went down."""
    return Replica(StoredState(EPOCH, 1)).start()


STATES = {
    "unattached": unattached,
    "voted": voted,
    "prospective": prospective,
    "candidate": candidate,
    "leader": leader,
    "follower": follower,
    "fetched": fetched,
    "resigned": resigned,
}


# --- messages ---------------------------------------------------------------------------------------------------------


def vote(
    epoch: int = EPOCH,
    *,
    pre_vote: bool = False,
    candidate_id: int = 3,
    log: tuple[int, int] = (LOG_END, LOG_EPOCH),
    **fields: Any,
) -> VoteRequest:
    kind = VoteRequest
    top = {key: fields.pop(key) for key in ("cluster_id", "voter_id", "topic") if key in fields}
    values = {
        "replica_epoch": epoch,
        "replica_id": candidate_id,
        "replica_directory_id": directory(max(candidate_id, 0)),
        "voter_directory_id": directory(1),
        "last_offset": log[0],
        "last_offset_epoch": log[1],
        "pre_vote": pre_vote,
    } | fields
    topic = kind.TopicData(top.get("topic", TOPIC), (kind.PartitionData(**values),))
    return kind(top.get("cluster_id", CLUSTER), top.get("voter_id", 1), (topic,))


def vote_response(*, granted: bool, epoch: int = EPOCH, leader_id: int = -1, error: int = 0) -> VoteResponse:
    kind = VoteResponse
    partition = kind.PartitionData(0, error, leader_id, epoch, granted)
    return kind(topics=(kind.TopicData(TOPIC, (partition,)),))


def begin(
    epoch: int = EPOCH,
    leader_id: int = 2,
    *,
    cluster_id: str = CLUSTER,
    voter_id: int = 1,
    directory_id: bytes | None = None,
) -> BeginQuorumEpochRequest:
    kind = BeginQuorumEpochRequest
    partition = kind.PartitionData(0, directory(1) if directory_id is None else directory_id, leader_id, epoch)
    endpoints = (kind.LeaderEndpoint("CONTROLLER", f"host{leader_id}", 9000 + leader_id),)
    return kind(cluster_id, voter_id, (kind.TopicData(TOPIC, (partition,)),), endpoints)


def end(
    epoch: int = EPOCH, leader_id: int = 2, candidates: tuple[int, ...] = (1, 3), *, cluster_id: str = CLUSTER
) -> EndQuorumEpochRequest:
    kind = EndQuorumEpochRequest
    preferred = tuple(kind.ReplicaInfo(each, directory(each)) for each in candidates)
    partition = kind.PartitionData(0, leader_id, epoch, preferred_candidates=preferred)
    endpoints = (kind.LeaderEndpoint("CONTROLLER", f"host{leader_id}", 9000 + leader_id),)
    return kind(cluster_id, (kind.TopicData(TOPIC, (partition,)),), endpoints)


def fetch(
    epoch: int = EPOCH,
    offset: int = LOG_END,
    last_epoch: int = LOG_EPOCH,
    *,
    replica_id: int = 2,
    directory_id: bytes | None = None,
    max_wait_ms: int = 500,
    high_watermark: int = -1,
    cluster_id: str | None = CLUSTER,
    topic_id: bytes = TOPIC_ID,
) -> FetchRequest:
    kind = FetchRequest
    partition = kind.FetchPartition(
        0,
        epoch,
        offset,
        last_epoch,
        partition_max_bytes=1 << 20,
        replica_directory_id=directory(max(replica_id, 0)) if directory_id is None else directory_id,
        high_watermark=high_watermark,
    )
    return kind(
        cluster_id,
        replica_state=kind.ReplicaState(replica_id),
        max_wait_ms=max_wait_ms,
        max_bytes=1 << 20,
        topics=(kind.FetchTopic(topic_id=topic_id, partitions=(partition,)),),
    )


def fetch_response(
    *,
    epoch: int = EPOCH,
    leader_id: int = 2,
    error: int = 0,
    records: bytes = b"",
    high_watermark: int = -1,
    diverging: tuple[int, int] | None = None,
    snapshot: SnapshotId | None = None,
) -> FetchResponse:
    kind = FetchResponse
    fields: dict[str, Any] = {}
    if diverging is not None:
        fields["diverging_epoch"] = kind.EpochEndOffset(*diverging)
    if snapshot is not None:
        fields["snapshot_id"] = kind.SnapshotId(*snapshot)
    leader_ = kind.LeaderIdAndEpoch(leader_id, epoch)
    partition = kind.PartitionData(0, error, high_watermark, current_leader=leader_, records=records, **fields)
    return kind(responses=(kind.FetchableTopicResponse(topic_id=TOPIC_ID, partitions=(partition,)),))


def partition_of(response: Any) -> Any:
    """The only partition of a response."""
    topics = response.responses if hasattr(response, "responses") else response.topics
    ((topic,),) = (topics,)
    ((partition,),) = (topic.partitions,)
    return partition
