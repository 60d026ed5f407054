"""Appends transaction markers to the partitions that this node leads.

All markers of a turn are staged first and written together. Markers in `__consumer_offsets` go through the
group coordinator, which must learn of the offsets that become valid with them. A partition is done when its marker is
committed: at once where this node is the only replica, else when the high watermark has passed it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from ottla.broker.coordinators.internal_topics import GROUPS
from ottla.broker.loop.delayed_operations import DelayedOperation
from ottla.broker.replicas.acknowledged_writes import check_isr, write_result
from ottla.broker.replicas.replicas import Replica
from ottla.broker.transactions.ports import MarkerAppendPorts
from ottla.core.coordinator.contract import Producer
from ottla.core.metadata.fault import Reject
from ottla.core.txn.transaction import Partition
from ottla.log.errors import LogError
from ottla.log.producer_state import Verification
from ottla.wire.batch import build_end_txn_marker
from ottla.wire.errors import ErrorCode
from ottla.wire.types.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersRequestWritableTxnMarker

__all__ = ["Answers", "append_markers"]

Answers = list[dict[Partition, ErrorCode]]
"""For each marker of a request, how each partition has taken it."""

_Marker = WriteTxnMarkersRequestWritableTxnMarker

_NOT_READY: Final = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
    }
)


def append_markers(node: MarkerAppendPorts, request: WriteTxnMarkersRequest, done: Callable[[Answers], None]) -> None:
    """Write markers to partitions of this node; `done` gets the answers, at once or later."""
    _MarkerAppend(node, request, done).begin()


class _Staged(NamedTuple):
    answers: dict[Partition, ErrorCode]
    partition: Partition
    replica: Replica
    leader_epoch: int
    end_offset: int


class _MarkerAppend:
    """The markers of one request."""

    def __init__(
        self, node: MarkerAppendPorts, request: WriteTxnMarkersRequest, done: Callable[[Answers], None]
    ) -> None:
        self._node = node
        self._markers = request.markers
        self._done = done
        self._answers: Answers = [{} for _ in self._markers]
        self._staged: list[_Staged] = []
        self._open_count = 1
        """Partitions that have not answered; one more while they are being asked."""

    def begin(self) -> None:
        for marker, answers in zip(self._markers, self._answers, strict=True):
            for topic in marker.topics:
                for index in topic.partition_indexes:
                    self._open_count += 1
                    self._append(marker, Partition(topic.name, index), answers)
        if self._staged:
            self._node.unit_of_work.after_write(self._look)
        self._close_one()

    def _append(self, marker: _Marker, partition: Partition, answers: dict[Partition, ErrorCode]) -> None:
        if partition.topic == GROUPS.name:
            self._tell_groups(marker, partition, answers)
            return
        try:
            end_offset = self._stage(marker, partition)
        except (Reject, LogError) as error:
            self._answer(answers, partition, ErrorCode(error.code))
            return
        replica = self._node.replicas.leader(*partition)
        self._staged.append(_Staged(answers, partition, replica, replica.leader_epoch, end_offset))

    def _stage(self, marker: _Marker, partition: Partition) -> int:
        records = build_end_txn_marker(
            committed=marker.transaction_result,
            coordinator_epoch=marker.coordinator_epoch,
            producer_id=marker.producer_id,
            producer_epoch=marker.producer_epoch,
            timestamp=self._node.clock.wall_ms(),
        )
        verification = Verification(transaction_version=marker.transaction_version)
        replica = self._node.replicas.leader(*partition)
        check_isr(replica)
        return replica.stage_as_coordinator(bytearray(records), verification=verification).last_offset + 1

    def _tell_groups(self, marker: _Marker, partition: Partition, answers: dict[Partition, ErrorCode]) -> None:
        def told(code: ErrorCode) -> None:
            self._answer(answers, partition, ErrorCode.NOT_LEADER_OR_FOLLOWER if code in _NOT_READY else code)

        self._node.groups.end_transaction(
            partition.partition,
            Producer(marker.producer_id, marker.producer_epoch),
            told,
            committed=marker.transaction_result,
            coordinator_epoch=marker.coordinator_epoch,
            transaction_version=marker.transaction_version,
        )

    # --- after the write ----------------------------------------------------------------------------------------------

    def _look(self) -> None:
        if self._settle(expired=False):
            return
        keys = {each.replica.topic_partition for each in self._staged}
        deadline_at_ms = self._node.clock.monotonic_ms() + self._node.settings["request.timeout.ms"]
        if not self._node.purgatory.park(
            DelayedOperation(lambda expired: self._settle(expired=expired), keys, deadline_at_ms)
        ):
            self._settle(expired=True)

    def _settle(self, *, expired: bool) -> bool:
        """Note the markers that are committed; True if none is left to wait for."""
        staged, self._staged = self._staged, []
        for each in staged:
            code = _outcome(each)
            if code is None and not expired:
                self._staged.append(each)
            else:
                self._answer(each.answers, each.partition, ErrorCode.REQUEST_TIMED_OUT if code is None else code)
        return not self._staged

    def _answer(self, answers: dict[Partition, ErrorCode], partition: Partition, code: ErrorCode) -> None:
        answers[partition] = code
        self._close_one()

    def _close_one(self) -> None:
        self._open_count -= 1
        if not self._open_count:
            self._done(self._answers)


def _outcome(staged: _Staged) -> ErrorCode | None:
    """The result of a marker; None if it is not known yet."""
    try:
        return write_result(staged.replica, staged.leader_epoch, staged.end_offset)
    except LogError as error:
        return ErrorCode(error.code)
