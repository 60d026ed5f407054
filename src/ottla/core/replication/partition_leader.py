"""What the leader of a partition knows of its followers: their progress, the in-sync replicas, the high watermark.

The in-sync replicas are changed by the controller, on the leader's request (AlterPartition), one change at a time.
Until it is answered nobody knows whether a change has been made, so the high watermark waits for the larger of both
sets, and `min.insync.replicas` counts the committed one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from typing import Final

import msgspec

from ottla.wire.errors import ErrorCode

__all__ = ["AlterOutcome", "Follower", "InSyncChange", "PartitionLeader"]

UNKNOWN: Final = -1
_REVERTING: Final = frozenset({ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA})
"""The change was not made, and is not wanted any more."""
_OUTDATED: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NEW_LEADER_ELECTED,
    }
)
"""The controller knows better; the metadata log will say what."""

IsEligible = Callable[[int, int], bool]
"""Whether a broker, in the epoch that it fetches with, may join: it is registered so, not fenced, not shutting down."""


class Follower(msgspec.Struct):
    """One follower. Offsets are -1 before it has fetched from this leader."""

    end_offset: int = UNKNOWN
    log_start_offset: int = UNKNOWN
    broker_epoch: int = UNKNOWN
    last_fetch_ms: int = 0
    last_caught_up_ms: int = 0
    leader_end_offset: int = UNKNOWN
    """The end of the leader's log at its last fetch."""

    def fetched(self, offset: int, leader_end_offset: int, now_ms: int) -> None:
        """A fetch that reaches the end was caught up now; one that reaches the end of the last fetch was so then."""
        if offset >= leader_end_offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, now_ms)
        elif offset >= self.leader_end_offset > UNKNOWN:
            self.last_caught_up_ms = max(self.last_caught_up_ms, self.last_fetch_ms)
        self.end_offset, self.last_fetch_ms, self.leader_end_offset = offset, now_ms, leader_end_offset

    def is_caught_up(self, leader_end_offset: int, now_ms: int, lag_max_ms: int) -> bool:
        return self.end_offset == leader_end_offset or now_ms - self.last_caught_up_ms <= lag_max_ms


class InSyncChange(msgspec.Struct, frozen=True):
    """What the controller is asked for."""

    isr: tuple[int, ...]
    broker_epochs: tuple[int, ...]
    """In which each of them has fetched: a broker that has registered anew since may have lost what it had."""
    leader_epoch: int
    partition_epoch: int


class AlterOutcome(Enum):
    """What follows from the controller's answer."""

    SETTLED = "settled"
    WAIT_FOR_METADATA = "wait for metadata"
    RETRY = "retry"


class PartitionLeader:
    """The state of one leader epoch."""

    __slots__ = (
        "_is_eligible",
        "_lag_max_ms",
        "_node_id",
        "epoch_start_offset",
        "followers",
        "isr",
        "leader_epoch",
        "partition_epoch",
        "pending",
    )

    def __init__(
        self,
        node_id: int,
        replicas: Iterable[int],
        isr: tuple[int, ...],
        *,
        leader_epoch: int,
        partition_epoch: int,
        epoch_start_offset: int,
        now_ms: int,
        lag_max_ms: int,
        is_eligible: IsEligible,
    ) -> None:
        self._node_id = node_id
        self.epoch_start_offset = epoch_start_offset
        """Where the log ended when this node became leader."""
        self._lag_max_ms = lag_max_ms
        self._is_eligible = is_eligible
        self.leader_epoch = leader_epoch
        self.partition_epoch = partition_epoch
        self.isr = isr
        """As the controller has committed it."""
        self.pending: InSyncChange | None = None
        """What the controller was asked for."""
        self.followers = {
            each: Follower(last_caught_up_ms=now_ms if each in isr else 0) for each in replicas if each != node_id
        }

    # --- what happens -------------------------------------------------------------------------------------------------

    def fetched(
        self,
        replica_id: int,
        offset: int,
        *,
        log_start_offset: int,
        broker_epoch: int,
        end_offset: int,
        now_ms: int,
    ) -> None:
        """A follower has everything below an offset; the leader's own log ends at `end_offset`."""
        follower = self.followers[replica_id]
        follower.fetched(offset, end_offset, now_ms)
        follower.log_start_offset = log_start_offset
        follower.broker_epoch = broker_epoch

    def was_caught_up(self, replica_id: int, at_ms: int) -> None:
        """A follower that had the whole log has fetched at this time, and nobody has looked at this partition then."""
        follower = self.followers.get(replica_id)
        if follower is not None:
            follower.last_fetch_ms = max(follower.last_fetch_ms, at_ms)
            follower.last_caught_up_ms = max(follower.last_caught_up_ms, at_ms)

    def follow(self, replicas: Iterable[int], isr: tuple[int, ...], partition_epoch: int, now_ms: int) -> None:
        """The metadata log tells of the partition in the same leader epoch. What it knows already is passed over."""
        if partition_epoch <= self.partition_epoch:
            return
        self._commit(isr, partition_epoch)
        wanted = [each for each in replicas if each != self._node_id]
        self.followers = {
            each: self.followers.get(each) or Follower(last_caught_up_ms=now_ms if each in isr else 0)
            for each in wanted
        }

    def _commit(self, isr: tuple[int, ...], partition_epoch: int) -> None:
        self.isr, self.partition_epoch, self.pending = isr, partition_epoch, None

    # --- the in-sync replicas -----------------------------------------------------------------------------------------

    @property
    def maximal_isr(self) -> frozenset[int]:
        """All that may be in sync, while nobody knows whether a change was made."""
        return frozenset(self.isr).union(() if self.pending is None else self.pending.isr)

    def is_under_min_isr(self, min_insync_replicas: int) -> bool:
        return len(self.isr) < self._effective(min_insync_replicas)

    def has_enough_replicas(self, min_insync_replicas: int) -> bool:
        """Whether what has reached the high watermark was written to enough of them."""
        return len(self.maximal_isr) >= self._effective(min_insync_replicas)

    def _effective(self, min_insync_replicas: int) -> int:
        return min(min_insync_replicas, len(self.followers) + 1)

    def expand(self, replica_id: int, high_watermark: int) -> InSyncChange | None:
        """Ask for a follower to be in sync that has come as far as the high watermark, and into this epoch."""
        follower = self.followers[replica_id]
        is_far_enough = follower.end_offset >= max(high_watermark, self.epoch_start_offset)
        if self.pending is not None or replica_id in self.isr or not is_far_enough:
            return None
        if not self._is_eligible(replica_id, follower.broker_epoch):
            return None
        return self._ask((*self.isr, replica_id))

    def shrink(self, end_offset: int, now_ms: int) -> InSyncChange | None:
        """Ask for those to be out of sync that have not caught up for too long."""
        if self.pending is not None:
            return None
        kept = tuple(each for each in self.isr if self._is_in_sync(each, end_offset, now_ms))
        return None if kept == self.isr else self._ask(kept)

    def _is_in_sync(self, replica_id: int, end_offset: int, now_ms: int) -> bool:
        follower = self.followers.get(replica_id)
        return follower is None or follower.is_caught_up(end_offset, now_ms, self._lag_max_ms)

    def _ask(self, isr: tuple[int, ...]) -> InSyncChange:
        epochs = tuple(self.followers[each].broker_epoch if each in self.followers else UNKNOWN for each in isr)
        self.pending = InSyncChange(isr, epochs, self.leader_epoch, self.partition_epoch)
        return self.pending

    def altered(
        self, change: InSyncChange, error_code: int, isr: tuple[int, ...], leader_epoch: int, partition_epoch: int
    ) -> AlterOutcome:
        """The controller has answered a change. The metadata log may have told of the same, or of more, before; then
        another one may have been asked for."""
        if self.pending is not change:
            return AlterOutcome.SETTLED
        if not error_code:
            if leader_epoch != self.leader_epoch or partition_epoch < self.partition_epoch:
                return AlterOutcome.WAIT_FOR_METADATA
            self._commit(isr, partition_epoch)
            return AlterOutcome.SETTLED
        if error_code in _REVERTING:
            self.pending = None
            return AlterOutcome.SETTLED
        return AlterOutcome.WAIT_FOR_METADATA if error_code in _OUTDATED else AlterOutcome.RETRY

    # --- the high watermark -------------------------------------------------------------------------------------------

    def high_watermark(self, current: int, end_offset: int, min_insync_replicas: int, now_ms: int) -> int:
        """What all replicas have that are in sync, or will soon be. It never falls, and stands under the minimum."""
        if self.is_under_min_isr(min_insync_replicas):
            return current
        reached = end_offset
        for replica_id, follower in self.followers.items():
            if follower.end_offset < reached and self._counts(replica_id, follower, end_offset, now_ms):
                reached = follower.end_offset
        return max(current, reached)

    def _counts(self, replica_id: int, follower: Follower, end_offset: int, now_ms: int) -> bool:
        """Whether a follower is waited for: it may be in sync, or is about to become so."""
        if replica_id in self.isr or (self.pending is not None and replica_id in self.pending.isr):
            return True
        is_caught_up = follower.is_caught_up(end_offset, now_ms, self._lag_max_ms)
        return is_caught_up and self._is_eligible(replica_id, follower.broker_epoch)

    def low_watermark(self, log_start_offset: int, is_alive: Callable[[int], bool]) -> int:
        """Below which nobody who is alive has records any more: DeleteRecords is done there."""
        starts = [each.log_start_offset for number, each in self.followers.items() if is_alive(number)]
        return min([log_start_offset, *starts])
