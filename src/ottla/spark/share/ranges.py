"""Sets of offsets as ranges, both ends inclusive, ascending and without overlap."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from operator import itemgetter

__all__ = ["Range", "cut", "join", "subtract"]

Range = tuple[int, int]


def join(*sets: Iterable[Range]) -> list[Range]:
    """The union of the sets."""
    joined: list[Range] = []
    for first, last in sorted(each for ranges in sets for each in ranges):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    return joined


def cut(first: int, last: int, by: Sequence[Range]) -> list[tuple[int, int, bool]]:
    """A range, split at the boundaries of a set; each part says whether it is in the set."""
    parts: list[tuple[int, int, bool]] = []
    for index in range(bisect_left(by, first, key=itemgetter(1)), len(by)):
        begin, end = by[index]
        if begin > last:
            break
        if begin > first:
            parts.append((first, begin - 1, False))
        parts.append((max(first, begin), min(last, end), True))
        first = min(last, end) + 1
    if first <= last:
        parts.append((first, last, False))
    return parts


def subtract(ranges: Iterable[Range], by: Iterable[Range]) -> list[Range]:
    """The difference of two sets."""
    sorted_by = join(by)
    return [(begin, end) for first, last in ranges for begin, end, is_in in cut(first, last, sorted_by) if not is_in]
