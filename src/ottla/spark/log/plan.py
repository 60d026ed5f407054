"""Divides ranges of offsets into tasks.

The unit is a segment. One that is larger than a task is split at record batches. Depending on the options, damage ends
the segment or the partition instead of raising an error: then one task reads all of it, because other tasks could not
know that they must stop.

Sizes are those at planning: records that are appended afterwards are not read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from ottla.log.names import LOG_SUFFIX, file_name

if TYPE_CHECKING:
    from ottla.spark.log.segments import Segment
    from ottla.spark.log.view import PartitionView

__all__ = ["DEFAULT_TASK_BYTES", "LogPiece", "LogTask", "OnCorrupt", "PlanRules", "UpTo", "plan_partition"]

OnCorrupt = Literal["fail", "skipSegment", "stopPartition"]
UpTo = Literal["end", "hw"]
"""Where a log ends: with its last whole record batch, or at the high watermark."""
DEFAULT_TASK_BYTES: Final = 128 << 20


class LogPiece(NamedTuple):
    """A run of record batches in one file, and the range of offsets that counts."""

    name: str
    start: int
    end: int
    from_offset: int
    until_offset: int
    is_log_end: bool
    """Whether the log ends with it: then damage is a torn end, not a loss."""


class AbortedRange(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int


@dataclass(frozen=True)
class LogTask:
    """The work of one task; it is sent to the executor."""

    uri: str
    """The partition's directory."""
    topic: str
    topic_id: str | None
    partition: int
    pieces: tuple[LogPiece, ...]
    aborted: tuple[AbortedRange, ...] = ()

    @property
    def size_bytes(self) -> int:
        return sum(piece.end - piece.start for piece in self.pieces)


@dataclass(frozen=True)
class PlanRules:
    """How ranges are divided."""

    task_bytes: int = DEFAULT_TASK_BYTES
    on_corrupt: OnCorrupt = "fail"
    is_committed: bool = False
    whole_partitions: bool = False
    """One task for each partition."""
    may_walk: bool = True
    """Whether all headers of a segment without index may be read in order to cut it."""
    is_growing: bool = False
    """Whether the end was validated before, so that damage below it is not a torn end."""

    @property
    def is_in_order(self) -> bool:
        """Whether one task must read a whole partition."""
        return self.whole_partitions or self.on_corrupt == "stopPartition"


def plan_partition(view: PartitionView, from_offset: int, until_offset: int, rules: PlanRules) -> list[LogTask]:
    """The tasks that read [from, until) of a partition, in the order of offsets."""
    parts: list[list[LogPiece]] = []
    for index in view.segments(from_offset, until_offset):
        with view.segment(index) as segment:
            parts += [[piece] for piece in _pieces(view, index, segment, (from_offset, until_offset), rules)]
    if rules.is_in_order and parts:
        parts = [[piece for part in parts for piece in part]]
    known = view.aborted(from_offset, until_offset) if rules.is_committed and parts else []
    aborted = [AbortedRange(txn.producer_id, txn.first_offset, txn.last_offset) for txn in known]
    files = view.files
    topic, partition = files.topic_partition
    return [
        LogTask(files.uri, topic, files.topic_id, partition, tuple(pieces), tuple(_of(aborted, pieces)))
        for pieces in parts
    ]


def _pieces(
    view: PartitionView, index: int, segment: Segment, asked: tuple[int, int], rules: PlanRules
) -> Iterable[LogPiece]:
    """The pieces of a segment to be read; several if it is large."""
    segments = view.files.segments
    is_last = index + 1 == len(segments)
    from_offset = max(asked[0], segment.base_offset)
    until_offset = asked[1] if is_last else min(asked[1], segments[index + 1].base_offset)
    start = _start(segment, from_offset)
    if is_last and until_offset >= view.valid_end.offset:
        # Read up to the end of the file, so that the task sees whether it is torn.
        end = view.valid_end.position if rules.is_growing else segment.size_bytes
    else:
        end = _end(segment, until_offset, is_whole=not is_last and until_offset == segments[index + 1].base_offset)
    if start is None or start >= end:
        return []
    name = file_name(segment.base_offset, LOG_SUFFIX)
    whole = LogPiece(name, start, end, from_offset, until_offset, is_log_end=is_last and not rules.is_growing)
    must_cut = rules.on_corrupt == "fail" and not rules.whole_partitions and end - start > rules.task_bytes
    return _cut(segment, whole, rules) if must_cut else [whole]


def _start(segment: Segment, from_offset: int) -> int | None:
    if from_offset == segment.base_offset:
        return 0
    found = segment.batch_at(from_offset)
    return None if found is None else found.position


def _end(segment: Segment, until_offset: int, *, is_whole: bool) -> int:
    """The position of the first batch after the range."""
    found = None if is_whole else segment.batch_at(until_offset)
    if found is None:
        return segment.size_bytes
    header = next(segment.headers(found.position))[1]
    return found.position if header.base_offset >= until_offset else found.position + header.size_bytes


def _cut(segment: Segment, whole: LogPiece, rules: PlanRules) -> Iterator[LogPiece]:
    count = -(-(whole.end - whole.start) // rules.task_bytes)
    rest = whole
    for position, base_offset in segment.split_points(count - 1, whole.start, whole.end, may_walk=rules.may_walk):
        if base_offset > rest.from_offset:
            yield rest._replace(end=position, until_offset=base_offset, is_log_end=False)
            rest = rest._replace(start=position, from_offset=base_offset)
    yield rest


def _of(aborted: list[AbortedRange], pieces: list[LogPiece]) -> Iterator[AbortedRange]:
    first, until = pieces[0].from_offset, pieces[-1].until_offset
    return (txn for txn in aborted if txn.first_offset < until and txn.last_offset >= first)
