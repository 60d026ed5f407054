"""What the quorum's messages have in common: one topic, one partition, and the leader that the sender knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ottla.core.quorum.stored import NOBODY
from ottla.core.quorum.voters import NO_DIRECTORY
from ottla.wire.errors import ErrorCode

if TYPE_CHECKING:
    from ottla.core.quorum.events import Received
    from ottla.core.quorum.quorum import Quorum

METADATA_TOPIC: Final = "__cluster_metadata"
METADATA_TOPIC_ID: Final = bytes(15) + b"\x01"
_ENDPOINTS_FROM_VERSION: Final = 1


def sole_partition(request: Any, *, topic: str = "topic_name", partition: str = "partition_index") -> Any:  # noqa: ANN401
    """The entry for the metadata partition; None if the request is not about that alone."""
    if len(request.topics) != 1 or len(request.topics[0].partitions) != 1:
        return None
    (entry,) = request.topics[0].partitions
    is_metadata = getattr(request.topics[0], topic) == METADATA_TOPIC and getattr(entry, partition) == 0
    return entry if is_metadata else None


def refuse_request(quorum: Quorum, request: Any, partition: Any) -> ErrorCode | None:  # noqa: ANN401
    """The error at the top of a response: another cluster, or another partition."""
    if request.cluster_id is not None and request.cluster_id != quorum.cluster_id:
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    return ErrorCode.INVALID_REQUEST if partition is None else None


def is_addressed(quorum: Quorum, voter_id: int, directory_id: bytes) -> bool:
    """Whether this node is the one that the sender believes to speak to."""
    if voter_id < 0:
        return True
    return voter_id == quorum.node.voter_id and directory_id in (NO_DIRECTORY, quorum.node.directory_id)


def leader_endpoints(quorum: Quorum, received: Received, kind: Any) -> tuple[Any, ...]:  # noqa: ANN401
    """The leader's endpoint on the listener that the request came in on, as the `NodeEndpoint` of a response."""
    for listener in quorum.leader_listeners:
        if listener.name == received.listener and quorum.leader_id != NOBODY:
            return (kind.NodeEndpoint(quorum.leader_id, listener.host, listener.port),)
    return ()


def epoch_response(
    quorum: Quorum,
    received: Received,
    kind: Any,  # noqa: ANN401
    error: ErrorCode,
    **fields: Any,  # noqa: ANN401
) -> Any:  # noqa: ANN401
    """A response to Vote, BeginQuorumEpoch or EndQuorumEpoch, with the leader and epoch that this node knows."""
    partition = kind.PartitionData(0, error, leader_id=quorum.leader_id, leader_epoch=quorum.epoch, **fields)
    has_endpoints = received.api_version >= _ENDPOINTS_FROM_VERSION
    return kind(
        topics=(kind.TopicData(METADATA_TOPIC, (partition,)),),
        node_endpoints=leader_endpoints(quorum, received, kind) if has_endpoints else (),
    )
