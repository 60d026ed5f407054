"""Performs the effects of transaction coordinators: sends markers, takes producer ids.

Markers go out as WriteTxnMarkers, one request for each node that leads partitions of the transaction. A request to
this node itself is handled as if it had been read from a connection.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ottla.broker.controller.producer_ids import ProducerIds
from ottla.broker.coordinators.edge import Perform
from ottla.broker.transactions.marker_appends import append_markers
from ottla.broker.transactions.ports import MarkerSendPorts
from ottla.core.coordinator.contract import Outcome
from ottla.core.txn.messages import TakeProducerId, WriteMarkers
from ottla.core.txn.transaction import Partition
from ottla.wire.errors import ErrorCode
from ottla.wire.types.write_txn_markers import (
    WriteTxnMarkersRequest,
    WriteTxnMarkersRequestWritableTxnMarker,
    WriteTxnMarkersRequestWritableTxnMarkerTopic,
)

__all__ = ["performers"]

Done = Callable[[Outcome], None]


def performers(node: MarkerSendPorts) -> dict[type, Perform]:
    """The performers of the effects of transaction coordinators."""
    return {
        WriteMarkers: lambda effect, done: _MarkerSend(node, effect, done).begin(),
        TakeProducerId: lambda effect, done: _take_producer_id(node.producer_ids, done),
    }


def _take_producer_id(producer_ids: ProducerIds, done: Done) -> None:
    def taken(outcome: int | ErrorCode) -> None:
        done(Outcome(outcome) if isinstance(outcome, ErrorCode) else Outcome(value=outcome))

    producer_ids.take(taken)


class _MarkerSend:
    """The markers of one transaction."""

    def __init__(self, node: MarkerSendPorts, effect: WriteMarkers, done: Done) -> None:
        self._node = node
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

    def _send(self, leader: int, partitions: list[Partition]) -> None:
        if leader != self._node.node_id:
            # Nodes do not talk to each other yet; the coordinator asks again, and leadership may come to this one.
            self._take(dict.fromkeys(partitions, ErrorCode.NOT_LEADER_OR_FOLLOWER))
            return
        append_markers(self._node, self._request(partitions), lambda answers: self._take(answers[0]))

    def _request(self, partitions: list[Partition]) -> WriteTxnMarkersRequest:
        topics: dict[str, list[int]] = {}
        for topic, index in partitions:
            topics.setdefault(topic, []).append(index)
        marker = WriteTxnMarkersRequestWritableTxnMarker(
            producer_id=self._effect.producer_id,
            producer_epoch=self._effect.producer_epoch,
            transaction_result=self._effect.is_commit,
            topics=tuple(
                WriteTxnMarkersRequestWritableTxnMarkerTopic(name, tuple(indexes)) for name, indexes in topics.items()
            ),
            coordinator_epoch=self._effect.coordinator_epoch,
            transaction_version=self._effect.transaction_version,
        )
        return WriteTxnMarkersRequest((marker,))

    def _take(self, answers: Mapping[Partition, ErrorCode]) -> None:
        self._answers.update(answers)
        if len(self._answers) == len(self._effect.partitions):
            self._done(Outcome(value=self._answers))
