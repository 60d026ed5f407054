"""The leader epochs of a log, and where each begins: `leader-epoch-checkpoint`.

Entries are (epoch, first offset of that epoch), both strictly rising. One is added when a batch of a newer epoch
arrives, and when this replica becomes leader, even before it has written anything.

Unlike Apache Kafka's, a new entry does not reach the disk at once. It is written before a flush lets the recovery point
pass it, and when the log is closed; what a crash loses of it lies past the recovery point, where recovery finds it in
the batches again. A leader's epoch without batches may be lost, which no other replica can have built upon. So ten
thousand partitions get their leader without ten thousand waits for the disk. Entries that a truncation removed are
removed from the file at once: older epochs may follow in their place, which recovery could not tell.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ottla.log.checkpoint import format_epochs
from ottla.log.disk import replace_file
from ottla.log.files import Directory
from ottla.log.names import LEADER_EPOCH_FILE

__all__ = ["UNDEFINED_EPOCH", "UNDEFINED_OFFSET", "LeaderEpochs"]

UNDEFINED_EPOCH: Final = -1
UNDEFINED_OFFSET: Final = -1


class LeaderEpochs:
    __slots__ = ("_directory", "_entries", "is_dirty")

    def __init__(self, directory: Directory, entries: Iterable[tuple[int, int]] = ()) -> None:
        self._directory = directory
        self._entries: list[tuple[int, int]] = []
        for epoch, start_offset in entries:
            self.assign(epoch, start_offset)
        self.is_dirty = False
        """Whether the file lacks something."""

    @property
    def entries(self) -> tuple[tuple[int, int], ...]:
        return tuple(self._entries)

    @property
    def latest_epoch(self) -> int:
        return self._entries[-1][0] if self._entries else UNDEFINED_EPOCH

    def assign(self, epoch: int, start_offset: int) -> None:
        """Note that an epoch begins at an offset; entries that contradict it go."""
        entries = self._entries
        if entries and entries[-1][0] == epoch and start_offset >= entries[-1][1]:
            return
        while entries and (entries[-1][0] >= epoch or entries[-1][1] >= start_offset):
            entries.pop()
        entries.append((epoch, start_offset))
        self.is_dirty = True

    def observe(self, epoch: int, base_offset: int) -> None:
        """Note a batch that recovery has read.

        Its epoch is assigned if it is newer than all. The batch is right where an entry, left over from a truncation,
        is not: one that says a later epoch had begun before it goes, one that says its own began after it is mended.
        """
        if self._entries and self._entries[-1][0] == epoch and self._entries[-1][1] <= base_offset:
            return
        known = self.epoch_for(base_offset)
        if known == epoch:
            return
        if known > epoch:
            self._entries = [one for one in self._entries if one[0] <= epoch or one[1] > base_offset]
            self.is_dirty = True
        if epoch > self.latest_epoch:
            self.assign(epoch, base_offset)
        elif any(one[0] == epoch and one[1] > base_offset for one in self._entries):
            earlier = [one for one in self._entries if one[0] < epoch and one[1] < base_offset]
            later = [one for one in self._entries if one[0] > epoch]
            self._entries = [*earlier, (epoch, base_offset), *later]
            self.is_dirty = True

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """The largest epoch not above this one, and where it ends; (-1, -1) if that cannot be told."""
        if epoch == UNDEFINED_EPOCH:
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        if epoch == self.latest_epoch:
            return epoch, log_end_offset
        floor = UNDEFINED_EPOCH
        for known, start_offset in self._entries:
            if known > epoch:
                # Older than all we know: what it wrote is gone, so it ends where we begin.
                return (epoch if floor == UNDEFINED_EPOCH else floor), start_offset
            floor = known
        return UNDEFINED_EPOCH, UNDEFINED_OFFSET

    def epoch_for(self, offset: int) -> int:
        """The epoch in which an offset was written; -1 if it is not known."""
        found = UNDEFINED_EPOCH
        for epoch, start_offset in self._entries:
            if start_offset > offset:
                break
            found = epoch
        return found

    def earliest(self) -> tuple[int, int] | None:
        return self._entries[0] if self._entries else None

    def take_over(self, other: LeaderEpochs) -> None:
        """Copy the entries of another log with the same records: batches do not tell epochs without writes."""
        if self._entries != other._entries:
            self._entries = list(other._entries)
            self.is_dirty = True

    def truncate_from_end(self, end_offset: int) -> bool:
        """Drop the epochs that begin at or past an offset; whether there were any."""
        before = len(self._entries)
        while self._entries and self._entries[-1][1] >= end_offset:
            self._entries.pop()
        if len(self._entries) == before:
            return False
        self.is_dirty = True
        return True

    def truncate_from_start(self, start_offset: int) -> None:
        """Let the first epoch begin at an offset, without those that ended before it."""
        kept = [entry for entry in self._entries if entry[1] > start_offset]
        if len(kept) == len(self._entries):
            return
        epoch, old_start_offset = self._entries[len(self._entries) - len(kept) - 1]
        if len(kept) + 1 == len(self._entries) and old_start_offset == start_offset:
            return
        self._entries = [(epoch, start_offset), *kept]
        self.is_dirty = True

    def clear(self) -> None:
        self.is_dirty = self.is_dirty or bool(self._entries)
        self._entries = []

    def write(self) -> None:
        """Write the file and sync it."""
        if self.is_dirty:
            self.is_dirty = False
            disk = self._directory.storage.disk
            replace_file(disk, self._directory.file(LEADER_EPOCH_FILE), format_epochs(self._entries))
