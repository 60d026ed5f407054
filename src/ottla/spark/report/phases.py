"""Start-up, shutdown, or trouble: which rebalances belong to a group that starts or stops as a whole.

A group starts up from the time at which its first member joins, as long as members join with no long pause between
them and none leaves. It shuts down when its members leave one after another, until nobody is left. What is left over
happened to a running group.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

from ottla.spark.jobs.folds.tracker import LEFT
from ottla.spark.report.material import Key
from ottla.spark.report.rows import Rows

__all__ = ["PHASES", "RUNNING", "STARTING", "STOPPING", "Phases"]

RUNNING: Final = "running"
STARTING: Final = "starting"
STOPPING: Final = "stopping"
PHASES: Final = (RUNNING, STARTING, STOPPING)
PAUSE_MS: Final = 10_000
"""Members that join or leave further apart do not start or stop together."""
_COLUMNS: Final = (
    "cluster", "group", "started", "group_epoch", "trigger", "members_before", "members_after",
)  # fmt: skip
_UNKNOWN: Final = -1


class Rebalance(NamedTuple):
    started: int
    epoch: int
    is_leave: int
    before: int
    after: int


Test = Callable[[Rebalance], bool]


class Phases:
    """When each group started up and shut down."""

    def __init__(self, rebalances: Rows) -> None:
        found: dict[Key, array[int]] = {}
        for row in rebalances.each(_COLUMNS):
            found.setdefault((row["cluster"], row["group"]), array("q")).extend(_numbers(row))
        self._spans = {key: _spans(each) for key, each in found.items()}

    def of(self, key: Key, started: int, epoch: int | None) -> str:
        """The phase of the rebalance that started then."""
        spans = self._spans.get(key, [])
        place = (started, _known(epoch))
        at = bisect_right(spans, place, key=lambda span: span.first) - 1
        return spans[at].phase if at >= 0 and place <= spans[at].last else RUNNING


class Span(NamedTuple):
    """Rebalances of one phase, from the first to the last, each by its time and its epoch."""

    first: tuple[int, int]
    last: tuple[int, int]
    phase: str


def _numbers(row: dict[str, Any]) -> Rebalance:
    sizes = _known(row["members_before"]), _known(row["members_after"])
    return Rebalance(row["started"], _known(row["group_epoch"]), row["trigger"] == LEFT, *sizes)


def _known(value: int | None) -> int:
    return _UNKNOWN if value is None else value


def _spans(numbers: array[int]) -> list[Span]:
    width = len(Rebalance._fields)
    rebalances = sorted(Rebalance(*numbers[at : at + width]) for at in range(0, len(numbers), width))
    startups = _chains(rebalances, begins=lambda each: each.before == 0, goes_on=lambda each: not each.is_leave)
    # Backwards, because only the end shows that everybody left.
    shutdowns = _chains(rebalances[::-1], begins=lambda each: each.after == 0, goes_on=lambda each: bool(each.is_leave))
    found = [Span(each[0][:2], each[-1][:2], STARTING) for each in startups]
    return sorted(found + [Span(each[-1][:2], each[0][:2], STOPPING) for each in shutdowns])


def _chains(rebalances: Iterable[Rebalance], *, begins: Test, goes_on: Test) -> Iterator[list[Rebalance]]:
    """Neighbours without a long pause between them, from one that begins a chain to the last that goes on with it."""
    chain: list[Rebalance] = []
    for each in rebalances:
        if chain and not (goes_on(each) and abs(each.started - chain[-1].started) <= PAUSE_MS):
            yield chain
            chain = []
        if chain or (begins(each) and goes_on(each)):
            chain.append(each)
    if chain:
        yield chain
