"""Bounds of topics, partitions, offsets and times, and values of columns, from a query's filters.

The rest need not be read. Filters are returned to Spark, which applies them to every row: a bound may be too wide,
never too narrow. pyspark's filters are distinguished by class name, so that this module works without pyspark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

__all__ = ["EVERYTHING", "Bounds", "bounds_of", "values_of"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)


class Bounds(NamedTuple):
    """Bounds of the records that the filters may accept; None for no bound. Ends are exclusive."""

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    offset_from: int | None = None
    offset_until: int | None = None
    time_from_ms: int | None = None
    time_until_ms: int | None = None

    def has(self, topic: str, partition: int) -> bool:
        return (self.topics is None or topic in self.topics) and (
            self.partitions is None or partition in self.partitions
        )

    def clip(self, start: int, until: int) -> tuple[int, int]:
        """The part of a range of offsets within the bounds; if it is empty, its end may be below its start."""
        start = start if self.offset_from is None else max(start, self.offset_from)
        return start, until if self.offset_until is None else min(until, self.offset_until)


EVERYTHING: Final = Bounds()


def bounds_of(filters: Iterable[Any], prefix: str = "") -> Bounds:
    """The bounds of all filters together. `prefix` is what the names of the columns with bounds begin with."""
    bounds = EVERYTHING
    for column, kind, value in _comparisons(filters):
        narrow = _NARROW.get(column.removeprefix(prefix)) if column.startswith(prefix) else None
        if narrow is not None:
            bounds = narrow(bounds, kind, value)
    return bounds


def values_of(filters: Iterable[Any]) -> dict[str, frozenset[str | int]]:
    """Columns of texts and numbers -> the only values that the filters accept; none of them is null."""
    found: dict[str, frozenset[str | int]] = {}
    for column, kind, value in _comparisons(filters):
        listed = value if kind == "In" else [value] if kind in ("EqualTo", "EqualNullSafe") else None
        if listed is not None and all(isinstance(each, str | int) for each in listed):
            found[column] = frozenset(listed) & found.get(column, frozenset(listed))
    return found


def _comparisons(filters: Iterable[Any]) -> Iterator[tuple[str, str, Any]]:
    """The column, the kind and the value of each filter on a whole column."""
    for each in filters:
        attribute: tuple[str, ...] = getattr(each, "attribute", ())
        if len(attribute) == 1:
            yield attribute[0], type(each).__name__, getattr(each, "value", None)


def _values(kind: str, value: Any) -> frozenset[Any] | None:
    """The only values that a filter accepts."""
    if kind in ("EqualTo", "EqualNullSafe"):
        return frozenset(() if value is None else (value,))
    if kind == "In":
        return frozenset(each for each in value if each is not None)
    return None


def _span(kind: str, value: Any) -> tuple[Any, Any]:
    """The lowest and the highest value that a filter accepts, both inclusive; None for no bound."""
    values = _values(kind, value)
    if values is not None:
        return (min(values), max(values)) if values else (None, None)
    lowest = value if kind in ("GreaterThan", "GreaterThanOrEqual") else None
    highest = value if kind in ("LessThan", "LessThanOrEqual") else None
    return lowest, highest


def _topics(bounds: Bounds, kind: str, value: Any) -> Bounds:
    values = _values(kind, value)
    if values is None:
        return bounds
    return bounds._replace(topics=values if bounds.topics is None else bounds.topics & values)


def _partitions(bounds: Bounds, kind: str, value: Any) -> Bounds:
    values = _values(kind, value)
    if values is None:
        return bounds
    return bounds._replace(partitions=values if bounds.partitions is None else bounds.partitions & values)


def _offsets(bounds: Bounds, kind: str, value: Any) -> Bounds:
    lowest, highest = _span(kind, value)
    start = None if lowest is None else lowest + (kind == "GreaterThan")
    until = None if highest is None else highest + (kind != "LessThan")
    return bounds._replace(
        offset_from=_later(bounds.offset_from, start), offset_until=_earlier(bounds.offset_until, until)
    )


def _times(bounds: Bounds, kind: str, value: Any) -> Bounds:
    lowest, highest = _span(kind, value)
    start = None if lowest is None else (lowest - _EPOCH) // _MILLISECOND
    until = None if highest is None else (highest - _EPOCH) // _MILLISECOND + 1
    return bounds._replace(
        time_from_ms=_later(bounds.time_from_ms, start), time_until_ms=_earlier(bounds.time_until_ms, until)
    )


def _later(one: int | None, other: int | None) -> int | None:
    return max((each for each in (one, other) if each is not None), default=None)


def _earlier(one: int | None, other: int | None) -> int | None:
    return min((each for each in (one, other) if each is not None), default=None)


_NARROW: Final[dict[str, Callable[[Bounds, str, Any], Bounds]]] = {
    "topic": _topics,
    "partition": _partitions,
    "offset": _offsets,
    "timestamp": _times,
}
