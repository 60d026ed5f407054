"""A metadata log in memory, and what of it is on disk.

`VirtualLog` is what a node sees while it lives. `LogDisk` keeps what the node does to it as a list of operations, and a
sync makes them last. A machine that loses its power keeps what was synced and, at random, the first of the other
operations; the one after those may be torn, so that only some of its batches are there.
"""

from __future__ import annotations

import random
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from ottla.core.quorum.events import EpochEnd, SnapshotId
from ottla.wire.batch import BatchView, split_batches

__all__ = ["Batch", "VirtualLog"]


class Batch(NamedTuple):
    """A batch of the log."""

    base_offset: int
    end_offset: int
    epoch: int
    data: bytes


def batches_of(data: bytes | memoryview) -> list[Batch]:
    return [
        Batch(each.base_offset, each.next_offset, each.partition_leader_epoch, bytes(each.data))
        for each in split_batches(data)
        if isinstance(each, BatchView)
    ]


class VirtualLog:
    """Batches and snapshots; what `ottla.core.quorum.events.ReplicatedLog` asks for."""

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self.snapshots: dict[SnapshotId, bytes] = {}
        self.start_offset = 0
        self._epochs: list[tuple[int, int]] = []
        """Epoch, and its first offset."""

    def copy(self) -> VirtualLog:
        other = VirtualLog()
        other.batches = list(self.batches)
        other.snapshots = dict(self.snapshots)
        other.start_offset = self.start_offset
        other._epochs = list(self._epochs)
        return other

    @property
    def end_offset(self) -> int:
        return self.batches[-1].end_offset if self.batches else self.start_offset

    @property
    def last_epoch(self) -> int:
        latest = self.latest_snapshot
        return max(self._epochs[-1][0] if self._epochs else 0, 0 if latest is None else latest.epoch)

    @property
    def latest_snapshot(self) -> SnapshotId | None:
        return max(self.snapshots, default=None)

    @property
    def earliest_snapshot(self) -> SnapshotId | None:
        return min(self.snapshots, default=None)

    def end_offset_for_epoch(self, epoch: int) -> EpochEnd:
        at = bisect_right(self._epochs, (epoch, 1 << 62))
        if at == 0:
            first = self.earliest_snapshot
            return EpochEnd(0 if first is None else first.epoch, self.start_offset)
        end_offset = self._epochs[at][1] if at < len(self._epochs) else self.end_offset
        return EpochEnd(self._epochs[at - 1][0], end_offset)

    def read(self, offset: int, max_bytes: int) -> bytes:
        found: list[bytes] = []
        size = 0
        for index in range(self._index(offset), len(self.batches)):
            data = self.batches[index].data
            if found and size + len(data) > max_bytes:
                break
            found.append(data)
            size += len(data)
        return b"".join(found)

    def _index(self, offset: int) -> int:
        """Where the batch is that begins at an offset, or the first one behind it."""
        return bisect_left(self.batches, offset, key=lambda batch: batch.base_offset)

    def is_batch_boundary(self, offset: int) -> bool:
        return offset == self.end_offset or self.batches[self._index(offset)].base_offset == offset

    def epoch_at(self, offset: int) -> int | None:
        """The epoch of the record at an offset; None if it is not in the log."""
        at = bisect_right(self.batches, offset, key=lambda batch: batch.base_offset) - 1
        return self.batches[at].epoch if at >= 0 and offset < self.batches[at].end_offset else None

    def snapshot_size(self, snapshot_id: SnapshotId) -> int | None:
        data = self.snapshots.get(snapshot_id)
        return None if data is None else len(data)

    def read_snapshot(self, snapshot_id: SnapshotId, position: int, max_bytes: int) -> bytes:
        return self.snapshots[snapshot_id][position : position + max_bytes]

    # --- writing ------------------------------------------------------------------------------------------------------

    def append(self, batches: Sequence[Batch]) -> None:
        for batch in batches:
            assert batch.base_offset == self.end_offset, f"{batch.base_offset} does not follow {self.end_offset}"
            if not self._epochs or self._epochs[-1][0] < batch.epoch:
                self._epochs.append((batch.epoch, batch.base_offset))
            self.batches.append(batch)

    def truncate(self, end_offset: int) -> None:
        del self.batches[self._index(end_offset) :]
        self._epochs = [entry for entry in self._epochs if entry[1] < end_offset]

    def add_snapshot(self, snapshot_id: SnapshotId, data: bytes) -> None:
        self.snapshots[snapshot_id] = data

    def drop_below(self, snapshot_id: SnapshotId) -> None:
        """Let the log begin at a snapshot."""
        self.start_offset = snapshot_id.end_offset
        del self.batches[: self._index(snapshot_id.end_offset)]
        self.snapshots = {each: data for each, data in self.snapshots.items() if each >= snapshot_id}
        later = [entry for entry in self._epochs if entry[1] > self.start_offset]
        at_start = [entry[0] for entry in self._epochs if entry[1] <= self.start_offset]
        self._epochs = ([(at_start[-1], self.start_offset)] if at_start and self.batches else []) + later
        if not self.batches:
            self._epochs = []

    def replace(self, snapshot_id: SnapshotId, data: bytes) -> None:
        """A snapshot takes the place of everything."""
        self.batches, self._epochs = [], []
        self.snapshots = {snapshot_id: data}
        self.start_offset = snapshot_id.end_offset


class LogDisk:
    """The log of a machine: the one in memory, what is synced of it, and what lies between."""

    def __init__(self) -> None:
        self.log = VirtualLog()
        self.synced = VirtualLog()
        self._unsynced: list[tuple[str, tuple[object, ...]]] = []

    def do(self, operation: str, *arguments: object) -> None:
        """Change the log, by the name of a method of VirtualLog."""
        getattr(self.log, operation)(*arguments)
        self._unsynced.append((operation, arguments))

    def begin_sync(self) -> int:
        """How many operations a sync that begins now will cover."""
        return len(self._unsynced)

    def finish_sync(self, count: int) -> None:
        for operation, arguments in self._unsynced[:count]:
            getattr(self.synced, operation)(*arguments)
        del self._unsynced[:count]

    def lose_power(self, chance: random.Random) -> None:
        """Only what was synced is left for certain."""
        count = chance.randint(0, len(self._unsynced))
        torn = self._unsynced[count : count + 1]
        self.finish_sync(count)
        if torn and torn[0][0] == "append":
            batches = torn[0][1][0]
            assert isinstance(batches, list)
            self.synced.append(batches[: chance.randint(0, len(batches) - 1)])
        self._unsynced.clear()
        self.log = self.synced.copy()
