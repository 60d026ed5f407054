"""The in-flight window of a share group in a partition: ranges of offsets with their state.

An ottla broker reports all of it. Records of `__share_group_state` have less: they do not say which member holds what,
so an available range may be acquired at this moment. Of offsets without a record nothing is known: they may be acquired
for the first time, or not delivered yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from ottla.client import TopicPartition
from ottla.core.share.state.batches import Batch
from ottla.core.share.state.kept import Kept

__all__ = [
    "ACKNOWLEDGED",
    "ACQUIRED",
    "ARCHIVED",
    "ARCHIVING",
    "AVAILABLE",
    "STATES",
    "UNKNOWN",
    "Range",
    "Window",
    "live_windows",
    "stored_window",
]

AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVING, ARCHIVED = range(5)
STATES: Final = {
    AVAILABLE: "AVAILABLE",
    ACQUIRED: "ACQUIRED",
    ACKNOWLEDGED: "ACKNOWLEDGED",
    ARCHIVING: "ARCHIVING",
    ARCHIVED: "ARCHIVED",
}
UNKNOWN: Final = "unknown"


class Range(NamedTuple):
    """A range of offsets with the same state; None for unknown values."""

    first_offset: int
    last_offset: int
    state: str
    delivery_count: int | None
    member_id: str | None = None
    lock_ms: int | None = None
    """The remaining lock time."""

    @property
    def size(self) -> int:
        return self.last_offset - self.first_offset + 1


class Window(NamedTuple):
    """The window of one partition."""

    at: TopicPartition
    start_offset: int | None
    ranges: tuple[Range, ...]
    is_live: bool
    """Whether it comes from a broker; else it comes from records."""
    locks_max: int | None = None
    end_offset: int | None = None
    """The last offset that was acquired or is finished."""
    delivery_limit: int | None = None
    finished: int | None = None
    """How many offsets after the start are finished."""
    written_ms: int | None = None
    """When the last record about it was written."""

    def offsets_in(self, *states: str) -> int | None:
        """How many offsets are in one of these states; None if that is unknown."""
        if not self.is_live and {STATES[ACQUIRED], STATES[AVAILABLE]} & set(states):
            return None
        return sum(each.size for each in self.ranges if each.state in states)


def live_windows(answer: Mapping[str, Any]) -> list[Window]:
    """The windows of a group, from a broker's inspect listener."""
    return [
        Window(
            TopicPartition(each["topic"], each["partition"]),
            each["start_offset"],
            tuple(_live_range(found) for found in each["ranges"]),
            is_live=True,
            locks_max=each["max_record_locks"],
            end_offset=each.get("end_offset"),
            delivery_limit=each.get("delivery_count_limit"),
            finished=each.get("delivery_complete_count"),
        )
        for each in answer["partitions"]
    ]


def _live_range(found: Mapping[str, Any]) -> Range:
    return Range(
        found["first_offset"],
        found["last_offset"],
        found["state"],
        found["delivery_count"],
        found["member_id"],
        found["lock_timeout_ms"],
    )


def stored_window(at: TopicPartition, kept: Kept | None, written_ms: int | None = None) -> Window:
    """The window of a partition, from records."""
    if kept is None or kept.start_offset < 0:
        return Window(at, None, (), is_live=False)
    return Window(
        at,
        kept.start_offset,
        tuple(_filled(kept.start_offset, kept.batches)),
        is_live=False,
        finished=None if kept.delivery_complete_count < 0 else kept.delivery_complete_count,
        written_ms=written_ms,
    )


def _filled(start: int, batches: Iterable[Batch]) -> Iterable[Range]:
    """The batches, with ranges of unknown state between them."""
    for each in batches:
        if each.first_offset > start:
            yield Range(start, each.first_offset - 1, UNKNOWN, None)
        yield Range(each.first_offset, each.last_offset, STATES[each.delivery_state], each.delivery_count)
        start = each.last_offset + 1
