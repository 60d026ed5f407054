"""Acknowledgements that wait to be sent, for one partition.

They are given record by record or for whole ranges, in any order, and leave as the batches of a request: ascending,
without overlap, each with one type for all of its offsets or one type for each of them. An offset may be acknowledged
twice, if the first had to wait and the record was delivered again meanwhile: then the last type counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

__all__ = ["AcknowledgementBatch", "PendingAcknowledgements"]

RUN_MAX: Final = 10
"""Longer runs of one type get a batch of their own; shorter ones beside each other share one, type by type."""


class AcknowledgementBatch(NamedTuple):
    """One batch of a request."""

    first_offset: int
    last_offset: int
    types: tuple[int, ...]
    """One for all offsets, or one for each."""


_Run = tuple[int, int, int]
"""First offset, last offset, type."""


class PendingAcknowledgements:
    """The acknowledgements of one partition that are not sent yet."""

    __slots__ = ("_runs",)

    def __init__(self) -> None:
        self._runs: list[_Run] = []
        """In the order in which they were given."""

    def __bool__(self) -> bool:
        return bool(self._runs)

    def add(self, offset: int, ack_type: int) -> None:
        self.add_range(offset, offset, ack_type)

    def add_range(self, first_offset: int, last_offset: int, ack_type: int) -> None:
        self._runs.append((first_offset, last_offset, ack_type))

    def add_batches(self, batches: Iterable[AcknowledgementBatch]) -> None:
        """Add batches again that could not be sent."""
        for first, last, types in batches:
            if len(types) == 1:
                self.add_range(first, last, types[0])
            else:
                self._runs += [(offset, offset, each) for offset, each in enumerate(types, first)]

    def take(self) -> tuple[AcknowledgementBatch, ...]:
        """Remove all of them, and return them as batches."""
        runs, self._runs = self._runs, []
        return tuple(_packed(_joined(_ascending(runs))))


def _ascending(runs: Sequence[_Run]) -> list[_Run]:
    """The same in the order of offsets, without overlap."""
    ascending = sorted(runs)
    if all(one[1] < other[0] for one, other in pairwise(ascending)):
        return ascending
    last_types = {offset: ack_type for first, last, ack_type in runs for offset in range(first, last + 1)}
    return [(offset, offset, last_types[offset]) for offset in sorted(last_types)]


def _joined(runs: Iterable[_Run]) -> list[_Run]:
    """The same with neighbours of one type made one."""
    joined: list[_Run] = []
    for first, last, ack_type in runs:
        if joined and joined[-1][1] + 1 == first and joined[-1][2] == ack_type:
            joined[-1] = (joined[-1][0], last, ack_type)
        else:
            joined.append((first, last, ack_type))
    return joined


def _packed(runs: Iterable[_Run]) -> Iterator[AcknowledgementBatch]:
    short: list[_Run] = []
    for run in runs:
        if short and (short[-1][1] + 1 != run[0] or _length(run) > RUN_MAX):
            yield _batch(short)
            short = []
        if _length(run) > RUN_MAX:
            yield _batch([run])
        else:
            short.append(run)
    if short:
        yield _batch(short)


def _length(run: _Run) -> int:
    return run[1] - run[0] + 1


def _batch(runs: list[_Run]) -> AcknowledgementBatch:
    first, last = runs[0][0], runs[-1][1]
    if len(runs) == 1:
        return AcknowledgementBatch(first, last, (runs[0][2],))
    return AcknowledgementBatch(first, last, tuple(ack_type for run in runs for ack_type in [run[2]] * _length(run)))
