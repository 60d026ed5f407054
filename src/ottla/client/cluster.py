"""The cluster itself: its brokers, and the quorum of its controllers."""

from __future__ import annotations

from typing import Final, NamedTuple

from ottla.client.address import Peer
from ottla.client.client import Client, always
from ottla.client.errors import ProtocolError, UnsupportedVersionError, check
from ottla.wire.types.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from ottla.wire.types.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponse,
    DescribeQuorumResponseReplicaState,
)

__all__ = [
    "QUORUM_REQUEST",
    "BrokerDescription",
    "ClusterDescription",
    "QuorumDescription",
    "Replica",
    "describe",
    "describe_quorum",
    "read_quorum",
]

METADATA_TOPIC: Final = "__cluster_metadata"
QUORUM_REQUEST: Final = DescribeQuorumRequest(
    (DescribeQuorumRequestTopicData(METADATA_TOPIC, (DescribeQuorumRequestPartitionData(0),)),)
)
_FENCED_VERSION: Final = 2
_NO_DIRECTORY: Final = bytes(16)


class BrokerDescription(NamedTuple):
    node_id: int
    host: str
    port: int
    rack: str | None
    is_fenced: bool = False
    """Registered, but not serving."""


class ClusterDescription(NamedTuple):
    cluster_id: str | None
    controller_id: int
    """A broker that takes what is for the controller; which node leads the quorum, `describe_quorum` says."""
    brokers: tuple[BrokerDescription, ...]


class Replica(NamedTuple):
    """A node that has the metadata log."""

    node_id: int
    directory_id: bytes | None
    log_end_offset: int
    """-1 if the leader does not know."""
    last_fetch_ms: int | None
    last_caught_up_ms: int | None
    endpoints: tuple[tuple[str, str, int], ...] = ()
    """Listener, host and port of each."""


class QuorumDescription(NamedTuple):
    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[Replica, ...]
    observers: tuple[Replica, ...]

    @property
    def leader_end_offset(self) -> int:
        return max((each.log_end_offset for each in self.voters if each.node_id == self.leader_id), default=-1)

    def lag(self, replica: Replica) -> int:
        """How many records the leader has that the replica has not."""
        return self.leader_end_offset - replica.log_end_offset

    @property
    def majority(self) -> int:
        return len(self.voters) // 2 + 1

    @property
    def holding_back(self) -> tuple[int, ...]:
        """The voters that the high watermark waits for; none if it has reached the end of the leader's log."""
        if self.high_watermark >= self.leader_end_offset:
            return ()
        return tuple(each.node_id for each in self.voters if each.log_end_offset <= self.high_watermark)


async def describe(client: Client, *, include_fenced: bool = False) -> ClusterDescription:
    """The brokers of the cluster."""

    def build(version: int) -> DescribeClusterRequest:
        return DescribeClusterRequest(include_fenced_brokers=include_fenced and version >= _FENCED_VERSION)

    try:
        answer = await client.ask("DescribeCluster", build)
    except UnsupportedVersionError:  # before 2.8
        return await _describe_by_metadata(client)
    body = answer.of(DescribeClusterResponse)
    check(answer.peer, "DescribeCluster", body.error_code, message=body.error_message)
    brokers = [
        BrokerDescription(each.broker_id, each.host, each.port, each.rack, each.is_fenced) for each in body.brokers
    ]
    return ClusterDescription(body.cluster_id, body.controller_id, tuple(sorted(brokers)))


async def _describe_by_metadata(client: Client) -> ClusterDescription:
    metadata = await client.refresh()
    brokers = tuple(BrokerDescription(*broker) for _, broker in sorted(metadata.brokers.items()))
    return ClusterDescription(metadata.cluster_id, metadata.controller_id, brokers)


async def describe_quorum(client: Client) -> QuorumDescription:
    """The quorum that keeps the cluster's metadata, as its leader sees it."""
    answer = await client.ask("DescribeQuorum", always(QUORUM_REQUEST))
    return read_quorum(answer.peer, answer.of(DescribeQuorumResponse))


def read_quorum(peer: Peer, body: DescribeQuorumResponse) -> QuorumDescription:
    """What an answer says of the quorum; ResponseError if it is an error."""
    check(peer, "DescribeQuorum", body.error_code, message=body.error_message)
    found = [partition for topic in body.topics for partition in topic.partitions]
    if not found:
        raise ProtocolError(peer, f"a DescribeQuorumResponse does not contain {METADATA_TOPIC}")
    state = found[0]
    check(peer, "DescribeQuorum", state.error_code, message=state.error_message)
    endpoints = {
        node.node_id: tuple((each.name, each.host, each.port) for each in node.listeners) for node in body.nodes
    }
    return QuorumDescription(
        state.leader_id,
        state.leader_epoch,
        state.high_watermark,
        tuple(_replica(each, endpoints.get(each.replica_id, ())) for each in state.current_voters),
        tuple(_replica(each, ()) for each in state.observers),
    )


def _replica(each: DescribeQuorumResponseReplicaState, endpoints: tuple[tuple[str, str, int], ...]) -> Replica:
    return Replica(
        each.replica_id,
        None if each.replica_directory_id == _NO_DIRECTORY else each.replica_directory_id,
        each.log_end_offset,
        _time_or_none(each.last_fetch_timestamp),
        _time_or_none(each.last_caught_up_timestamp),
        endpoints,
    )


def _time_or_none(timestamp_ms: int) -> int | None:
    return None if timestamp_ms < 0 else timestamp_ms
