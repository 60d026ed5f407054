"""Acknowledgements that wait to be sent, for one partition.

They are given record by record or for whole ranges, in any order, and leave as the batches of a request: ascending,
without overlap, each with one type for all of its offsets or one type for each of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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

    __slots__ = ("_runs", "_singles")

    def __init__(self) -> None:
        self._singles: dict[int, int] = {}
        self._runs: list[_Run] = []

    def __bool__(self) -> bool:
        return bool(self._singles or self._runs)

    def add(self, offset: int, ack_type: int) -> None:
        self._singles[offset] = ack_type

    def add_range(self, first_offset: int, last_offset: int, ack_type: int) -> None:
        self._runs.append((first_offset, last_offset, ack_type))

    def add_batches(self, batches: Iterable[AcknowledgementBatch]) -> None:
        """Add batches again that could not be sent."""
        for first, last, types in batches:
            if len(types) == 1:
                self.add_range(first, last, types[0])
            else:
                self._singles |= zip(range(first, last + 1), types, strict=True)

    def take(self) -> tuple[AcknowledgementBatch, ...]:
        """Remove all of them, and return them as batches."""
        runs = sorted([*self._runs, *((offset, offset, ack_type) for offset, ack_type in self._singles.items())])
        self._runs, self._singles = [], {}
        return tuple(_packed(_joined(runs)))


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
