"""However a history is cut, doubled or torn, the folds over groups stay what they are."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.spark.jobs.folds.fold import Fold, RecordRow, fold
from ottla.spark.jobs.folds.rows import Event, Out, Row
from ottla.spark.jobs.params import Params
from tests.unit.spark.jobs.histories import group_facts, listen, scenario_texts

Table = dict[tuple[object, ...], Any]


@cache
def histories() -> list[tuple[str, tuple[RecordRow, ...]]]:
    """What our coordinator wrote in every scenario, in which a second passes with each write."""
    return [
        (f"{name}:{group}", tuple(rows))
        for name, text in scenario_texts().items()
        for group, rows in listen(text).found.items()
        if len(rows) > 3
    ]


@st.composite
def history(draw: st.DrawFn) -> list[RecordRow]:
    _, rows = draw(st.sampled_from(histories()))
    return list(rows)


def table(*rows: Row) -> Table:
    """The newest row of each key; without changes of state that were taken back."""
    newest = {row.key: row for row in rows}
    return {
        key: msgspec.to_builtins(row)
        for key, row in newest.items()
        if not (isinstance(row, Event) and row.event == "state_changed" and row.old == row.new)
    }


def whole(rows: list[RecordRow]) -> Table:
    return table(*fold(None, rows)[1].rows())


@settings(max_examples=300, deadline=None)
@given(history(), st.data())
def test_cuts_do_not_matter(rows: list[RecordRow], data: st.DataObject) -> None:
    places = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=6), label="cuts"))
    kept, found = None, []
    for start, end in zip([0, *places], [*places, len(rows)], strict=True):
        kept, out = fold(kept, rows[start:end])
        found += out.rows()

    assert table(*found) == whole(rows)


@settings(max_examples=200, deadline=None)
@given(history(), st.data())
def test_facts_are_the_same_however_a_history_is_cut(rows: list[RecordRow], data: st.DataObject) -> None:
    places = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=6), label="cuts"))
    kept, found, out = None, [], Out()
    for start, end in zip([0, *places], [*places, len(rows)], strict=True):
        kept, out = fold(kept, rows[start:end], facts_of="g")
        found += out.facts

    assert found + out.open_facts == group_facts("g", rows)


@settings(max_examples=60, deadline=None)
@given(history())
def test_cuts_everywhere_do_not_matter(rows: list[RecordRow]) -> None:
    kept, found = None, []
    for row in rows:
        kept, out = fold(kept, [row])
        found += out.rows()

    assert table(*found) == whole(rows)


@settings(max_examples=100, deadline=None)
@given(history(), st.data())
def test_rows_that_come_again_change_nothing(rows: list[RecordRow], data: st.DataObject) -> None:
    cut = data.draw(st.integers(1, len(rows)), label="cut")
    again = data.draw(st.integers(0, cut), label="again from")
    kept, first = fold(None, rows[:cut])
    _, second = fold(kept, rows[again:])

    assert table(*first.rows(), *second.rows()) == whole(rows)
    assert {key for key in table(*first.rows()) if key[0] == "task_movement"} <= set(whole(rows))


@settings(max_examples=100, deadline=None)
@given(history())
def test_reading_in_one_go_gives_the_same_rows(rows: list[RecordRow]) -> None:
    reader = Fold(Params())
    found = []
    for row in rows:
        reader.take_records([row])
        found += reader.rows().rows()
    found += reader.end().rows()

    assert table(*found) == whole(rows)
    assert len(found) == len({row.key for row in found}), "each row is told once"


@settings(max_examples=300, deadline=None)
@given(history(), st.data())
def test_holes_are_lived_with(rows: list[RecordRow], data: st.DataObject) -> None:
    kept_ones = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)), label="kept")
    torn = [row for row, is_kept in zip(rows, kept_ones, strict=True) if is_kept]

    _, out = fold(None, torn)

    assert out.faults == []
    for each in out.rebalances:
        assert each.ended_by in ("converged", "superseded", "emptied", "open")
        assert (each.ended is None) == (each.ended_by == "open")
        assert each.members_before is None or each.members_before >= 0
        assert each.duration_ms is None or each.duration_ms >= 0
    for window in out.windows:
        assert window.converged_share is None or 0 <= window.converged_share <= 1


@settings(max_examples=100, deadline=None)
@given(history(), st.data())
def test_what_cannot_be_read_is_said_and_passed_over(rows: list[RecordRow], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(rows) - 1), label="place")
    junk = st.sampled_from([b"", b"\0", b"\0\0", b"\0\3", b"\0\0\0\0\0", b"\x7f\xff", b"\xff" * 20])
    part = data.draw(st.sampled_from(["key", "value", "type"]))
    rows[place] = rows[place]._replace(**{part: "Unknown" if part == "type" else data.draw(junk)})

    _, out = fold(None, rows)
    group_facts("g", rows)

    assert len(out.faults) <= 1
    assert out.events
