"""Performs the effects of transaction coordinators: sends markers, takes producer ids.

Markers go out as WriteTxnMarkers to the nodes that lead partitions of the transaction; those of several transactions
go to a node together. A request to this node itself is handled as if it had been read from a connection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from ottla.broker.controller.producer_ids import ProducerIds
from ottla.broker.coordinators.edge import Perform
from ottla.broker.peers.gathered_requests import GatheredRequests
from ottla.broker.peers.peer_connection import PeerError
from ottla.broker.transactions.marker_appends import append_markers
from ottla.broker.transactions.ports import MarkerSendPorts
from ottla.core.coordinator.contract import Outcome
from ottla.core.metadata.topic_image import NO_LEADER, partitions_by_topic
from ottla.core.txn.messages import TakeProducerId, WriteMarkers
from ottla.core.txn.transaction import Partition
from ottla.wire.errors import ErrorCode
from ottla.wire.types.write_txn_markers import (
    WriteTxnMarkersRequest,
    WriteTxnMarkersRequestWritableTxnMarker,
    WriteTxnMarkersRequestWritableTxnMarkerTopic,
    WriteTxnMarkersResponse,
)

__all__ = ["performers"]

_VERSIONS: Final = (1, 2)

Done = Callable[[Outcome], None]
Answers = Mapping[Partition, ErrorCode]
_Marker = WriteTxnMarkersRequestWritableTxnMarker
_Remote = GatheredRequests[_Marker]


def performers(node: MarkerSendPorts) -> dict[type, Perform]:
    """The performers of the effects of transaction coordinators."""
    remote: _Remote = GatheredRequests(
        node.brokers,
        _VERSIONS,
        lambda markers: WriteTxnMarkersRequest(tuple(markers)),
        lambda marker: (marker.producer_id,),
    )
    return {
        WriteMarkers: lambda effect, done: _MarkerSend(node, remote, effect, done).begin(),
        TakeProducerId: lambda effect, done: _take_producer_id(node.producer_ids, done),
    }


def _take_producer_id(producer_ids: ProducerIds, done: Done) -> None:
    def taken(outcome: int | ErrorCode) -> None:
        done(Outcome(outcome) if isinstance(outcome, ErrorCode) else Outcome(value=outcome))

    producer_ids.take(taken)


class _MarkerSend:
    """The markers of one transaction."""

    def __init__(self, node: MarkerSendPorts, remote: _Remote, effect: WriteMarkers, done: Done) -> None:
        self._node = node
        self._remote = remote
        self._effect = effect
        self._done = done
        self._answers: dict[Partition, ErrorCode] = {}

    def begin(self) -> None:
        by_leader: dict[int, list[Partition]] = {}
        for each in sorted(self._effect.partitions):
            found = self._node.image.partition(*each)
            if found is None:
                self._answers[each] = ErrorCode.NONE  # it was deleted, and what was written there with it
            else:
                by_leader.setdefault(found.leader, []).append(each)
        for leader, partitions in by_leader.items():
            self._send(leader, partitions)
        if not by_leader:
            self._take({})

    def _send(self, leader: int, partitions: Sequence[Partition]) -> None:
        marker = self._marker(partitions)
        if leader == self._node.node_id:
            append_markers(self._node, WriteTxnMarkersRequest((marker,)), lambda answers: self._take(answers[0]))
        elif leader == NO_LEADER:
            self._take(dict.fromkeys(partitions, ErrorCode.LEADER_NOT_AVAILABLE))
        else:
            self._remote.ask(leader, marker, partial(self._answered, partitions))

    def _answered(self, partitions: Iterable[Partition], response: Any) -> None:  # noqa: ANN401
        """Another node has written markers, or has not been heard of."""
        answers = {} if isinstance(response, PeerError) else _codes(response, self._effect.producer_id)
        self._take({each: answers.get(each, ErrorCode.NETWORK_EXCEPTION) for each in partitions})

    def _marker(self, partitions: Iterable[Partition]) -> _Marker:
        return _Marker(
            producer_id=self._effect.producer_id,
            producer_epoch=self._effect.producer_epoch,
            transaction_result=self._effect.is_commit,
            topics=tuple(
                WriteTxnMarkersRequestWritableTxnMarkerTopic(name, tuple(indexes))
                for name, indexes in partitions_by_topic(partitions).items()
            ),
            coordinator_epoch=self._effect.coordinator_epoch,
            transaction_version=self._effect.transaction_version,
        )

    def _take(self, answers: Answers) -> None:
        self._answers.update(answers)
        if len(self._answers) == len(self._effect.partitions):
            self._done(Outcome(value=self._answers))


def _codes(response: WriteTxnMarkersResponse, producer_id: int) -> Answers:
    """How the partitions have taken the marker of a producer."""
    return {
        Partition(topic.name, each.partition_index): ErrorCode(each.error_code)
        for marker in response.markers
        if marker.producer_id == producer_id
        for topic in marker.topics
        for each in topic.partitions
    }
