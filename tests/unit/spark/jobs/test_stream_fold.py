"""A history that is folded step by step changes tables until they have the rows of one run over all of it."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.spark.jobs.folds.fold import Fold, RecordRow
from ottla.spark.jobs.params import Params
from ottla.spark.jobs.stream_fold import ALL_OF_GROUP, Change, GroupFact, advance_fold, row_key
from ottla.spark.jobs.stream_history import GROUP, FoldKey, HistoryRow
from ottla.spark.jobs.tables import GROUP_FACTS, GROUP_TIMELINE, REBALANCES, STABILITY, TABLES, TASK_MOVEMENT, Table
from tests.unit.spark.jobs.histories import Script, group_facts, listen, scenario_texts

PARAMS = Params(lateness_ms=5_000)
KEY = FoldKey(GROUP, "c", "g")
Rows = dict[tuple[str, int, tuple[Any, ...]], dict[str, Any]]
"""Table, hour and key -> cells."""
NAMES = (
    "classic/session_expires", "consumer/static_steps_away", "consumer/revocation_never_confirmed",
    "consumer/delete_group", "share/describe", "share/session_expires", "streams/third_member_joins",
    "streams/warmup_before_a_task_moves", "streams/static_member_returns", "streams/source_topic_deleted",
)  # fmt: skip


@cache
def records(name: str) -> tuple[RecordRow, ...]:
    """The records of a scenario. Many are of the same time, as if the coordinator had written them together."""
    return tuple(listen(scenario_texts()[name], ticks_ms=300).found["g"])


@cache
def samples(name: str) -> tuple[HistoryRow, ...]:
    """What an observer would have seen of a scenario."""
    facts = group_facts("g", records(name))
    return tuple(
        HistoryRow(1, -1, ts, number, ts, fact.kind, None, None, msgspec.json.encode(fact))
        for number, (ts, fact) in enumerate(facts)
    )


def record_rows(found: tuple[RecordRow, ...]) -> list[HistoryRow]:
    return [
        HistoryRow(0, each.partition, each.offset, 0, each.timestamp, each.type, None, each.key, each.value)
        for each in found
    ]


def apply(changes: list[Change], rows: Rows) -> None:
    """What the writer of tables does."""
    for change in changes:
        if change.table == ALL_OF_GROUP:
            assert tuple(msgspec.msgpack.decode(change.key)) == ("c", "g")
            for place in [place for place, row in rows.items() if row["source"] == "samples"]:
                del rows[place]
            continue
        if change.table == GROUP_FACTS.name:
            take_facts(change, rows)
            continue
        place = (change.table, change.hour, tuple(msgspec.msgpack.decode(change.key)))
        if change.body is None:
            rows.pop(place, None)
        else:
            names = [each for each in TABLES[change.table].names if each != "run_date"]
            rows[place] = dict(zip(names, msgspec.msgpack.decode(change.body), strict=True))


def take_facts(change: Change, rows: Rows) -> None:
    """The next facts about a group replace those that are open."""
    for place in [place for place, row in rows.items() if place[0] == GROUP_FACTS.name and row["is_open"]]:
        del rows[place]
    for each in msgspec.msgpack.decode(change.body or b"", type=list[GroupFact]):
        rows[GROUP_FACTS.name, 0, (each.number,)] = {"source": "records", **each._asdict()}


def in_steps(steps: list[list[HistoryRow]], params: Params = PARAMS) -> Rows:
    """The rows after all steps. Each step is taken twice from the same state, as Spark repeats a batch."""
    rows: Rows = {}
    kept: bytes | None = None
    newest_ms = 0
    for step in steps:
        if not step:
            continue
        newest_ms = max(newest_ms, *(each.ts for each in step))
        first = advance_fold(KEY, kept, step, newest_ms - params.lateness_ms, params)
        again = advance_fold(KEY, kept, reversed(step), newest_ms - params.lateness_ms, params)
        assert first == again
        kept = first[0]
        for _ in range(2):
            apply(first[1], rows)
    for place in rows:
        rows[place].pop("is_open", None)
    return rows


def at_once(found: list[HistoryRow], params: Params = PARAMS) -> Rows:
    """The rows of a run."""
    fold = Fold(params, facts_of="g")
    for each in sorted(found):
        if each.rank == 0:
            fold.take_records([(each.log_partition, each.place, each.ts, each.type, each.key or b"", each.value)])
        else:
            fold.take_sample(each.ts, each.type, each.value)
    rows: Rows = {}
    out = fold.end()
    of_tables: list[tuple[Table, list[Any]]] = [
        (GROUP_TIMELINE, [*out.events]), (REBALANCES, [*out.rebalances]),
        (STABILITY, [*out.windows]), (TASK_MOVEMENT, [*out.movements]),
    ]  # fmt: skip
    for table, made in of_tables:
        for row in made:
            told = {name: getattr(row, name) for name in row.__struct_fields__}
            cells = {"cluster": "c", "group": "g", "source": fold.source, **told}
            cells = {name: cells.get(name) for name in table.names if name != "run_date"}
            place = (table.name, cells[table.event_time] // 3_600_000, tuple(cells[name] for name in row_key(table)))
            assert place not in rows, "a key stands for one row"
            rows[place] = cells
    for number, (ts, fact) in enumerate(out.facts):
        told = {"number": number, "ts": ts, "kind": fact.kind, "body": msgspec.json.encode(fact)}
        rows[GROUP_FACTS.name, 0, (number,)] = {"source": "records", **told}
    return rows


@pytest.mark.parametrize("name", NAMES)
def test_records_one_by_one(name: str) -> None:
    rows = record_rows(records(name))
    assert in_steps([[each] for each in rows]) == at_once(rows)


@settings(max_examples=60, deadline=None)
@given(name=st.sampled_from(NAMES), data=st.data())
def test_records_in_any_steps_some_of_them_twice(name: str, data: st.DataObject) -> None:
    rows = record_rows(records(name))
    cuts = sorted(data.draw(st.sets(st.integers(1, len(rows)), max_size=12)) | {len(rows)})
    steps, start = [], 0
    for end in cuts:
        again = data.draw(st.integers(0, 3))
        steps.append(rows[max(0, start - again) : end])
        start = end
    assert in_steps(steps) == at_once(rows)


@settings(max_examples=60, deadline=None)
@given(name=st.sampled_from(NAMES), data=st.data())
def test_samples_that_come_in_any_order_within_the_lateness(name: str, data: st.DataObject) -> None:
    rows = list(samples(name))
    delays = data.draw(st.lists(st.integers(0, PARAMS.lateness_ms), min_size=len(rows), max_size=len(rows)))
    arrivals = sorted(zip(rows, delays, strict=True), key=lambda each: each[0].ts + each[1])
    arrived = [row for row, _ in arrivals]
    cuts = sorted(data.draw(st.sets(st.integers(1, len(rows)), max_size=12)) | {len(rows)})
    again = data.draw(st.integers(0, 2))
    steps = [arrived[max(0, start - again) : end] for start, end in zip([0, *cuts], cuts, strict=False)]
    assert in_steps(steps) == at_once(rows)


@pytest.mark.parametrize("name", NAMES)
def test_when_records_come_nothing_of_the_samples_stays(name: str) -> None:
    told, written = list(samples(name)), record_rows(records(name))
    middle = len(told) // 2
    steps = [told[:middle], told[middle:], written[:5], told[-2:], written[5:]]
    assert in_steps(steps) == at_once(written)


def test_a_row_that_was_told_too_early_is_deleted() -> None:
    """A member whose assignment is written in two steps of one moment is not stable in between."""
    script = Script()
    script.at(0).member("a").epoch(1).target(1).current("a", 1, 0, 1)
    script.at(10).member("b").epoch(2).target(2).current("a", 2, 0).current("b", 2, 1)
    rows = record_rows(tuple(script.rows))
    deleted = 0
    kept: bytes | None = None
    for each in rows:
        kept, changes = advance_fold(KEY, kept, [each], 0, PARAMS)
        deleted += sum(change.body is None for change in changes)
    assert deleted, "the group was not settled between two records of one time"
    assert in_steps([[each] for each in rows]) == at_once(rows)
