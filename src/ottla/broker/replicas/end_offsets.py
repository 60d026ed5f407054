"""How far partitions are committed, wherever they are led: leaders on other nodes are asked by ListOffsets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final

from ottla.broker.peers.peer_connection import PeerError
from ottla.broker.replicas.lookup import leader_of
from ottla.broker.replicas.ports import EndOffsetPorts
from ottla.core.metadata.fault import Reject
from ottla.core.metadata.topic_image import NO_LEADER, partitions_by_topic
from ottla.log.read import LATEST
from ottla.wire.errors import ErrorCode
from ottla.wire.types.list_offsets import (
    ListOffsetsRequest,
    ListOffsetsRequestListOffsetsPartition,
    ListOffsetsRequestListOffsetsTopic,
)

__all__ = ["EndOffsets", "ask_end_offsets"]

_VERSIONS: Final = (5, 11)
_CONSUMER: Final = -1

TopicPartition = tuple[str, int]
EndOffsets = Mapping[TopicPartition, int | ErrorCode]
"""The high watermarks; or why they are not known."""


def ask_end_offsets(
    node: EndOffsetPorts, partitions: Iterable[TopicPartition], done: Callable[[EndOffsets], None]
) -> None:
    """Ask for the high watermarks of partitions; `done` gets them, at once if this node leads all of them."""
    by_leader: dict[int, list[TopicPartition]] = {}
    for each in partitions:
        by_leader.setdefault(leader_of(node.image, *each).leader_id, []).append(each)
    own = [each for leader in (NO_LEADER, node.node_id) for each in by_leader.pop(leader, ())]
    found = {each: _own(node, each) for each in own}
    waiting = set(by_leader)

    def answered(leader: int, response: Any) -> None:  # noqa: ANN401
        told = {} if isinstance(response, PeerError) else _told(response)
        found.update({each: told.get(each, ErrorCode.NETWORK_EXCEPTION) for each in by_leader[leader]})
        waiting.discard(leader)
        if not waiting:
            done(found)

    for leader, asked in by_leader.items():
        node.brokers.send(leader, _request(asked), _VERSIONS, partial(answered, leader))
    if not by_leader:
        done(found)


def _own(node: EndOffsetPorts, at: TopicPartition) -> int | ErrorCode:
    try:
        replica = node.replicas.leader(*at)
    except Reject as reject:
        return reject.code
    return replica.high_watermark if replica.knows_committed else ErrorCode.OFFSET_NOT_AVAILABLE


def _request(partitions: Iterable[TopicPartition]) -> ListOffsetsRequest:
    return ListOffsetsRequest(
        _CONSUMER,
        topics=tuple(
            ListOffsetsRequestListOffsetsTopic(
                name, tuple(ListOffsetsRequestListOffsetsPartition(index, timestamp=LATEST) for index in indexes)
            )
            for name, indexes in partitions_by_topic(partitions).items()
        ),
    )


def _told(response: Any) -> EndOffsets:  # noqa: ANN401
    return {
        (topic.name, each.partition_index): ErrorCode(each.error_code) if each.error_code else each.offset
        for topic in response.topics
        for each in topic.partitions
    }
