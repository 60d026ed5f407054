"""Combining ranges of delivery states, against a table of single offsets."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from ottla.core.share.state.batches import Batch, combine, merge


@st.composite
def batches(draw: st.DrawFn) -> Batch:
    first = draw(st.integers(0, 40))
    return Batch(first, first + draw(st.integers(0, 12)), draw(st.sampled_from((0, 2, 4))), draw(st.integers(1, 3)))


def by_offset(ranges: list[Batch], start_offset: int) -> dict[int, tuple[int, int]]:
    table: dict[int, tuple[int, int]] = {}
    for batch in ranges:
        for offset in range(max(batch.first_offset, start_offset), batch.last_offset + 1):
            table[offset] = max(batch.rank, table.get(offset, batch.rank))
    return table


def assert_in_order(ranges: list[Batch]) -> None:
    for left, right in pairwise(ranges):
        assert left.last_offset < right.first_offset
        assert left.rank != right.rank or left.last_offset + 1 < right.first_offset


@given(st.lists(batches(), max_size=12), st.integers(-1, 30))
def test_combined_ranges_say_the_same_of_every_offset(ranges: list[Batch], start_offset: int) -> None:
    combined = combine(ranges, start_offset)
    assert by_offset(combined, start_offset) == by_offset(ranges, start_offset)
    assert_in_order(combined)


@given(st.lists(batches(), max_size=12), st.lists(batches(), max_size=4), st.integers(-1, 30))
def test_merging_is_combining_all(known: list[Batch], new: list[Batch], start_offset: int) -> None:
    merged = merge(combine(known, -1), new, start_offset)
    assert merged == combine([*known, *new], start_offset)
