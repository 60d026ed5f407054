"""The log of one partition: its segments, its offsets, and all operations that change them.

Theory of operation. The log is a list of segments with rising base offsets; the last one, the *active* segment, is
written. Five offsets tell its state::

    log_start_offset   the first one that readers may see; below it lie records that DeleteRecords has removed
    recovery_point     everything below is on the disk for good
    last_stable_offset what readers of committed data see: no transaction below it is undecided
    high_watermark     what readers see: replicated as far as the broker was told
    log_end_offset     what is written

Appending is two steps, so that all requests of one turn of the loop cost one write. *Staging* (`stage_as_leader` and
its kin, in `ottla.log.append`) validates a batch, assigns its offsets and keeps its bytes; a batch that is refused
changes nothing. `write` hands all bytes to the disk at once and moves the log end. Nothing staged is visible or may be
acknowledged before. If the write fails, memory is ahead of the disk and the directory goes offline; a restart recovers.

Reading never touches records: `read` answers with a file, a position and a length.

All of it belongs to one event loop; only `Flush.run` may be called elsewhere. Times come in as arguments. What can take
long is a generator that stops every so often (`truncate_steps`); the caller decides when to go on.
"""

from __future__ import annotations

import bisect
import contextlib
from collections.abc import Callable, Container, Generator, Sequence
from typing import TYPE_CHECKING, Final, TypeVar, TypeVarTuple

from ottla.log import append, read
from ottla.log.checkpoint import format_epochs, format_partition_metadata
from ottla.log.config import LogConfig
from ottla.log.disk import Disk, replace_file
from ottla.log.errors import OffsetOutOfRangeError
from ottla.log.files import Directory, LogStorage
from ottla.log.flush import Flush
from ottla.log.leader_epochs import LeaderEpochs
from ottla.log.names import DELETED_SUFFIX, PARTITION_METADATA_FILE, SWAP_SUFFIX, TopicPartition
from ottla.log.producer_state import Origin, ProducerState, Verification
from ottla.log.rebuild import rebuild_producers
from ottla.log.segment import IndexedBatch, Segment
from ottla.log.steps import finish

if TYPE_CHECKING:
    from ottla.log.append import AppendInfo
    from ottla.log.read import FetchRegion, Isolation, OffsetAndTimestamp
    from ottla.log.txn_index import AbortedTxn

__all__ = ["Partition", "create_partition_directory"]

R = TypeVar("R")
Arguments = TypeVarTuple("Arguments")

# More than this is written at once; a system call takes no more pieces and the memory is wanted back.
_GATHERED_BYTES_MAX: Final = 1 << 20
_GATHERED_PIECES_MAX: Final = 512


def create_partition_directory(disk: Disk, path: str, topic_id: bytes) -> None:
    """Make the directory of a new partition, with `partition.metadata`, before any data.

    Without that file Apache Kafka would take the directory for a stray one and start empty. It waits for the disk, so
    a busy loop calls this in a thread.
    """
    disk.make_directory(path)
    replace_file(disk, f"{path}/{PARTITION_METADATA_FILE}", format_partition_metadata(topic_id))


class Partition:
    """A partition's log. `ottla.log.recovery` makes it from what lies on the disk."""

    __slots__ = (
        "_flush_limit",
        "_gathered",
        "_gathered_batches",
        "_gathered_bytes",
        "_limit",
        "_next_offset",
        "config",
        "cuts",
        "directory",
        "epochs",
        "high_watermark",
        "is_truncating",
        "last_flush_ms",
        "log_end_offset",
        "log_start_offset",
        "producers",
        "recovery_point",
        "segments",
        "topic_id",
        "topic_partition",
        "truncation_count",
    )

    def __init__(
        self,
        directory: Directory,
        topic_partition: TopicPartition,
        topic_id: bytes | None,
        config: LogConfig,
        *,
        segments: list[Segment],
        epochs: LeaderEpochs,
        producers: ProducerState,
        log_start_offset: int,
        log_end_offset: int,
        recovery_point: int,
        now_ms: int,
    ) -> None:
        self.directory = directory
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.config = config
        self.segments = segments
        self.epochs = epochs
        self.producers = producers
        self.log_start_offset = log_start_offset
        self.log_end_offset = log_end_offset
        self.recovery_point = max(recovery_point, log_start_offset)
        self.high_watermark = log_start_offset
        self.last_flush_ms = now_ms
        self.cuts: dict[str, int] = {}
        """Files that keep what recovery has cut, and the offset in the name of each."""
        self.truncation_count = 0
        """How often the log has lost its end."""
        self.is_truncating = False
        """Whether what is known of producers is being rebuilt after that."""
        self._next_offset = log_end_offset
        self._gathered: list[memoryview] = []
        self._gathered_batches: list[IndexedBatch] = []
        self._gathered_bytes = 0
        self._limit: tuple[int, Segment, int] | None = None
        self._flush_limit: int | None = None

    def __repr__(self) -> str:
        return f"Partition({self.topic_partition}, {self.log_start_offset}..{self.log_end_offset})"

    @property
    def storage(self) -> LogStorage:
        return self.directory.storage

    @property
    def active_segment(self) -> Segment:
        return self.segments[-1]

    @property
    def size_bytes(self) -> int:
        return sum(segment.size_bytes for segment in self.segments)

    @property
    def next_offset(self) -> int:
        """The offset that the next staged batch gets."""
        return self._next_offset

    def segment_index(self, offset: int) -> int:
        """The index of the segment in which an offset lies, or would lie; -1 if it is below all of them."""
        return bisect.bisect_right(self.segments, offset, key=lambda segment: segment.base_offset) - 1

    # --- watermarks ---------------------------------------------------------------------------------------------------

    @property
    def last_stable_offset(self) -> int:
        if self.is_truncating:
            return self.log_start_offset  # no transaction is known to have ended
        first_unstable = self.producers.first_unstable_offset
        if first_unstable is None:
            return self.high_watermark
        return min(max(first_unstable, self.log_start_offset), self.high_watermark)

    def update_high_watermark(self, offset: int) -> bool:
        """Move the high watermark, within the log; whether it moved."""
        offset = min(max(offset, self.log_start_offset), self.log_end_offset)
        if offset == self.high_watermark:
            return False
        self.high_watermark = offset
        self.producers.on_high_watermark(offset)
        return True

    def delete_records(self, offset: int) -> int:
        """Let the log start at an offset, or at the high watermark if it is -1; gives where it starts now.

        Nothing is removed from the disk before retention finds whole segments below the start.
        """
        self.write()
        if offset == -1:
            offset = self.high_watermark
        if offset > self.high_watermark or offset < 0:
            raise OffsetOutOfRangeError(
                f"the log cannot start at offset {offset}: its high watermark is {self.high_watermark}"
            )
        self.increment_log_start_offset(offset)
        return self.log_start_offset

    def increment_log_start_offset(self, offset: int) -> bool:
        """Raise the log start, which may not pass the high watermark; whether it moved."""
        if offset <= self.log_start_offset:
            return False
        self.log_start_offset = offset
        self.recovery_point = max(self.recovery_point, offset)
        self.epochs.truncate_from_start(offset)
        self.producers.on_log_start_offset(offset)
        return True

    # --- appending ----------------------------------------------------------------------------------------------------

    def stage_as_leader(
        self,
        records: bytes | bytearray | memoryview,
        leader_epoch: int,
        now_ms: int,
        *,
        verification: Verification = append.NOT_VERIFIED,
    ) -> AppendInfo:
        """Validate a client's batch, assign its offsets and keep it for `write`.

        The buffer is changed, and kept until then.
        """
        return self._staged(append.stage_as_leader, records, leader_epoch, now_ms, verification)

    def append_as_leader(
        self,
        records: bytes | bytearray | memoryview,
        leader_epoch: int,
        now_ms: int,
        *,
        verification: Verification = append.NOT_VERIFIED,
    ) -> AppendInfo:
        """Stage and write."""
        info = self.stage_as_leader(records, leader_epoch, now_ms, verification=verification)
        self.write()
        return info

    def stage_as_coordinator(
        self,
        batch: bytearray,
        leader_epoch: int,
        now_ms: int,
        *,
        verification: Verification = append.NOT_VERIFIED,
    ) -> AppendInfo:
        """Assign offsets to a batch that this node has built itself, and keep it for `write`.

        It may hold what no client may write: transaction markers, and records of a producer without sequence numbers.
        The buffer is changed, and kept until it is written.
        """
        return self._staged(append.stage_as_coordinator, batch, leader_epoch, now_ms, verification)

    def append_as_follower(
        self, records: bytes | bytearray | memoryview, leader_epoch: int, now_ms: int, *, origin: Origin | None = None
    ) -> AppendInfo | None:
        """Write batches as the leader has them; None if there was none to write.

        A batch that is cut off, and those of a later leader than the one that was asked, are left out. With origin
        RAFT_LEADER the batches are this node's own, which has numbered them itself.
        """
        info = self._staged(append.stage_verbatim, records, leader_epoch, now_ms, origin or Origin.REPLICATION)
        self.write()
        return info

    def _staged(self, stage: Callable[[Partition, *Arguments], R], *arguments: *Arguments) -> R:
        """Staging reads and writes files, too: an error of the disk takes the log directory offline."""
        self.storage.check()
        try:
            return stage(self, *arguments)
        except OSError as error:
            raise self.storage.fail(error, f"writing to {self.topic_partition}") from error

    def prepare_segment(
        self, size_bytes: int, max_timestamp: int, first_offset: int, last_offset: int, now_ms: int
    ) -> None:
        """Make sure that an append fits in the active segment, or roll a new one."""
        active = self.segments[-1]
        if self._gathered and active.size_bytes == 0:
            self.write()  # the first batch's timestamp counts
        if active.should_roll(self.config, now_ms, self._gathered_bytes + size_bytes, max_timestamp, last_offset):
            self.roll(now_ms, first_offset)

    def gather(self, data: memoryview, batches: Sequence[IndexedBatch], next_offset: int) -> None:
        """Keep bytes for the next write."""
        self._gathered.append(data)
        self._gathered_batches += batches
        self._gathered_bytes += len(data)
        self._next_offset = next_offset
        if self._gathered_bytes >= _GATHERED_BYTES_MAX or len(self._gathered) >= _GATHERED_PIECES_MAX:
            self.write()

    def write(self) -> None:
        """Write what was staged, with one call."""
        if not self._gathered:
            return
        self.storage.check()
        active = self.segments[-1]
        try:
            active.append(self._gathered, self._gathered_batches, self.config)
        except OSError as error:
            # What was written of it must not be read as a batch later on. If this fails, too, recovery cuts it.
            with contextlib.suppress(OSError):
                active.file.handle().truncate(active.size_bytes)
            raise self.storage.fail(error, f"writing to {active.file.path}") from error
        finally:
            self._gathered = []
            self._gathered_batches = []
            self._gathered_bytes = 0
        self.log_end_offset = self.producers.map_end_offset = self._next_offset

    def roll(self, now_ms: int, expected_next_offset: int = 0) -> Segment:
        """Close the active segment and begin another, whose base is the next offset or a later one."""
        self.write()
        active = self.segments[-1]
        base_offset = max(expected_next_offset, self.log_end_offset)
        try:
            if active.size_bytes == 0 and active.base_offset == base_offset:
                # Nothing to close, and no second segment can have this base: begin it anew.
                active.close()
                self.segments[-1] = Segment.create(self.directory, base_offset, self.config, now_ms)
                return self.segments[-1]
            active.close_indexes()
            for index in (active.offset_index, active.time_index, active.txn_index):
                index.file.close()
            self.producers.map_end_offset = base_offset
            self.producers.take_snapshot(self.log_start_offset, sync=False)
            self.segments.append(Segment.create(self.directory, base_offset, self.config, now_ms))
        except OSError as error:
            raise self.storage.fail(error, f"rolling a segment of {self.topic_partition}") from error
        self.storage.rolled[self] = None
        return self.segments[-1]

    def update_config(self, config: LogConfig) -> None:
        """Act on other settings from now on."""
        self.config = config
        self.active_segment.forget_index_full()

    def become_leader(self, leader_epoch: int) -> None:
        """Note where a new leader's epoch begins, whether or not it ever writes."""
        self.write()
        self.epochs.assign(leader_epoch, self.log_end_offset)

    # --- reading ------------------------------------------------------------------------------------------------------

    def read(
        self,
        offset: int,
        max_bytes: int,
        isolation: Isolation,
        *,
        min_one_batch: bool = False,
        hint: tuple[Segment, int] | None = None,
    ) -> FetchRegion:
        """Where the batches from the one with `offset` on lie, as far as the isolation lets a reader see.

        `hint` is a segment with a position: a batch begins there, and none before it has the offset.
        """
        self.storage.check()
        try:
            return read.read(self, offset, max_bytes, isolation, min_one_batch=min_one_batch, hint=hint)
        except OSError as error:
            raise self.storage.fail(error, f"reading {self.topic_partition}") from error

    def bytes_of(self, region: FetchRegion) -> bytes:
        """What a region that was just read holds."""
        if region.file is None:
            return b""
        try:
            return region.file.handle().read(region.length, region.position)
        except OSError as error:
            raise self.storage.fail(error, f"reading {self.topic_partition}") from error

    def aborted_transactions(self, first_offset: int, end_offset: int) -> list[AbortedTxn]:
        """The aborted transactions that overlap a range."""
        self.storage.check()
        try:
            return read.aborted_transactions(self, first_offset, end_offset)
        except OSError as error:
            raise self.storage.fail(error, f"reading {self.topic_partition}") from error

    def offset_for_timestamp(self, timestamp: int) -> OffsetAndTimestamp | None:
        """The first record that is not older, or what one of the special values of ListOffsets asks for."""
        self.storage.check()
        try:
            return read.offset_for_timestamp(self, timestamp)
        except OSError as error:
            raise self.storage.fail(error, f"reading {self.topic_partition}") from error

    def position_of_limit(self, offset: int) -> tuple[Segment, int]:
        """Segment and position up to which a reader may go who must not see `offset` and what follows it."""
        if offset >= self.log_end_offset:
            return self.segments[-1], self.segments[-1].size_bytes
        if self._limit is None or self._limit[0] != offset:
            segment = self.segments[max(self.segment_index(offset), 0)]
            found = segment.find_batch(offset)
            self._limit = (offset, segment, segment.size_bytes if found is None else found.position)
        return self._limit[1:]

    # --- flushing and closing -----------------------------------------------------------------------------------------

    def prepare_flush(self, *, is_closing: bool = False) -> Flush:
        """Write out what is in memory and note what must be synced, up to the end of the log.

        Of the active segment's indexes that includes the one of aborted transactions only. At the end of its life
        (`is_closing`) it includes all of them and every name: the next start believes all of it.
        """
        assert self._flush_limit is None, "one flush of a partition at a time"
        self.write()
        self.storage.check()
        # Not the one with the recovery point: it may have been flushed while active, and its indexes closed since.
        first = max(self.segment_index(self.recovery_point - 1), 0)
        closed = self.segments[first:] if is_closing else self.segments[first:-1]
        paths = [file.path for segment in closed for file in segment.files()]
        paths += [f"{self.directory.path}/{name}" for name in self.producers.snapshot_names_past(self.recovery_point)]
        epochs = format_epochs(self.epochs.entries) if self.epochs.is_dirty else None
        is_new = is_closing or any(segment.base_offset >= self.recovery_point for segment in self.segments[first:])
        aborted = self.active_segment.txn_index
        try:
            if not aborted.is_flushed:
                aborted.write()
                aborted.is_flushed = is_new = True
                paths.append(aborted.file.path)
            flush = Flush(self, self.log_end_offset, self.active_segment.file, paths, epochs, sync_directory=is_new)
        except OSError as error:
            raise self.storage.fail(error, f"flushing {self.topic_partition}") from error
        self._flush_limit = flush.end_offset
        self.storage.rolled.pop(self, None)
        return flush

    def finish_flush(self, flush: Flush, now_ms: int | None = None) -> bool:
        """Move the recovery point after a flush was run; False, and the directory offline, if it failed."""
        assert self._flush_limit is not None
        end_offset, self._flush_limit = self._flush_limit, None
        flush.release()
        if flush.error is not None:
            self.storage.fail(flush.error, f"flushing {self.topic_partition}")
            return False
        if flush.epochs is not None and flush.epochs == format_epochs(self.epochs.entries):
            self.epochs.is_dirty = False
        self.recovery_point = max(self.recovery_point, end_offset)
        if now_ms is not None:
            self.last_flush_ms = now_ms
        return True

    def flush(self, now_ms: int | None = None) -> None:
        """Flush and wait for it."""
        flush = self.prepare_flush()
        flush.run()
        if not self.finish_flush(flush, now_ms):
            self.storage.check()

    def needs_flush(self, now_ms: int) -> bool:
        """Whether `flush.messages` or `flush.ms` ask for a flush."""
        unflushed = self.log_end_offset - self.recovery_point
        if unflushed <= 0:
            return False
        return unflushed >= self.config.flush_messages or now_ms - self.last_flush_ms >= self.config.flush_ms

    def prepare_close(self) -> Flush:
        """Write the last index entries and the producer snapshot; the flush completes a clean stop."""
        self.write()
        try:
            self.active_segment.close_indexes()
            self.producers.take_snapshot(self.log_start_offset, sync=True)
        except OSError as error:
            raise self.storage.fail(error, f"closing {self.topic_partition}") from error
        return self.prepare_flush(is_closing=True)

    def close(self) -> None:
        """Close cleanly: everything is synced, and the next start has nothing to recover."""
        flush = self.prepare_close()
        flush.run()
        if not self.finish_flush(flush):
            self.storage.check()
        self.close_files()

    def close_files(self) -> None:
        """Close the open files without writing anything."""
        self.storage.rolled.pop(self, None)
        for segment in self.segments:
            segment.close()

    def rename_directory(self, path: str) -> None:
        """Move the whole log, to another name in the same log directory."""
        self.close_files()
        try:
            self.storage.disk.rename(self.directory.path, path)
        except OSError as error:
            raise self.storage.fail(error, f"renaming {self.directory.path}") from error
        self.directory.path = path

    def stand_in_for(self, original: Partition) -> None:
        """Replace a log whose records were all copied here."""
        self.increment_log_start_offset(original.log_start_offset)
        self.epochs.take_over(original.epochs)
        self.producers.take_over(original.producers)
        self.update_high_watermark(original.high_watermark)
        self.update_config(original.config)

    # --- truncating and removing --------------------------------------------------------------------------------------

    def truncate_to(self, offset: int, now_ms: int) -> bool:
        """Drop everything from an offset on; whether there was anything."""
        return finish(self.truncate_steps(offset, now_ms))

    def truncate_steps(self, offset: int, now_ms: int) -> Generator[None, None, bool]:
        """`truncate_to` in steps: the first truncates the log, the others rebuild the producers' state.

        The end is where the batch begins that holds the offset, if that is below it. Until the last step the log must
        not be appended to.
        """
        self.write()
        self.storage.check()
        if offset >= self.log_end_offset:
            if self.epochs.truncate_from_end(self.log_end_offset):
                self._write_epochs()
            return False
        if offset < self.segments[0].base_offset:
            self.truncate_fully(offset, now_ms)
            return True
        had_no_producers = self.producers.is_empty
        self.is_truncating = True
        try:
            kept = self.segment_index(offset) + 1
            self._delete_segments(self.segments[kept:], now_ms)
            self._set_end(self.segments[-1].truncate_to(offset, now_ms))
            self.truncation_count += 1
            self.epochs.truncate_from_end(self.log_end_offset)
            self._write_epochs()
            yield from rebuild_producers(
                self.producers,
                self.segments,
                log_start_offset=self.log_start_offset,
                end_offset=self.log_end_offset,
                now_ms=now_ms,
                expiration_ms=self.config.producer_id_expiration_ms,
                skip_scan=had_no_producers,
            )
            self.producers.on_high_watermark(self.high_watermark)
        except OSError as error:
            raise self.storage.fail(error, f"truncating {self.topic_partition}") from error
        finally:
            self.is_truncating = False
        return True

    def _write_epochs(self) -> None:
        # A flush under way writes the same file; the next one will write it again.
        if self._flush_limit is None:
            self.epochs.write()

    def _set_end(self, offset: int) -> None:
        self._limit = None
        if self._flush_limit is not None:
            self._flush_limit = min(self._flush_limit, offset)  # what follows now is not what is being synced
        self.log_end_offset = self._next_offset = offset
        self.recovery_point = min(self.recovery_point, offset)
        self.log_start_offset = min(self.log_start_offset, offset)
        self.high_watermark = min(self.high_watermark, offset)

    def truncate_fully(self, offset: int, now_ms: int, log_start_offset: int | None = None) -> None:
        """Drop everything and go on at an offset."""
        self.write()
        self.storage.check()
        try:
            self._delete_segments(list(self.segments), now_ms)
            self.segments.append(Segment.create(self.directory, offset, self.config, now_ms))
            self.epochs.clear()
            self._write_epochs()
            self.producers.clear(offset)
            self.producers.delete_snapshots(self.producers.snapshot_offsets)
        except OSError as error:
            raise self.storage.fail(error, f"truncating {self.topic_partition}") from error
        self._set_end(offset)
        self.truncation_count += 1
        self.log_start_offset = offset if log_start_offset is None else log_start_offset
        self.high_watermark = offset

    def delete_oldest_segments(self, count: int, now_ms: int) -> None:
        """Remove whole segments from the beginning; the log then starts at the first that is left, or later."""
        self.write()
        self.storage.check()
        if count >= len(self.segments):
            self.roll(now_ms)
            count = min(count, len(self.segments) - 1)
        if count <= 0:
            return
        try:
            self.increment_log_start_offset(self.segments[count].base_offset)
            self._delete_segments(self.segments[:count], now_ms)
        except OSError as error:
            raise self.storage.fail(error, f"deleting segments of {self.topic_partition}") from error

    def remove_passed_cuts(self, now_ms: int) -> None:
        """Remove what recovery has cut and kept at offsets that the log's start has passed."""
        for name in [name for name, offset in self.cuts.items() if offset < self.log_start_offset]:
            del self.cuts[name]
            self._delete_later(self.directory.file(name), now_ms)

    def _delete_segments(self, segments: list[Segment], now_ms: int, kept_bases: Container[int] = frozenset()) -> None:
        """Take segments out of the log and mark their files for removal, with the producer snapshots at their bases."""
        self._limit = None
        for segment in segments:
            self.segments.remove(segment)
            segment.change_state(DELETED_SUFFIX)
            segment.close()
            for file in segment.files():
                self._delete_later(file.path, now_ms)
            snapshot = None
            if segment.base_offset not in kept_bases:
                snapshot = self.producers.forget_snapshot(segment.base_offset)
            if snapshot is not None:
                path = self.directory.file(snapshot)
                self.storage.disk.rename(path, path + DELETED_SUFFIX)
                self._delete_later(path + DELETED_SUFFIX, now_ms)

    def _delete_later(self, path: str, now_ms: int) -> None:
        self.storage.delete_later(path, now_ms + self.config.file_delete_delay_ms)

    def replace_segments(self, new: Sequence[Segment], old: Sequence[Segment], now_ms: int) -> None:
        """Put segments of state `.cleaned`, whole and synced, in the place of others.

        A crash before the last one is called `.swap` leaves the old ones; after that, the next start completes it.
        """
        self.storage.check()
        ordered = sorted(new, key=lambda segment: segment.base_offset)
        kept_bases = {segment.base_offset for segment in ordered}
        try:
            for segment in reversed(ordered):
                segment.change_state(SWAP_SUFFIX)
            self._delete_segments(list(old), now_ms, kept_bases)
            for segment in ordered:
                segment.change_state("")
                bisect.insort(self.segments, segment, key=lambda one: one.base_offset)
            self.storage.disk.sync_directory(self.directory.path)
        except OSError as error:
            raise self.storage.fail(error, f"replacing segments of {self.topic_partition}") from error
