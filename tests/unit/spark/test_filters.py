"""What filters say about where records lie. Filters have pyspark's names and fields."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import datasource

from ottla.spark.filters import EVERYTHING, bounds_of, values_of


def attribute(name: str) -> tuple[str, ...]:
    return tuple(name.split("."))


def filtered(kind: str, name: str, value: Any) -> Any:
    return getattr(datasource, kind)(attribute(name), value)


@dataclass
class Unheard:
    attribute: tuple[str, ...]
    value: object


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("EqualTo", 5, (5, 6)),
        ("EqualNullSafe", 5, (5, 6)),
        ("GreaterThan", 5, (6, None)),
        ("GreaterThanOrEqual", 5, (5, None)),
        ("LessThan", 5, (None, 5)),
        ("LessThanOrEqual", 5, (None, 6)),
        ("In", [7, 3, 5], (3, 8)),
        ("In", [None, 4], (4, 5)),
    ],
)
def test_offsets(kind: str, value: Any, expected: tuple[int | None, int | None]):
    bounds = bounds_of([filtered(kind, "offset", value)])
    assert (bounds.offset_from, bounds.offset_until) == expected


def test_filters_narrow_together():
    bounds = bounds_of(
        [
            filtered("GreaterThan", "offset", 5),
            filtered("GreaterThanOrEqual", "offset", 9),
            filtered("LessThan", "offset", 90),
            filtered("In", "partition", [0, 1, 2]),
            filtered("EqualTo", "partition", 1),
            filtered("In", "topic", ["a", "b"]),
        ]
    )
    assert bounds.clip(0, 100) == (9, 90)
    assert bounds.has("a", 1)
    assert not bounds.has("a", 2)
    assert not bounds.has("c", 1)


def test_times_are_milliseconds_that_hold_the_moment():
    moment = datetime(2026, 1, 2, 3, 4, 5, 678_901, UTC)
    ms = 1767323045678
    assert bounds_of([filtered("GreaterThanOrEqual", "timestamp", moment)]).time_from_ms == ms
    assert bounds_of([filtered("LessThan", "timestamp", moment)]).time_until_ms == ms + 1


@pytest.mark.parametrize(
    "one",
    [
        Unheard(("offset",), 5),
        Unheard(("offset", "deep"), 5),
        filtered("EqualTo", "value", b"x"),
        filtered("StringStartsWith", "topic", "x"),
        datasource.IsNotNull(("offset",)),
        datasource.Not(filtered("EqualTo", "offset", 5)),
    ],
)
def test_others_say_nothing(one: Any):
    assert bounds_of([one]) == EVERYTHING


def test_names_of_columns_may_begin_with_something():
    filters = [filtered("EqualTo", "_partition", 1), filtered("EqualTo", "partition", 2)]
    assert bounds_of(filters, "_").partitions == {1}


def test_values_of_columns():
    filters = [
        filtered("EqualTo", "group", "a"),
        filtered("In", "topic", ["x", "y"]),
        filtered("EqualTo", "topic", "y"),
        filtered("GreaterThan", "number", 5),
        filtered("EqualNullSafe", "empty", None),
        filtered("In", "some", ["x", None]),
        filtered("EqualTo", "bytes", bytearray(b"x")),
        datasource.Not(filtered("EqualTo", "other", 5)),
    ]
    assert values_of(filters) == {"group": {"a"}, "topic": {"y"}}


COMPARE = {
    "EqualTo": lambda one, other: one == other,
    "GreaterThan": lambda one, other: one > other,
    "GreaterThanOrEqual": lambda one, other: one >= other,
    "LessThan": lambda one, other: one < other,
    "LessThanOrEqual": lambda one, other: one <= other,
}


@given(st.lists(st.tuples(st.sampled_from(sorted(COMPARE)), st.integers(0, 20)), max_size=4))
def test_no_row_that_passes_is_outside(filters: list[tuple[str, int]]):
    bounds = bounds_of([filtered(kind, "offset", value) for kind, value in filters])
    start, until = bounds.clip(0, 25)
    passing = [offset for offset in range(25) if all(COMPARE[kind](offset, value) for kind, value in filters)]
    assert all(start <= offset < until for offset in passing)
