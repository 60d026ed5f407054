"""A replica over a partition of `ottla.log`, and functions that read a log back and compact it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from typing import cast

from ottla.broker.coordinators.loader import load_steps
from ottla.broker.coordinators.replay import Replay
from ottla.core.coordinator.contract import Core
from ottla.log.append import AppendInfo
from ottla.log.cleaner import cleanable, compact
from ottla.log.partition import Partition
from ottla.log.producer_state import Verification
from ottla.testing.clock import VirtualClock
from ottla.wire.batch import BatchView, read_header
from ottla.wire.errors import ErrorCode
from ottla.wire.keyed import KeyedRecord
from ottla.wire.reject import Reject

__all__ = ["VirtualReplica", "compact_fully", "compact_live", "read_log", "replay_partition"]


class VirtualReplica:
    """The replica of a `ReplicaWriter`. `appended` is called with every batch; appends can be made to fail."""

    is_leader = True
    is_offline = False
    has_log = True
    leading = None

    def __init__(
        self, partition: Partition, leader_epoch: int, clock: VirtualClock, appended: Callable[[BatchView], None]
    ) -> None:
        self.log = partition
        self.leader_epoch = leader_epoch
        self.refusals: deque[ErrorCode] = deque()
        """The errors of the next appends."""
        self._clock = clock
        self._appended = appended

    @property
    def high_watermark(self) -> int:
        return self.log.high_watermark

    def stage_as_coordinator(self, batch: bytearray, *, verification: Verification) -> AppendInfo:
        if self.refusals:
            raise Reject(self.refusals.popleft())
        now_ms = self._clock.wall_ms()
        info = self.log.stage_as_coordinator(batch, self.leader_epoch, now_ms, verification=verification)
        self._appended(read_header(bytes(batch)))
        return info


def replay_partition(core: Core, partition: Partition) -> list[str]:
    """Let a new core replay a log; returns the errors, of which our own logs have none."""
    replay = Replay(core, partition.topic_partition.topic)
    for _ in load_steps(partition, replay):
        pass
    return sorted(replay.faults)


def read_log(partition: Partition) -> list[KeyedRecord]:
    """All records of a log, committed or not."""
    listener = _Listener()
    replay_partition(cast(Core, listener), partition)
    return listener.records


class _Listener:
    """A core that only collects the records that it replays."""

    def __init__(self) -> None:
        self.records: list[KeyedRecord] = []

    def replay(self, record: KeyedRecord, offset: int, producer_id: int, producer_epoch: int) -> None:
        self.records.append(record)

    def replay_marker(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        pass


def compact_fully(partition: Partition, now_ms: int) -> None:
    """Compact until nothing is left to remove: the second run removes expired tombstones."""
    partition.update_high_watermark(partition.log_end_offset)
    partition.roll(now_ms)
    for run in range(2):
        at_ms = now_ms + run * (partition.config.delete_retention_ms + 1)
        _run_to_end(compact(partition, cleanable(partition, None, at_ms), at_ms))


def compact_live(partition: Partition, now_ms: int) -> bool:
    """Close the active segment and run the cleaner; returns whether there was anything to clean."""
    partition.roll(now_ms)
    work = cleanable(partition, None, now_ms)
    if work.end_offset <= work.first_dirty_offset:
        return False
    _run_to_end(compact(partition, work, now_ms))
    return True


def _run_to_end(steps: Generator[None, None, object]) -> None:
    for _ in steps:
        pass
