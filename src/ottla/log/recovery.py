"""Loads a partition from its files, and recovers it after a crash.

Theory of operation. After a clean stop the end of the log is found behind the last index entry and the producers' state
in the snapshot of that offset; nothing else is read. Otherwise each segment from
the one with the recovery point on is *recovered*: its indexes are emptied, its batches read one after the other and
checked, and indexes, leader epochs and the producers' state built from them as when they were appended. The first batch
that is not whole or whose checksum is wrong ends the log; the file is cut there and later segments go. Sound batches
among what is cut are kept in files of their own (`ottla.log.cuts`). Below the recovery point nothing can be torn,
because a flush had come that far.

A segment whose `.index` is missing or whose `.txnindex` cannot be right is recovered in any case, and so is the last
one if, against what the clean stop promised, it does not end with a whole batch: Apache Kafka appends behind such a
tail, where no reader finds it.

Before all that, what an interrupted compaction or deletion left behind is finished or undone, by the names of files.

Recovery goes in small steps: `load_steps` is a generator that stops at least every hundred batches, with its
progress, and ends with the partition and a report of what was done. `load` takes all steps at once.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Final, NamedTuple, TypeVar

import msgspec

from ottla.log.checkpoint import CheckpointError, parse_epochs, parse_partition_metadata
from ottla.log.config import LogConfig
from ottla.log.cuts import (
    KEPT_BYTES_MAX,
    CutFile,
    SoundBatches,
    choose_name,
    copy_part,
    cut_offset,
    find_sound,
    is_draft,
    surplus,
)
from ottla.log.disk import DiskEntry, File, read_all
from ottla.log.files import Directory, LogStorage
from ottla.log.leader_epochs import LeaderEpochs
from ottla.log.names import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    LEADER_EPOCH_FILE,
    LOG_SUFFIX,
    PARTITION_METADATA_FILE,
    SNAPSHOT_SUFFIX,
    SWAP_SUFFIX,
    TopicPartition,
    file_name,
    parse_file_name,
)
from ottla.log.partition import Partition
from ottla.log.producer_state import ProducerState
from ottla.log.rebuild import BATCHES_PER_STEP, rebuild_producers
from ottla.log.scan import ScanEnd, check_batches
from ottla.log.segment import RELATIVE_OFFSET_MAX, Segment
from ottla.log.steps import finish
from ottla.wire.batch import AnyBatch, BatchView
from ottla.wire.fault import WireError

__all__ = ["Cut", "LoadRequest", "Progress", "RecoveryReport", "load", "load_steps"]

# A snapshot of the quorum that waits for its removal; the quorum looks after it.
_QUORUM_DELETED_SUFFIX: Final = ".checkpoint.deleted"
T = TypeVar("T")


class LoadRequest(NamedTuple):
    """Which partition to load, and what the checkpoints of the log directory say of it."""

    path: str
    topic_partition: TopicPartition
    config: LogConfig
    is_clean: bool
    log_start_offset: int = 0
    recovery_point: int = 0
    before_cut: Callable[[str, int, int, str], None] | None = None
    """Asked before a file is cut: its path, position and offset, the reason. If it raises, the file stays whole."""


class Progress(NamedTuple):
    done_bytes: int
    total_bytes: int


class Cut(NamedTuple):
    """Bytes that recovery cut off the end of a segment."""

    base_offset: int
    position: int
    size_bytes: int
    reason: str


class RecoveryReport(msgspec.Struct):
    """What a load has done. `lines` is the same as text."""

    topic_partition: TopicPartition
    is_clean: bool
    recovered: list[int] = []
    """Base offsets of the segments that were read through."""
    recovered_bytes: int = 0
    cuts: list[Cut] = []
    kept: list[CutFile] = []
    """What keeps the sound batches of cuts and of deleted segments."""
    deleted_segments: list[int] = []
    removed_files: list[str] = []
    faults: list[str] = []
    """Other things that were not as they should be, and are now."""
    log_start_offset: int = 0
    log_end_offset: int = 0

    @property
    def is_eventful(self) -> bool:
        """Whether the log was not as a clean stop leaves it."""
        return bool(self.cuts or self.deleted_segments or self.removed_files or self.faults)

    def lines(self) -> list[str]:
        name = str(self.topic_partition)
        found = [
            f"{name}: segment {cut.base_offset} was truncated at byte {cut.position} ({cut.reason}); {cut.size_bytes} "
            f"bytes are no longer in the log"
            for cut in self.cuts
        ]
        found += [f"{name}: segment {base} lay behind the damage and was removed" for base in self.deleted_segments]
        found += [
            f"{name}: {kept.sound} lay behind the damage; they are no longer in the log, but kept in {kept.path} "
            f"({kept.size_bytes} bytes), which `ottla dump` shows"
            for kept in self.kept
        ]
        found += [f"{name}: {fault}" for fault in self.faults]
        if self.removed_files:
            found.append(f"{name}: {len(self.removed_files)} files of unfinished operations were removed")
        if self.recovered:
            found.append(
                f"{name}: {len(self.recovered)} segments ({self.recovered_bytes} bytes) were checked and their indexes "
                f"built anew; the log goes from offset {self.log_start_offset} to {self.log_end_offset}"
            )
        return found


def load(storage: LogStorage, request: LoadRequest, now_ms: int) -> tuple[Partition, RecoveryReport]:
    """Load a partition without a pause."""
    return finish(load_steps(storage, request, now_ms))


def load_steps(
    storage: LogStorage, request: LoadRequest, now_ms: int
) -> Generator[Progress, None, tuple[Partition, RecoveryReport]]:
    """Load a partition in small steps."""
    storage.check()
    loader = _Loader(storage, request, now_ms)
    try:
        return (yield from loader.load())
    except OSError as error:
        raise storage.fail(error, f"loading {request.path}") from error


class _Loader:
    """The state of one load."""

    def __init__(self, storage: LogStorage, request: LoadRequest, now_ms: int) -> None:
        self.request = request
        self.config = request.config
        self.now_ms = now_ms
        self.directory = Directory(storage, request.path)
        self.disk = storage.disk
        self.report = RecoveryReport(request.topic_partition, request.is_clean)
        self.segments: list[Segment] = []
        self.unsound: set[int] = set()
        self.progress = Progress(0, 0)
        self.old_cuts: list[DiskEntry] = []

    def load(self) -> Generator[Progress, None, tuple[Partition, RecoveryReport]]:
        _finish_swaps(self)
        names = self._load_segments()
        self.epochs = self._load_epochs(names)
        snapshot_offsets = [name.offset for name in map(parse_file_name, names) if name and _is_snapshot(name)]
        self.producers = ProducerState(self.directory, snapshot_offsets)
        yield from self._recover()
        end_offset = yield from self._find_end()
        self.epochs.truncate_from_end(end_offset)
        self.epochs.truncate_from_start(self.request.log_start_offset)
        log_start_offset = max(self.request.log_start_offset, self.segments[0].base_offset)
        yield from self._load_producers(log_start_offset, end_offset)
        self.report.log_start_offset, self.report.log_end_offset = log_start_offset, end_offset
        is_untouched = self.request.is_clean and not self.report.recovered
        partition = Partition(
            self.directory,
            self.request.topic_partition,
            self._load_topic_id(names),
            self.config,
            segments=self.segments,
            epochs=self.epochs,
            producers=self.producers,
            log_start_offset=log_start_offset,
            log_end_offset=end_offset,
            recovery_point=end_offset if is_untouched else min(self.request.recovery_point, end_offset),
            now_ms=self.now_ms,
        )
        partition.cuts = self._make_room()
        partition.remove_passed_cuts(self.now_ms)
        return partition, self.report

    # --- files --------------------------------------------------------------------------------------------------------

    def files(self) -> list[DiskEntry]:
        return [entry for entry in self.disk.list_directory(self.directory.path) if not entry.is_directory]

    def remove(self, name: str) -> None:
        self.disk.unlink(self.directory.file(name))
        self.report.removed_files.append(name)

    def _load_segments(self) -> set[str]:
        """Open the segments; gives the names of all files that stay."""
        files = self.files()
        self.old_cuts = [entry for entry in files if cut_offset(entry.name) is not None]
        sizes = {entry.name: entry.size_bytes for entry in files}
        for name in sorted(sizes):
            parsed = parse_file_name(name)
            if parsed is None or parsed.state or parsed.kind == SNAPSHOT_SUFFIX:
                continue
            if parsed.kind != LOG_SUFFIX:
                if file_name(parsed.offset, LOG_SUFFIX) not in sizes:
                    self.remove(name)
                continue
            segment = Segment(self.directory, parsed.offset, sizes[name], self.config, self.now_ms)
            self.segments.append(segment)
            if file_name(parsed.offset, INDEX_SUFFIX) not in sizes:
                self._distrust(segment, "has no offset index")
            elif not segment.txn_index.is_sound(segment.base_offset):
                self._distrust(segment, "has an index of aborted transactions that cannot be its own")
        return set(sizes).difference(self.report.removed_files)

    def _distrust(self, segment: Segment, fault: str) -> None:
        self.unsound.add(segment.base_offset)
        if self.request.is_clean or segment.base_offset < self.request.recovery_point:
            self.report.faults.append(f"segment {segment.base_offset} {fault}")

    def _load_epochs(self, names: set[str]) -> LeaderEpochs:
        entries: list[tuple[int, int]] = []
        if LEADER_EPOCH_FILE in names:
            entries = self._parse(LEADER_EPOCH_FILE, parse_epochs) or []
        return LeaderEpochs(self.directory, entries)

    def _load_topic_id(self, names: set[str]) -> bytes | None:
        if PARTITION_METADATA_FILE not in names:
            return None
        return self._parse(PARTITION_METADATA_FILE, parse_partition_metadata)

    def _parse(self, name: str, parse: Callable[[bytes], T]) -> T | None:
        try:
            return parse(read_all(self.disk, self.directory.file(name)))
        except CheckpointError as error:
            self.report.faults.append(f"{name} cannot be read: {error}")
            return None

    # --- recovery -----------------------------------------------------------------------------------------------------

    def _first_unflushed(self) -> int:
        """The index of the segment with the recovery point.

        If that is where a segment begins, the one before it may have been flushed while it was active, and closed
        since: its batches are on the disk, the last entries of its indexes perhaps not.
        """
        below = [index for index, one in enumerate(self.segments) if one.base_offset <= self.request.recovery_point]
        first = below[-1] if below else 0
        if first and self.segments[first].base_offset == self.request.recovery_point:
            before = self.segments[first - 1]
            if not before.has_whole_indexes(self.config):
                self.unsound.add(before.base_offset)
        return first

    def _recover(self) -> Generator[Progress, None, None]:
        first = len(self.segments) if self.request.is_clean else self._first_unflushed()
        doubtful = [
            segment
            for index, segment in enumerate(self.segments)
            if index >= first or segment.base_offset in self.unsound
        ]
        self.progress = Progress(0, sum(segment.size_bytes for segment in doubtful))
        for segment in doubtful:
            index = self.segments.index(segment)
            behind = self.segments[index + 1 :] if index >= first else []
            is_cut = yield from self._recover_segment(segment, behind)
            if is_cut and behind:
                return
            if behind and (yield from self._is_gap_before(segment, behind[0])):
                yield from self._discard(behind)
                return

    def _is_gap_before(self, segment: Segment, following: Segment) -> Generator[Progress, None, bool]:
        """Whether batches between a segment and the next one were lost: a power cut may take the end of the first.

        Compaction leaves gaps, too, also in a log that is no longer compacted or was copied from one that is. But it
        leaves them inside of segments as well; so only between segments without holes a gap is taken for a loss.
        """
        end_offset = self.producers.map_end_offset
        if self.config.is_compacted or end_offset == following.base_offset:
            return False
        for each in (segment, following):
            if (yield from self._has_holes(each)):
                return False
        self.report.faults.append(f"offsets {end_offset} to {following.base_offset - 1} are missing before a segment")
        return True

    def _has_holes(self, segment: Segment) -> Generator[Progress, None, bool]:
        """Whether offsets are missing between or in the sound batches of a segment, as compaction leaves them."""
        expected = segment.base_offset
        for item in check_batches(segment.file.handle(), segment.size_bytes):
            if item is None:
                yield self.progress
                continue
            batch = item[1]
            if not isinstance(batch, BatchView) or batch.base_offset != expected:
                return True
            if batch.record_count != batch.last_offset_delta + 1:
                return True
            expected = batch.next_offset
        return False

    def _recover_segment(self, segment: Segment, behind: list[Segment]) -> Generator[Progress, None, bool]:
        """Check a segment and build what follows from it; whether it had to be cut.

        Then the segments behind it go first. After a crash in between, the damage is still there to tell why.
        """
        base_offset, size_bytes = segment.base_offset, segment.size_bytes
        before = [one for one in self.segments if one.base_offset < base_offset]
        if not (before and self.report.recovered and self.report.recovered[-1] == before[-1].base_offset):
            yield from self._rebuild_producers(before, self.request.log_start_offset, base_offset)
        self.producers.map_end_offset = base_offset
        self.producers.take_snapshot(self.request.log_start_offset, sync=True)
        self.report.recovered.append(base_offset)
        self.report.recovered_bytes += size_bytes
        segment.reset_for_recovery()
        handle = segment.file.pin()
        try:
            end = yield from self._check(segment, size_bytes)
            if end.position < size_bytes:
                if self.request.before_cut is not None:
                    self.request.before_cut(segment.file.path, end.position, self.producers.map_end_offset, end.reason)
                yield from self._keep_rest(handle, end.position, size_bytes)
                yield from self._discard(behind)
                handle.truncate(end.position)
                handle.sync()  # or the next power cut brings back what new batches have taken the offsets of
                cut = Cut(base_offset, end.position, size_bytes - end.position, end.reason)
                self.report.cuts.append(cut)
            segment.end_recovery()
        finally:
            segment.file.unpin()
        self.progress = self.progress._replace(done_bytes=self.report.recovered_bytes)
        return end.position < size_bytes

    def _check(self, segment: Segment, size_bytes: int) -> Generator[Progress, None, ScanEnd]:
        """Read the batches of a segment as long as they are sound."""
        done_before = self.progress.done_bytes
        walk = check_batches(segment.file.handle(), size_bytes)
        last_offset = segment.base_offset - 1
        count = 0
        while True:
            try:
                item = next(walk)
            except StopIteration as stop:
                end: ScanEnd = stop.value
                return end
            if item is not None:
                position, batch = item
                first_offset = batch.base_offset if isinstance(batch, BatchView) else batch.last_offset
                if not last_offset < first_offset <= batch.last_offset <= segment.base_offset + RELATIVE_OFFSET_MAX:
                    return ScanEnd(position, f"offset {first_offset} follows {last_offset}")
                last_offset = batch.last_offset
                self._take(segment, batch)
                count += 1
            if item is None or count % BATCHES_PER_STEP == 0:
                yield Progress(done_before + segment.size_bytes, self.progress.total_bytes)

    def _take(self, segment: Segment, batch: AnyBatch) -> None:
        """Let a sound batch into the indexes, the epochs and the producers' state."""
        segment.add_to_indexes([(batch.last_offset, batch.max_timestamp, batch.size_bytes)], self.config)
        if isinstance(batch, BatchView):
            if batch.partition_leader_epoch >= 0:
                self.epochs.observe(batch.partition_leader_epoch, batch.base_offset)
            if batch.has_producer_id:
                self._take_producer(segment, batch)
        self.producers.map_end_offset = batch.last_offset + 1

    def _take_producer(self, segment: Segment, batch: BatchView) -> None:
        try:
            aborted = self.producers.add(batch, batch.base_offset, batch.max_timestamp)
        except WireError as error:
            self.report.faults.append(f"the control batch at offset {batch.base_offset} is no marker: {error.reason}")
            return
        if aborted is not None:
            segment.txn_index.append(aborted)

    def _discard(self, segments: list[Segment]) -> Generator[Progress, None, None]:
        for segment in segments:
            self.segments.remove(segment)
            if not (yield from self._keep_segment(segment)):
                segment.change_state(DELETED_SUFFIX)
                segment.close()
                for file in segment.files():
                    due_at_ms = self.now_ms + self.config.file_delete_delay_ms
                    self.directory.storage.delete_later(file.path, due_at_ms)
            self.report.deleted_segments.append(segment.base_offset)
        if segments:
            self.disk.sync_directory(self.directory.path)  # for the same reason

    # --- what is cut --------------------------------------------------------------------------------------------------

    def _find_sound(self, file: File, position: int, end: int) -> Generator[Progress, None, SoundBatches]:
        steps = find_sound(file, position, end, self.request.log_start_offset)
        while True:
            try:
                next(steps)
            except StopIteration as stop:
                sound: SoundBatches = stop.value
                return sound
            yield self.progress

    def _keep_rest(self, file: File, position: int, end: int) -> Generator[Progress, None, None]:
        """Copy what is about to be cut off a segment, if it is worth it."""
        sound = yield from self._find_sound(file, position, end)
        if not sound.is_worth_keeping:
            return
        size_bytes = end - position
        path = self._cut_path(self.producers.map_end_offset, file, position, size_bytes)
        if not self.disk.exists(path):
            for _ in copy_part(self.disk, path, file, position, size_bytes):
                yield self.progress
        self.report.kept.append(CutFile(path, size_bytes, sound))

    def _keep_segment(self, segment: Segment) -> Generator[Progress, None, bool]:
        """Take a whole segment out of the log without its indexes, if it is worth keeping; whether it was."""
        size_bytes = segment.size_bytes
        handle = segment.file.pin()
        try:
            sound = yield from self._find_sound(handle, 0, size_bytes)
            if not sound.is_worth_keeping:
                return False
            path = self._cut_path(segment.base_offset, handle, 0, size_bytes)
        finally:
            segment.file.unpin()
        segment.close()
        segment.file.rename(path.rpartition("/")[2])
        self.disk.set_modified(path, self.now_ms)  # the newest cuts stay longest
        for index in segment.files()[1:]:
            if index.exists():
                self.disk.unlink(index.path)
        self.report.kept.append(CutFile(path, size_bytes, sound))
        return True

    def _cut_path(self, offset: int, file: File, position: int, size_bytes: int) -> str:
        # What lies below the log's start is gone from the log, but not what was cut with it.
        offset = max(offset, self.request.log_start_offset)
        name = choose_name(self.disk, self.directory.path, offset, file, position, size_bytes)
        return self.directory.file(name)

    def _make_room(self) -> dict[str, int]:
        """Remove old cuts that are too much; gives name and offset of the others."""
        new = {kept.path.rpartition("/")[2]: kept for kept in self.report.kept}
        entries = [entry for entry in self.old_cuts if entry.name not in new]
        entries += [DiskEntry(name, False, kept.size_bytes, self.now_ms) for name, kept in new.items()]
        for entry in surplus(entries, new):
            self.disk.unlink(self.directory.file(entry.name))
            entries.remove(entry)
            self.report.faults.append(
                f"{entry.name} with {entry.size_bytes} bytes that an earlier recovery had cut was removed: together "
                f"such files may have {KEPT_BYTES_MAX} bytes"
            )
        return {entry.name: cut_offset(entry.name) or 0 for entry in entries}

    # --- the end of the log, and the producers ------------------------------------------------------------------------

    def _find_end(self) -> Generator[Progress, None, int]:
        """The log end offset; there is a segment afterwards."""
        log_start_offset = self.request.log_start_offset
        if self.segments:
            end_offset, position = self.segments[-1].next_offset()
            if position < self.segments[-1].size_bytes:
                # Said to be clean, and is not.
                yield from self._recover_segment(self.segments[-1], [])
                end_offset = self.segments[-1].next_offset()[0]
            if end_offset >= log_start_offset:
                return end_offset
            self.report.faults.append(
                f"the log ends at offset {end_offset}, below its start {log_start_offset}: it restarts there"
            )
            yield from self._discard(list(self.segments))
            self.epochs.clear()
            self.producers.clear(log_start_offset)
            self.producers.delete_snapshots(self.producers.snapshot_offsets)
        self.segments.append(Segment.create(self.directory, log_start_offset, self.config, self.now_ms))
        return log_start_offset

    def _load_producers(self, log_start_offset: int, end_offset: int) -> Generator[Progress, None, None]:
        self.producers.delete_stray_snapshots([segment.base_offset for segment in self.segments])
        may_assume_empty = self.request.is_clean and not self.report.recovered
        yield from self._rebuild_producers(
            self.segments, log_start_offset, end_offset, may_assume_empty=may_assume_empty
        )
        self.producers.remove_expired(self.now_ms, self.config.producer_id_expiration_ms)

    def _rebuild_producers(
        self, segments: list[Segment], log_start_offset: int, end_offset: int, *, may_assume_empty: bool = False
    ) -> Generator[Progress, None, None]:
        steps = rebuild_producers(
            self.producers,
            segments,
            log_start_offset=log_start_offset,
            end_offset=end_offset,
            now_ms=self.now_ms,
            expiration_ms=self.config.producer_id_expiration_ms,
            may_assume_empty=may_assume_empty,
        )
        while True:
            try:
                next(steps)
            except StopIteration as stop:
                self.report.faults += stop.value
                return
            yield self.progress


# --- unfinished work --------------------------------------------------------------------------------------------------


def _is_snapshot(name: tuple[int, str, str]) -> bool:
    return name[1:] == (SNAPSHOT_SUFFIX, "")


def _finish_swaps(loader: _Loader) -> None:
    """Remove what was on its way out, and finish or undo a replacement of segments that was interrupted.

    New segments are first `.cleaned`, then, from the last to the first, `.swap`. If any `.cleaned` is left, the swap
    files from its offset on are not complete, and the old segments still are.
    """
    names = {entry.name for entry in loader.files()}
    for name in list(names):
        is_deleted = name.endswith(DELETED_SUFFIX) and not name.endswith(_QUORUM_DELETED_SUFFIX)
        if is_deleted or is_draft(name):
            loader.remove(name)
            names.discard(name)
    cleaned = {
        name: parsed.offset for name in names if (parsed := parse_file_name(name)) and parsed.state == CLEANED_SUFFIX
    }
    swap = {name: parsed.offset for name in names if (parsed := parse_file_name(name)) and parsed.state == SWAP_SUFFIX}
    if not cleaned and not swap:
        return
    lowest_cleaned = min(cleaned.values(), default=None)
    for name, offset in list(swap.items()):
        if lowest_cleaned is not None and offset >= lowest_cleaned:
            loader.remove(name)
            del swap[name]
    for name in cleaned:
        loader.remove(name)
    _complete_swap(loader, swap, names)


def _complete_swap(loader: _Loader, swap: dict[str, int], names: set[str]) -> None:
    ranges = [
        _swap_range(loader, name, offset) for name, offset in swap.items() if name.endswith(LOG_SUFFIX + SWAP_SUFFIX)
    ]
    if ranges:
        low, high = min(start for start, _ in ranges), max(end for _, end in ranges)
        for name in names:
            parsed = parse_file_name(name)
            if parsed is not None and not parsed.state and low <= parsed.offset < high:
                loader.remove(name)
    for name in swap:
        final = name.removesuffix(SWAP_SUFFIX)
        loader.disk.rename(loader.directory.file(name), loader.directory.file(final))
        loader.report.faults.append(f"{final} was put in its place: a compaction had not come to its end")
    loader.disk.sync_directory(loader.directory.path)


def _swap_range(loader: _Loader, name: str, base_offset: int) -> tuple[int, int]:
    """The offsets that a segment waiting to be put in place covers."""
    size_bytes = next(entry.size_bytes for entry in loader.files() if entry.name == name)
    segment = Segment(loader.directory, base_offset, size_bytes, loader.config, loader.now_ms, state=SWAP_SUFFIX)
    end_offset = segment.next_offset()[0]
    segment.close()
    return base_offset, end_offset
