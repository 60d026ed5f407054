"""Requests of the quorum, right unless a field is said otherwise, and what can be wrong with each of them.

A `Frame` is a request in one version. `At` says where the node that is asked stands: its epoch and where its log ends.
The functions named after an API give a request as a correct peer would send it; those that end in `_frames` give
variants of it, in all versions, that change no state. Left out is what ends the process of Apache Kafka: FetchSnapshot
without a topic or a partition, or for less than no bytes; a Fetch by the leader itself, and UpdateRaftVoter in its name
where the voters are configured; two leaders of one epoch; a leader that is no voter, without its endpoints.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from ottla.wire import WireError, encode, versions
from ottla.wire.types.add_raft_voter import AddRaftVoterRequest
from ottla.wire.types.begin_quorum_epoch import BeginQuorumEpochRequest
from ottla.wire.types.describe_quorum import DescribeQuorumRequest
from ottla.wire.types.end_quorum_epoch import EndQuorumEpochRequest
from ottla.wire.types.fetch import FetchRequest
from ottla.wire.types.fetch_snapshot import FetchSnapshotRequest
from ottla.wire.types.remove_raft_voter import RemoveRaftVoterRequest
from ottla.wire.types.update_raft_voter import UpdateRaftVoterRequest
from ottla.wire.types.vote import VoteRequest
from tests.interop.apache import CLUSTER_ID
from tests.interop.quorum_frames.seeded import LISTENER, NODE_ID, directory_id

METADATA = "__cluster_metadata"
METADATA_ID = bytes(15) + b"\x01"
OTHER_CLUSTER = "b3R0bGEtaW50ZXJvcC05OQ"
NO_DIRECTORY = bytes(16)
STRANGER = 9
FETCH_FROM = 4
PORT = 19_999


class At(msgspec.Struct, frozen=True):
    """Where the node stands that is asked."""

    epoch: int
    end: int
    last_epoch: int


class Frame(NamedTuple):
    name: str
    request: Any
    version: int


def in_all_versions(name: str, request: Any) -> Iterator[Frame]:
    """The request in each version that can express it; Fetch of a log begins with 4, as Apache Kafka serves it."""
    kind = type(request).__name__
    for version in versions(kind):
        if kind == "FetchRequest" and version < FETCH_FROM:
            continue
        asked = _of_version(request, version)
        try:
            encode(asked, version)
        except WireError:
            continue
        yield Frame(f"{kind.removesuffix('Request')} v{version}: {name}", asked, version)


def _of_version(request: Any, version: int) -> Any:
    """Fetch has its replica in another field from version 15 on."""
    if isinstance(request, FetchRequest) and version < 15:
        state = FetchRequest.ReplicaState()
        return msgspec.structs.replace(request, replica_id=request.replica_state.replica_id, replica_state=state)
    return request


# --- right ones -------------------------------------------------------------------------------------------------------


def vote(at: At, **fields: Any) -> VoteRequest:
    kind = VoteRequest
    top = _split(fields, cluster_id=CLUSTER_ID, voter_id=NODE_ID)
    values = {
        "replica_epoch": at.epoch,
        "replica_id": 2,
        "replica_directory_id": directory_id(2),
        "voter_directory_id": directory_id(NODE_ID),
        "last_offset_epoch": at.last_epoch,
        "last_offset": at.end,
    }
    return kind(**top, topics=(kind.TopicData(METADATA, (kind.PartitionData(**values | fields),)),))


def begin(at: At, **fields: Any) -> BeginQuorumEpochRequest:
    kind = BeginQuorumEpochRequest
    endpoints = (kind.LeaderEndpoint(LISTENER, "127.0.0.1", PORT),)
    top = _split(fields, cluster_id=CLUSTER_ID, voter_id=NODE_ID, leader_endpoints=endpoints)
    values = {"voter_directory_id": directory_id(NODE_ID), "leader_id": 2, "leader_epoch": at.epoch}
    return kind(**top, topics=(kind.TopicData(METADATA, (kind.PartitionData(**values | fields),)),))


def end(at: At, **fields: Any) -> EndQuorumEpochRequest:
    kind = EndQuorumEpochRequest
    endpoints = (kind.LeaderEndpoint(LISTENER, "127.0.0.1", PORT),)
    top = _split(fields, cluster_id=CLUSTER_ID, leader_endpoints=endpoints)
    values = {
        "leader_id": 2,
        "leader_epoch": at.epoch,
        "preferred_successors": (3, NODE_ID),
        "preferred_candidates": tuple(kind.ReplicaInfo(each, directory_id(each)) for each in (3, NODE_ID)),
    }
    return kind(**top, topics=(kind.TopicData(METADATA, (kind.PartitionData(**values | fields),)),))


def fetch(at: At, **fields: Any) -> FetchRequest:
    kind = FetchRequest
    replica_id = fields.pop("replica_id", 2)
    top = _split(fields, cluster_id=CLUSTER_ID, max_wait_ms=0, max_bytes=1 << 20, min_bytes=0)
    name, topic_id = fields.pop("topic", METADATA), fields.pop("topic_id", METADATA_ID)
    values = {
        "partition": 0,
        "current_leader_epoch": at.epoch,
        "fetch_offset": at.end,
        "last_fetched_epoch": at.last_epoch,
        "partition_max_bytes": 0,
        "replica_directory_id": directory_id(max(replica_id, 0)),
        "high_watermark": -1,
    }
    topic = kind.FetchTopic(name, topic_id, (kind.FetchPartition(**values | fields),))
    return kind(**top, replica_state=kind.ReplicaState(replica_id), topics=(topic,))


def fetch_snapshot(at: At, **fields: Any) -> FetchSnapshotRequest:
    kind = FetchSnapshotRequest
    replica_id = fields.pop("replica_id", 2)
    top = _split(fields, cluster_id=CLUSTER_ID, max_bytes=1 << 20)
    name, snapshot_id = fields.pop("topic", METADATA), fields.pop("snapshot_id", (at.end, at.last_epoch))
    values = {
        "partition": 0,
        "current_leader_epoch": at.epoch,
        "snapshot_id": kind.SnapshotId(*snapshot_id),
        "position": 0,
        "replica_directory_id": directory_id(max(replica_id, 0)),
    }
    topic = kind.TopicSnapshot(name, (kind.PartitionSnapshot(**values | fields),))
    return kind(**top, replica_id=replica_id, topics=(topic,))


def add_voter(**fields: Any) -> AddRaftVoterRequest:
    kind = AddRaftVoterRequest
    values = {
        "cluster_id": CLUSTER_ID,
        "timeout_ms": 1000,
        "voter_id": STRANGER,
        "voter_directory_id": directory_id(STRANGER),
        "listeners": (kind.Listener(LISTENER, "127.0.0.1", PORT),),
    }
    return kind(**values | fields)


def remove_voter(**fields: Any) -> RemoveRaftVoterRequest:
    values = {"cluster_id": CLUSTER_ID, "voter_id": STRANGER, "voter_directory_id": directory_id(STRANGER)}
    return RemoveRaftVoterRequest(**values | fields)


def update_voter(at: At, **fields: Any) -> UpdateRaftVoterRequest:
    kind = UpdateRaftVoterRequest
    if "listeners" in fields:
        fields["listeners"] = tuple(kind.Listener(each.name, each.host, each.port) for each in fields["listeners"])
    values = {
        "cluster_id": CLUSTER_ID,
        "current_leader_epoch": at.epoch,
        "voter_id": STRANGER,
        "voter_directory_id": directory_id(STRANGER),
        "listeners": (kind.Listener(LISTENER, "127.0.0.1", PORT),),
        "k_raft_version_feature": kind.KRaftVersionFeature(0, 1),
    }
    return kind(**values | fields)


def describe(topic: str = METADATA, partition: int = 0, again: int = 1) -> DescribeQuorumRequest:
    kind = DescribeQuorumRequest
    return kind((kind.TopicData(topic, (kind.PartitionData(partition),) * again),))


def _split(fields: dict[str, Any], **defaults: Any) -> dict[str, Any]:
    """Take the fields of the request itself out of those of its partition."""
    return {key: fields.pop(key, value) for key, value in defaults.items()}


# --- wrong ones -------------------------------------------------------------------------------------------------------


def _misaddressed(request: Any, topic_field: str = "topic_name") -> Iterator[tuple[str, Any]]:
    """Another cluster, another topic, another number of partitions."""
    replace = msgspec.structs.replace
    (topic,) = request.topics
    (partition,) = topic.partitions
    index = "partition" if hasattr(partition, "partition") else "partition_index"
    if hasattr(request, "cluster_id"):
        for cluster_id in (OTHER_CLUSTER, "", None):
            yield f"cluster {cluster_id!r}", replace(request, cluster_id=cluster_id)
    yield "no topic", replace(request, topics=())
    yield "no partition", replace(request, topics=(replace(topic, partitions=()),))
    yield (
        "another partition",
        replace(request, topics=(replace(topic, partitions=(replace(partition, **{index: 1}),)),)),
    )
    yield "two partitions", replace(request, topics=(replace(topic, partitions=(partition, partition)),))
    yield "another topic", replace(request, topics=(replace(topic, **{topic_field: "orders"}),))
    yield "two topics", replace(request, topics=(topic, topic))


def vote_frames(at: At) -> Iterator[Frame]:
    """Votes that are not granted, and pre-votes: none changes the state."""
    for name, request in _misaddressed(vote(at)):
        yield from in_all_versions(name, request)
    for pre_vote in (False, True):
        kind = "pre-vote" if pre_vote else "vote"
        for name, fields in _vote_fields(at):
            if pre_vote or name in _NEVER_GRANTED:
                yield from _votes(f"{kind}, {name}", vote(at, pre_vote=pre_vote, **fields))


def _votes(name: str, request: VoteRequest) -> Iterator[Frame]:
    for frame in in_all_versions(name, request):
        if frame.version > 1 or "pre-vote" not in name:
            yield frame


def _vote_fields(at: At) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "right", {}
    yield "epoch before", {"replica_epoch": at.epoch - 1}
    yield "epoch 0", {"replica_epoch": 0, "last_offset_epoch": 0}
    yield "epoch -1", {"replica_epoch": -1}
    yield "nobody's", {"replica_id": -1}
    yield "nobody's, of an epoch before", {"replica_id": -1, "replica_epoch": at.epoch - 1, "last_offset_epoch": 0}
    yield "of the node itself", {"replica_id": NODE_ID, "replica_directory_id": directory_id(NODE_ID)}
    yield "of a stranger", {"replica_id": STRANGER}
    yield "of an unknown directory", {"replica_directory_id": directory_id(77)}
    yield "of no directory", {"replica_directory_id": NO_DIRECTORY}
    yield "to another voter", {"voter_id": 3}
    yield "to another directory", {"voter_directory_id": directory_id(3)}
    yield "to any directory", {"voter_directory_id": NO_DIRECTORY}
    yield "to anybody", {"voter_id": -1}
    yield "to anybody with a directory", {"voter_id": -1, "voter_directory_id": directory_id(3)}
    yield "offset below 0", {"last_offset": -1}
    yield "epoch of the log below 0", {"last_offset_epoch": -1}
    yield "epoch of the log as the epoch", {"last_offset_epoch": at.epoch}
    yield "epoch of the log above the epoch", {"last_offset_epoch": at.epoch + 1}
    yield "empty log", {"last_offset": 0, "last_offset_epoch": 0}
    yield "shorter log", {"last_offset": at.end - 1}
    yield "longer log", {"last_offset": at.end + 1}
    yield "longer log of an older epoch", {"last_offset": at.end + 9, "last_offset_epoch": at.last_epoch - 1}
    yield "shorter log of a newer epoch", {"last_offset": 1, "last_offset_epoch": at.epoch - 1}


_NEVER_GRANTED = frozenset(
    {
        "epoch before",
        "epoch 0",
        "epoch -1",
        "nobody's",
        "nobody's, of an epoch before",
        "to another voter",
        "to another directory",
        "offset below 0",
        "epoch of the log below 0",
        "epoch of the log as the epoch",
        "epoch of the log above the epoch",
        "empty log",
        "shorter log",
        "longer log of an older epoch",
    }
)


def begin_frames(at: At) -> Iterator[Frame]:
    """BeginQuorumEpoch that makes nobody a follower."""
    right = begin(at)
    for name, request in _misaddressed(right):
        if name != "cluster None":
            yield from in_all_versions(name, request)
    yield from in_all_versions("epoch before", begin(at, leader_epoch=at.epoch - 1))
    yield from in_all_versions("epoch -1", begin(at, leader_epoch=-1))
    yield from in_all_versions("epoch before, no endpoints", begin(at, leader_epoch=at.epoch - 1, leader_endpoints=()))
    yield from in_all_versions("epoch before, to another", begin(at, leader_epoch=at.epoch - 1, voter_id=3))
    yield from in_all_versions("led by nobody", begin(at, leader_id=-1))
    yield from in_all_versions("led by nobody, of an epoch before", begin(at, leader_id=-1, leader_epoch=at.epoch - 1))


def end_frames(at: At) -> Iterator[Frame]:
    """EndQuorumEpoch that moves nobody."""
    for name, request in _misaddressed(end(at)):
        if name != "cluster None":
            yield from in_all_versions(name, request)
    yield from in_all_versions("epoch before", end(at, leader_epoch=at.epoch - 1))
    yield from in_all_versions("epoch -1", end(at, leader_epoch=-1))
    yield from in_all_versions("led by nobody", end(at, leader_id=-1))
    nobody = {"preferred_candidates": (), "preferred_successors": ()}
    yield from in_all_versions("epoch before, without candidates", end(at, leader_epoch=at.epoch - 1, **nobody))


def all_frames(
    at: At, snapshot_id: tuple[int, int], offsets: tuple[tuple[int, int], ...] = (), *, is_static: bool = False
) -> Iterator[Frame]:
    """Everything that leaves a node as it is. `is_static` is one whose voters are configured."""
    yield from vote_frames(at)
    yield from begin_frames(at)
    yield from end_frames(at)
    yield from fetch_frames(at, offsets)
    yield from fetch_snapshot_frames(at, snapshot_id)
    yield from voter_frames(at, is_static=is_static)
    yield from describe_frames()


def fetch_frames(at: At, offsets: tuple[tuple[int, int], ...] = ()) -> Iterator[Frame]:
    """Fetches by a stranger, and `offsets` with the epoch before each, which are all answered at once."""
    for name, request in _misaddressed(fetch(at), "topic_id"):
        if name == "another topic":
            other = fetch(at, topic="orders", topic_id=directory_id(7))
            yield from in_all_versions(name, other)
        else:
            yield from in_all_versions(name, request)
    yield from in_all_versions("unknown topic id", fetch(at, topic_id=bytes(16)))
    for name, fields in _fetch_fields(at):
        yield from in_all_versions(name, fetch(at, **{"replica_id": STRANGER} | fields))
    for offset, epoch in offsets:
        request = fetch(at, replica_id=STRANGER, fetch_offset=offset, last_fetched_epoch=epoch)
        yield from (each for each in in_all_versions(f"from {offset}@{epoch}", request) if each.version > 16)


def _fetch_fields(at: At) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "right", {}
    yield "by no replica", {"replica_id": -1}
    yield "by replica -2", {"replica_id": -2}
    yield "epoch before", {"current_leader_epoch": at.epoch - 1}
    yield "epoch after", {"current_leader_epoch": at.epoch + 1}
    yield "epoch -1", {"current_leader_epoch": -1}
    yield "epoch -1, log's too", {"current_leader_epoch": -1, "last_fetched_epoch": -1}
    yield "wait below 0", {"max_wait_ms": -1}
    yield "offset below 0", {"fetch_offset": -1}
    yield "epoch of the log below 0", {"last_fetched_epoch": -1}
    yield "epoch of the log above the epoch", {"last_fetched_epoch": at.epoch + 1}
    yield "epoch of the log as the epoch", {"last_fetched_epoch": at.epoch}
    yield "no bytes", {"max_bytes": 0, "fetch_offset": 0, "last_fetched_epoch": 0}
    yield "few bytes", {"max_bytes": 1, "fetch_offset": 0, "last_fetched_epoch": 0}
    yield "few bytes of the partition", {"partition_max_bytes": 1, "fetch_offset": 0, "last_fetched_epoch": 0}
    yield "a short wait", {"max_wait_ms": 50, "high_watermark": (1 << 63) - 1}
    yield "a known high watermark", {"high_watermark": at.end}


def fetch_snapshot_frames(at: At, snapshot_id: tuple[int, int]) -> Iterator[Frame]:
    for name, request in _misaddressed(fetch_snapshot(at, snapshot_id=snapshot_id), "name"):
        if name not in ("no topic", "no partition"):
            yield from in_all_versions(name, request)
    for name, fields in _snapshot_fields(at, snapshot_id):
        yield from in_all_versions(name, fetch_snapshot(at, **{"snapshot_id": snapshot_id} | fields))


def _snapshot_fields(at: At, snapshot_id: tuple[int, int]) -> Iterator[tuple[str, dict[str, Any]]]:
    end_offset, epoch = snapshot_id
    yield "right", {}
    yield "by no replica", {"replica_id": -1}
    yield "by a stranger", {"replica_id": STRANGER}
    yield "epoch before", {"current_leader_epoch": at.epoch - 1}
    yield "epoch after", {"current_leader_epoch": at.epoch + 1}
    yield "epoch -1", {"current_leader_epoch": -1}
    yield "that of formatting", {"snapshot_id": (0, 0)}
    yield "unknown offset", {"snapshot_id": (end_offset + 1, epoch)}
    yield "unknown epoch", {"snapshot_id": (end_offset, epoch + 1)}
    yield "offset below 0", {"snapshot_id": (-1, epoch)}
    yield "position 1", {"position": 1}
    yield "position below 0", {"position": -1}
    yield "position far behind", {"position": 1 << 40}
    yield "ten bytes", {"max_bytes": 10}
    yield "no bytes", {"max_bytes": 0}


def voter_frames(at: At, *, is_static: bool) -> Iterator[Frame]:
    """Changes of voters that are refused."""
    for name, fields in _voter_fields():
        yield from in_all_versions(name, add_voter(**fields))
        yield from in_all_versions(name, update_voter(at, **fields))
        without = {key: value for key, value in fields.items() if key != "listeners"}
        if without == fields:
            yield from in_all_versions(name, remove_voter(**fields))
    yield from in_all_versions("the node itself", add_voter(voter_id=NODE_ID, voter_directory_id=directory_id(NODE_ID)))
    yield from in_all_versions("its id, another directory", add_voter(voter_id=NODE_ID))
    yield from in_all_versions("its id, another directory", remove_voter(voter_id=NODE_ID))
    for name, epoch in (("epoch before", at.epoch - 1), ("epoch after", at.epoch + 1), ("epoch -1", -1)):
        yield from in_all_versions(name, update_voter(at, current_leader_epoch=epoch))
    if not is_static:
        own = {"voter_id": NODE_ID, "voter_directory_id": directory_id(NODE_ID)}
        feature = UpdateRaftVoterRequest.KRaftVersionFeature(2, 3)
        yield from in_all_versions("its id, another directory", update_voter(at, voter_id=NODE_ID))
        yield from in_all_versions("versions 2 to 3", update_voter(at, k_raft_version_feature=feature, **own))


def _voter_fields() -> Iterator[tuple[str, dict[str, Any]]]:
    listener = AddRaftVoterRequest.Listener
    yield "a stranger", {}
    yield "another cluster", {"cluster_id": OTHER_CLUSTER}
    yield "no cluster", {"cluster_id": None}
    yield "nobody", {"voter_id": -1}
    yield "no directory", {"voter_directory_id": NO_DIRECTORY}
    yield "no listeners", {"listeners": ()}
    yield "another listener", {"listeners": (listener("PLAINTEXT", "127.0.0.1", PORT),)}


def describe_frames() -> Iterator[Frame]:
    for name, request in _misaddressed(describe()):
        yield from in_all_versions(name, request)
    yield from in_all_versions("right", describe())
    yield from in_all_versions("two other partitions", describe("orders", 3, 2))
