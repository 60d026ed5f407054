"""Lag as time: for how long the first record that a reader of a log has not processed has been waiting.

It waits since its timestamp, if somebody has read the record. Otherwise it waits since the end of the log passed its
offset, which lies on a straight line between two looks at that end. A reader that has processed everything is not
behind, however old the last record is, and a clock that is behind the producer's makes no lag negative.
"""

from __future__ import annotations

from typing import Any

__all__ = ["lag_ms", "passed_at_ms"]


def lag_ms(records: int | None, waiting_since_ms: float | None, now_ms: float) -> float | None:
    """The lag of a reader with that many records before it; None where it is not known."""
    if records == 0:
        return 0
    return None if waiting_since_ms is None else max(0, now_ms - waiting_since_ms)


def passed_at_ms(offset: Any, before: tuple[Any, Any], after: tuple[Any, Any]) -> Any:
    """When the end of a log passed an offset, from the looks before and after: the time, and the end at that time.

    Numbers give a number, and arrays of numbers an array.
    """
    before_ms, before_end = before
    after_ms, after_end = after
    return before_ms + (offset - before_end) / (after_end - before_end) * (after_ms - before_ms)
