"""Reads a task as Arrow batches.

The file is read in chunks into one buffer, which is reused, and the batches in it are decoded in bulk; keys and values
are copied once, into Arrow. Nothing is kept between chunks: a batch that a chunk ends in is read again with the next.

Damage is handled in two steps. The bulk decoder only says that a chunk is damaged; then the batches before the damaged
one are decoded and returned, and `onCorrupt` decides what follows. At the end of the log, damage is a torn end.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from ottla.spark.errors import OttlaSparkError
from ottla.spark.log.directory import list_partition
from ottla.spark.log.plan import AbortedRange, LogPiece, LogTask, OnCorrupt, PlanRules, plan_partition
from ottla.spark.log.storage import storage_of
from ottla.spark.log.view import PartitionView
from ottla.spark.notes import warn
from ottla.wire.batch import split_batches
from ottla.wire.columns import Columns, decode_columns
from ottla.wire.fault import WireError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.spark.log.storage import SourceFile
    from ottla.wire.columns import BatchColumns
    from ottla.wire.columns_table import Bools

__all__ = ["CHUNK_BYTES", "ReadRules", "TaskReport", "read_columns"]

CHUNK_BYTES: Final = 4 << 20
_CHUNK_DECOMPRESSED_MAX: Final = 64 << 20
_BATCH_DECOMPRESSED_MAX: Final = 256 << 20
_LENGTH_END: Final = 12


@dataclass(frozen=True)
class ReadRules:
    """How tasks read."""

    on_corrupt: OnCorrupt = "fail"
    fail_on_data_loss: bool = True
    is_committed: bool = False
    include_control: bool = False
    chunk_bytes: int = CHUNK_BYTES
    moves_max: int = 3
    """How often files may be listed again after a broker has replaced them."""


@dataclass
class TaskReport:
    """What a task has read, for the log."""

    records: int = 0
    bytes_read: int = 0
    torn_ends: int = 0
    skipped: int = 0
    """Pieces that were not read to their end because of damage."""
    decode_ms: float = 0.0

    def figures(self, task: LogTask) -> dict[str, object]:
        """The figures, with the partition and the range."""
        first, last = task.pieces[0], task.pieces[-1]
        where = {"task": "ottla-log", "topic": task.topic, "partition": task.partition, "start": first.from_offset}
        return {**where, "until": last.until_offset, **asdict(self), "decode_ms": round(self.decode_ms)}


class _DamageError(Exception):
    """A position at which no valid batch begins."""

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(reason)
        self.position = position
        self.reason = reason


def read_columns(task: LogTask, rules: ReadRules, report: TaskReport) -> Iterator[tuple[Columns, int, int]]:
    """Decoded chunks, each with the range of offsets that counts. Each chunk overwrites the memory of the last."""
    keep = _without(task.aborted) if rules.is_committed and task.aborted else None
    for piece in task.pieces:
        try:
            for columns in _piece_columns(task, piece, rules, keep, report):
                yield columns, piece.from_offset, piece.until_offset
        except _DamageError as damage:
            if not _may_go_on(task, piece, damage, rules, report):
                return


def _may_go_on(task: LogTask, piece: LogPiece, damage: _DamageError, rules: ReadRules, report: TaskReport) -> bool:
    """Whether the task continues with its next piece after damage."""
    where = f"corrupt record batch in {task.uri}/{piece.name} at byte {damage.position}: {damage.reason}"
    if piece.is_log_end:
        report.torn_ends += 1
        warn(f"{where}; it is the end of the log, the rest is skipped")
        return False
    if rules.on_corrupt == "fail":
        raise OttlaSparkError(where) from None
    report.skipped += 1
    warn(f"{where}; skipped because of onCorrupt")
    return rules.on_corrupt == "skipSegment"


def _piece_columns(
    task: LogTask,
    piece: LogPiece,
    rules: ReadRules,
    keep: Callable[[BatchColumns], Bools] | None,
    report: TaskReport,
) -> Iterator[Columns]:
    storage, path = storage_of(task.uri)
    try:
        file = storage.open(f"{path}/{piece.name}")
    except FileNotFoundError:
        yield from _moved_columns(task, piece, rules, report)
        return
    try:
        if file.size() < piece.end:
            # The cleaner has replaced the file: positions have changed, offsets have not.
            yield from _moved_columns(task, piece, rules, report)
        else:
            yield from _Reader(file, piece, rules, keep, report).columns()
    finally:
        file.close()


def _moved_columns(task: LogTask, piece: LogPiece, rules: ReadRules, report: TaskReport) -> Iterator[Columns]:
    """Reads a piece whose file was deleted or replaced: compaction moves records to other files."""
    try:
        view = PartitionView(list_partition(task.uri), "end")
    except FileNotFoundError:
        _lost(task, piece, "the directory was deleted", rules)
        return
    if rules.moves_max == 0:
        _lost(task, piece, "its files change faster than they can be read", rules)
        return
    if not view.files.segments or view.start_offset > piece.from_offset:
        last = min(view.start_offset, piece.until_offset) - 1
        _lost(task, piece, f"offsets {piece.from_offset}..{last} were deleted", rules)
    plan = PlanRules(task_bytes=1 << 62, is_committed=rules.is_committed, is_growing=not piece.is_log_end)
    for moved in plan_partition(view, piece.from_offset, piece.until_offset, plan):
        for columns, _, _ in read_columns(moved, replace(rules, moves_max=rules.moves_max - 1), report):
            yield columns


def _lost(task: LogTask, piece: LogPiece, why: str, rules: ReadRules) -> None:
    text = f"data lost: topic {task.topic} partition {task.partition}: {why} ({task.uri}/{piece.name})"
    if rules.fail_on_data_loss:
        raise OttlaSparkError(text) from None
    warn(text)


class _Reader:
    """The batches of one piece, chunk by chunk."""

    def __init__(
        self,
        file: SourceFile,
        piece: LogPiece,
        rules: ReadRules,
        keep: Callable[[BatchColumns], Bools] | None,
        report: TaskReport,
    ) -> None:
        self._file = file
        self._piece = piece
        self._rules = rules
        self._keep = keep
        self._report = report
        self._buffer = memoryview(bytearray(min(rules.chunk_bytes, piece.end - piece.start)))
        self._last_offset = -1

    def columns(self) -> Iterator[Columns]:
        position = self._piece.start
        while position < self._piece.end:
            chunk = self._chunk(position, len(self._buffer))
            if not _has_whole_batch(chunk):
                chunk = self._chunk(position, self._size_of_batch(chunk, position))
            end = 0
            for at, columns in self._decoded(chunk, position):
                end = at + columns.end_position
                self._report.records += len(columns)
                yield columns
                if int(columns.batches.last_offset[-1]) + 1 >= self._piece.until_offset:
                    self._report.torn_ends += self._piece.is_log_end and position + end < self._piece.end
                    return
            if end == 0:
                raise _DamageError(position, "no batch starts here")
            position += end

    def _chunk(self, position: int, size: int) -> memoryview:
        size = min(size, self._piece.end - position)
        if size > len(self._buffer):
            self._buffer = memoryview(bytearray(size))  # one batch is larger than a chunk; the next ones may be, too
        count = self._file.fill(self._buffer[:size], position)
        self._report.bytes_read += count
        return self._buffer[:count]

    def _size_of_batch(self, chunk: memoryview, position: int) -> int:
        """The size of the batch that begins in the chunk."""
        rest = self._piece.end - position
        if len(chunk) < _LENGTH_END:
            raise _DamageError(position, f"{len(chunk)} bytes are not a batch")
        size = _claimed_size(chunk)
        if size > rest:
            raise _DamageError(position, f"{rest} of the {size} bytes of the batch are there")
        return size

    def _decoded(self, chunk: memoryview, position: int) -> Iterator[tuple[int, Columns]]:
        """The chunk's whole batches, all at once or, if that fails, one by one up to the damaged one."""
        try:
            columns = self._columns(chunk, _CHUNK_DECOMPRESSED_MAX)
        except WireError:
            yield from self._one_by_one(chunk, position)
        else:
            yield 0, columns

    def _one_by_one(self, chunk: memoryview, position: int) -> Iterator[tuple[int, Columns]]:
        at = 0
        try:
            for batch in split_batches(chunk):
                columns = self._columns(chunk[at : at + batch.size_bytes], _BATCH_DECOMPRESSED_MAX)
                yield at, columns
                at += batch.size_bytes
        except WireError as error:
            raise _DamageError(position + at, error.reason) from None

    def _columns(self, chunk: memoryview, decompressed_max: int) -> Columns:
        start = time.perf_counter()
        try:
            columns = decode_columns(
                chunk,
                include_control=self._rules.include_control,
                keep_batches=self._keep,
                max_decompressed_bytes=decompressed_max,
            )
        finally:
            self._report.decode_ms += (time.perf_counter() - start) * 1000
        self._check_order(columns)
        return columns

    def _check_order(self, columns: Columns) -> None:
        """Offsets must increase within a segment and stay below the next one's: checksums do not cover base offsets."""
        bases, lasts = columns.batches.field("base_offset"), columns.batches.last_offset
        before = np.concatenate(([self._last_offset], lasts[:-1]))
        wrong = np.flatnonzero((bases <= before) | (bases >= self._piece.until_offset))
        if len(wrong):
            index = int(wrong[0])
            reason = (
                f"offset {bases[index]} after {before[index]}, in a file that ends before {self._piece.until_offset}"
            )
            raise WireError("RecordBatch.base_offset", None, reason)
        self._last_offset = int(lasts[-1])


def _has_whole_batch(chunk: memoryview) -> bool:
    return len(chunk) >= _LENGTH_END and _claimed_size(chunk) <= len(chunk)


def _claimed_size(chunk: memoryview) -> int:
    return int.from_bytes(chunk[_LENGTH_END - 4 : _LENGTH_END], "big", signed=True) + _LENGTH_END


def _without(aborted: tuple[AbortedRange, ...]) -> Callable[[BatchColumns], Bools]:
    """Returns a mask of the batches that do not belong to aborted transactions."""
    by_producer: dict[int, tuple[list[int], list[int]]] = {}
    for producer_id, first_offset, last_offset in sorted(aborted):
        firsts, lasts = by_producer.setdefault(producer_id, ([], []))
        firsts.append(first_offset)
        lasts.append(last_offset)

    def is_aborted(producer_id: int, base_offset: int) -> bool:
        firsts, lasts = by_producer.get(producer_id, ([], []))
        index = bisect_right(firsts, base_offset) - 1
        return index >= 0 and base_offset <= lasts[index]

    def keep(batches: BatchColumns) -> Bools:
        mask = np.ones(len(batches), np.bool_)
        producers, bases = batches.field("producer_id"), batches.field("base_offset")
        for index in np.flatnonzero(batches.is_transactional & ~batches.is_control).tolist():
            mask[index] = not is_aborted(int(producers[index]), int(bases[index]))
        return mask

    return keep
