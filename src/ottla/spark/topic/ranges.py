"""Ranges of offsets, and their division into tasks, exactly as Spark's own Kafka source does it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import ceil, floor
from typing import NamedTuple, Protocol, TypeVar

from ottla.client.metadata import TopicPartition

__all__ = ["Range", "join_parts", "split_ranges"]


class _Sized(Protocol):
    @property
    def size(self) -> int: ...


PartT = TypeVar("PartT", bound=_Sized)


class Range(NamedTuple):
    """Offsets from `start` up to `until`, exclusive."""

    at: TopicPartition
    start: int
    until: int

    @property
    def size(self) -> int:
        return self.until - self.start


def split_ranges(
    ranges: Iterable[Range], min_partitions: int | None = None, max_records: int | None = None
) -> list[Range]:
    """The range of each task, in order. Empty ranges are left out; sizes are counted in offsets."""
    wanted = sorted(each for each in ranges if each.size > 0)
    if max_records is not None:
        wanted = [part for each in wanted for part in _equal_parts(each, ceil(each.size / max_records))]
    if min_partitions is None or len(wanted) >= min_partitions:
        return wanted
    return _split_large(wanted, min_partitions)


def _split_large(ranges: list[Range], min_partitions: int) -> list[Range]:
    """Split in proportion to size. Ranges too small for a second part do not count in the proportions of the others."""
    total = sum(each.size for each in ranges)
    small = [each for each in ranges if _part_count(each.size, total, min_partitions) == 1]
    left = total - sum(each.size for each in small)
    parts_left = max(min_partitions - len(small), 1)
    # By partition: if one piece of a partition is small, its other pieces are not split either.
    kept = {each.at for each in small}
    parts = {each: 1 if each.at in kept else _part_count(each.size, left, parts_left) for each in ranges}
    return [part for each in ranges for part in _equal_parts(each, parts[each])]


def _part_count(size: int, total: int, wanted: int) -> int:
    return max(floor(size / total * wanted + 0.5), 1)


def _equal_parts(whole: Range, count: int) -> Iterator[Range]:
    start = whole.start
    for index in range(count):
        end = start + (whole.until - start) // (count - index)
        if end > start:
            yield Range(whole.at, start, end)
        start = end


def join_parts(parts: Iterable[PartT], min_records: int) -> list[tuple[PartT, ...]]:
    """The parts in groups of at least so many offsets, except for the last group. Parts keep their order."""
    joined: list[list[PartT]] = []
    size = min_records
    for each in parts:
        if size >= min_records:
            joined.append([])
            size = 0
        joined[-1].append(each)
        size += each.size
    return [tuple(group) for group in joined]
