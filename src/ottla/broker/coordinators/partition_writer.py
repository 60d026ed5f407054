"""The partition writer of a shard: appends to a partition of an internal topic that this node leads."""

from __future__ import annotations

from collections.abc import Callable

from ottla.broker.coordinators.counts import RuntimeCounts
from ottla.broker.replicas.acknowledged_writes import check_isr
from ottla.broker.replicas.replicas import Replica
from ottla.core.coordinator.contract import Producer
from ottla.log.append import NOT_VERIFIED
from ottla.log.producer_state import Verification
from ottla.wire.batch import BatchBuilder, Compression, build_end_txn_marker
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject

__all__ = ["ReplicaWriter"]


class ReplicaWriter:
    """Appends as the coordinator: without sequence numbers, and without the checks that are for clients only.

    The first append creates the log on the disk.
    """

    __slots__ = ("_compression", "_counts", "_leader_epoch", "_wall_ms", "replica")

    def __init__(
        self,
        replica: Replica,
        leader_epoch: int,
        wall_ms: Callable[[], int],
        counts: RuntimeCounts,
        compression: Compression = Compression.NONE,
    ) -> None:
        self.replica = replica
        self._leader_epoch = leader_epoch
        self._wall_ms = wall_ms
        self._counts = counts
        self._compression = compression

    @property
    def log_end_offset(self) -> int:
        return self.replica.log.next_offset if self.replica.has_log else 0

    @property
    def high_watermark(self) -> int:
        return self.replica.high_watermark

    @property
    def batch_max_bytes(self) -> int:
        config = self._led().log.config
        return min(config.max_message_bytes, config.segment_bytes)

    @property
    def is_led(self) -> bool:
        """Whether this node still leads the partition, in the leader epoch in which the shard was loaded."""
        replica = self.replica
        return replica.is_leader and replica.leader_epoch == self._leader_epoch and not replica.is_offline

    def _led(self) -> Replica:
        # A topic that was deleted in this very turn must not come back by being written to; and if another node has
        # led the partition meanwhile, what the shard knows is out of date.
        if not self.replica.is_leader or self.replica.leader_epoch != self._leader_epoch:
            raise Reject(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return self.replica

    def check(self) -> None:
        """Reject what could not be committed now: too few replicas are in sync, or this node does not lead."""
        check_isr(self._led())

    def stage(self, batch: BatchBuilder, producer: Producer | None) -> int:
        if producer is None:
            return self._stage(batch.build(compression=self._compression), len(batch))
        records = batch.build(
            compression=self._compression,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            is_transactional=True,
        )
        guard = self.verification_guard(producer.producer_id) if producer.guard is None else producer.guard
        return self._stage(records, len(batch), Verification(guard, producer.transaction_version))

    def _stage(self, records: bytes, count: int, verification: Verification = NOT_VERIFIED) -> int:
        offset = self._led().stage_as_coordinator(bytearray(records), verification=verification).base_offset
        self._counts.batches += 1
        self._counts.records += count
        return offset

    def verification_guard(self, producer_id: int) -> int:
        return self._led().log.producers.verification_guard(producer_id)

    def stage_marker(
        self, producer: Producer, *, committed: bool, coordinator_epoch: int, transaction_version: int
    ) -> int:
        self.check()
        marker = build_end_txn_marker(
            committed=committed,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            coordinator_epoch=coordinator_epoch,
            timestamp=self._wall_ms(),
        )
        return self._stage(marker, 1, Verification(transaction_version=transaction_version))
