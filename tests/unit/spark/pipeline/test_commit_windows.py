"""Which commits a worker may leave out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from ottla.spark.pipeline.commit_windows import last_of_windows

WINDOW_MS = 10
HOUR_MS = 6 * WINDOW_MS


class Commit(NamedTuple):
    seq: int
    key: str
    ts: int
    has_offset: bool


commits = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3 * HOUR_MS), st.booleans()), min_size=1)


@given(commits)
def test_what_is_left_out_changes_no_window_and_no_hour(rows: list[tuple[str, int, bool]]):
    """Rows of consumer_lag are the last commits of windows that have an offset. States at the end of an hour come from
    the newest commits, whether or not they have one, and the newest times."""
    before = [Commit(number, *row) for number, row in enumerate(rows)]
    after = kept(before)
    set_before, set_after = ([each for each in all_ if each.has_offset] for all_ in (before, after))
    by_time: Callable[[Commit], tuple[int, int]] = lambda each: (each.ts, each.seq)  # noqa: E731
    assert newest(set_after, WINDOW_MS, by_time) == newest(set_before, WINDOW_MS, by_time)
    assert newest(after, HOUR_MS, lambda each: each.seq) == newest(before, HOUR_MS, lambda each: each.seq)
    assert newest(after, HOUR_MS, by_time) == newest(before, HOUR_MS, by_time)
    assert min(each.ts for each in after) == min(each.ts for each in before)
    assert max(each.ts for each in after) == max(each.ts for each in before)


def kept(rows: list[Commit]) -> list[Commit]:
    places, left_out = last_of_windows(*columns(rows), WINDOW_MS)
    assert len(places) + left_out.sum() == len(rows)
    return [rows[place] for place in places]


def columns(rows: list[Commit]) -> tuple[pa.Array, np.ndarray, np.ndarray]:
    keys = pa.array([each.key.encode() for each in rows], pa.binary())
    return keys, np.array([each.ts for each in rows]), np.array([each.has_offset for each in rows])


def newest(rows: Iterable[Commit], window_ms: int, order: Callable[[Commit], object]) -> dict[tuple[str, int], Commit]:
    found: dict[tuple[str, int], Commit] = {}
    for each in sorted(rows, key=order):  # type: ignore[arg-type]
        found[each.key, each.ts // window_ms] = each
    return found


def test_most_commits_of_a_window_are_left_out():
    rows = [Commit(number, "ab"[number % 2], number // 4, True) for number in range(4 * WINDOW_MS * 5)]
    places, left_out = last_of_windows(*columns(rows), WINDOW_MS)
    # The last of both keys in each of five windows, and the first of all.
    assert len(places) == 11
    told = {rows[place].key: int(count) for place, count in zip(places, left_out, strict=True) if count}
    assert told == {"a": 94, "b": 95}
