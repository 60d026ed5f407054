"""Folds over windows whose rows come in steps, some late, some twice: the rows of tables are those of one run."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.spark.jobs.ordered_fold import OrderedFold, TimedSample, WindowFold, advance
from ottla.spark.jobs.quorum_fold import QuorumFold
from ottla.spark.jobs.rule_fold import RECORD_RANK, SAMPLE_RANK, FactRow, RuleFold
from ottla.spark.jobs.share_counters import ShareCounters
from ottla.spark.jobs.share_fold import ShareLimits
from ottla.spark.jobs.share_partition import OFFSETS, SAMPLED_STATE, SharePartition, ShareRow
from ottla.wire.keyed import encode_framed
from ottla.wire.types.share_state import (
    ShareSnapshotValue,
    ShareSnapshotValueStateBatch,
    ShareUpdateValue,
    ShareUpdateValueStateBatch,
)
from tests.unit.spark.jobs.histories import Script, group_facts

LATENESS = 20_000
WINDOW = 10_000
Rows = dict[tuple[Any, ...], Any]


def in_steps(rows: list[Any], arrivals: list[int], cuts: set[int], make: Callable[[], WindowFold[Any]]) -> Rows:
    """The rows of the table after all steps. Rows arrive in the order of their arrivals; each step has its last rows in
    common with the step before, and is done twice, as Spark repeats a batch."""
    arrived = [row for _, row in sorted(zip(arrivals, rows, strict=True), key=lambda each: each[0])]
    table: Rows = {}
    kept: bytes | None = None
    newest_ms = start = 0
    for end in sorted(cuts | {len(arrived)}):
        step = arrived[max(0, start - 1) : end]
        newest_ms = max(newest_ms, *(row.ts for row in step)) if step else newest_ms
        for _ in range(2):
            found = advance(kept, step, newest_ms - LATENESS, make)
            table |= found.changed
            for key in found.deleted:
                table.pop(key, None)
        kept, start = found.kept, end
    return table


def at_once(rows: list[Any], fold: WindowFold[Any]) -> Rows:
    for order, row in fold.arranged(dict.fromkeys(rows)):
        fold.take(order, row)
    return dict(fold.rows(is_all=True))


def arrivals(rows: list[Any], data: st.DataObject) -> list[int]:
    """When each row arrives: late, but not too late."""
    delays = data.draw(st.lists(st.integers(0, LATENESS), min_size=len(rows), max_size=len(rows)))
    return [row.ts + delay for row, delay in zip(rows, delays, strict=True)]


def cuts(rows: list[Any], data: st.DataObject) -> set[int]:
    return data.draw(st.sets(st.integers(1, max(1, len(rows))), max_size=15))


times = st.lists(st.integers(0, 9_000), min_size=1, max_size=40).map(
    lambda gaps: [sum(gaps[: at + 1]) for at in range(len(gaps))]
)


# --- the quorum -------------------------------------------------------------------------------------------------------


def quorum_row(seq: int, ts: int, leader: int, epoch: int, behind: int) -> TimedSample:
    replicas = [
        {"id": number, "log_end": 100 - behind * number, "last_fetch_ts": ts - 5 * number, "last_caught_up_ts": ts - 9}
        for number in (1, 2)
    ]
    return TimedSample(ts, seq, msgspec.json.encode({"leader": leader, "leader_epoch": epoch, "replicas": replicas}))


@settings(max_examples=100, deadline=None)
@given(at=times, data=st.data())
def test_the_quorum(at: list[int], data: st.DataObject) -> None:
    rows = [
        quorum_row(seq, ts, data.draw(st.sampled_from([-1, 1, 2])), seq // 4, data.draw(st.integers(0, 9)))
        for seq, ts in enumerate(at)
    ]
    found = in_steps(rows, arrivals(rows, data), cuts(rows, data), lambda: QuorumFold(WINDOW))
    assert found == at_once(rows, QuorumFold(WINDOW))


# --- what brokers counted ---------------------------------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(at=times, data=st.data())
def test_counters_of_brokers(at: list[int], data: st.DataObject) -> None:
    rows = []
    for seq, ts in enumerate(at):
        counts = {name: data.draw(st.integers(0, 50)) for name in ("delivered", "rejected", "lock_expiries", "lock_ms")}
        rows.append(TimedSample(ts, seq, msgspec.json.encode({"node": seq % 2, **counts})))
    found = in_steps(rows, arrivals(rows, data), cuts(rows, data), lambda: ShareCounters(WINDOW))
    assert found == at_once(rows, ShareCounters(WINDOW))


# --- share partitions -------------------------------------------------------------------------------------------------


def make_share() -> SharePartition:
    return SharePartition(WINDOW, ShareLimits(delivery_count=3, lock_ms=15_000))


def update(ts: int, offset: int, *batches: tuple[int, int, int, int], start: int = -1) -> ShareRow:
    states = tuple(ShareUpdateValueStateBatch(*each) for each in batches)
    value = encode_framed(ShareUpdateValue(start_offset=start, state_batches=states), 0)
    return ShareRow("ShareUpdate", ts, offset, None, value)


def snapshot(ts: int, offset: int, *batches: tuple[int, int, int, int], start: int = 0) -> ShareRow:
    states = tuple(ShareSnapshotValueStateBatch(*each) for each in batches)
    value = encode_framed(ShareSnapshotValue(start_offset=start, state_batches=states), 0)
    return ShareRow("ShareSnapshot", ts, offset, None, value)


def sampled(row: ShareRow, batches: tuple[tuple[int, int, int, int], ...], start: int | None) -> ShareRow:
    states = [dict(zip(("first", "last", "state", "count"), each, strict=True)) for each in batches]
    body = {"group": "g", "topic": "t", "topic_id": "id", "partition": 0, "record": row.what, "offset": row.offset}
    data = msgspec.json.encode({**body, "start": start, "batches": states, "written_ms": row.ts})
    return ShareRow(SAMPLED_STATE, row.ts, row.offset, "t", data)


@st.composite
def share_histories(draw: st.DrawFn) -> list[ShareRow]:
    """Records of a share partition, samples of some of them, and samples of its offsets."""
    rows: list[ShareRow] = []
    counts: dict[int, int] = {}
    start = 0
    for number, ts in enumerate(draw(times)):
        first = draw(st.integers(start, start + 4))
        last = first + draw(st.integers(0, 2))
        state = draw(st.sampled_from([0, 0, 2, 4]))
        count = max(counts.get(offset, 0) for offset in range(first, last + 1)) + draw(st.integers(0, 1))
        counts |= dict.fromkeys(range(first, last + 1), count)
        start += draw(st.sampled_from([0, 0, 0, 1, 3]))
        batches = ((first, last, state, count),)
        what = draw(st.sampled_from(["update", "update", "snapshot", "deleted", "offsets", "sampled", "both"]))
        if what == "offsets":
            sample = {"group": "g", "topic": "t", "partition": 0, "start": start, "lag": draw(st.integers(0, 3))}
            rows.append(ShareRow(OFFSETS, ts, number, "t", msgspec.json.encode(sample)))
        elif what == "deleted":
            rows.append(ShareRow("ShareSnapshot", ts, number, None, None))
        elif what == "snapshot":
            rows.append(snapshot(ts, number, *batches, start=start))
        else:
            row = update(ts, number, *batches, start=start)
            rows += [row] * (what != "sampled")
            rows += [sampled(row, batches, start)] * (what != "update")
    return rows


@settings(max_examples=300, deadline=None)
@given(rows=share_histories(), data=st.data())
def test_share_partitions(rows: list[ShareRow], data: st.DataObject) -> None:
    found = in_steps(rows, arrivals(rows, data), cuts(rows, data), make_share)
    assert found == at_once(rows, make_share())


def test_a_record_that_is_accepted_at_last_is_taken_from_the_poison_of_long_ago() -> None:
    hour = 3_600_000
    rows = [update(0, 0, (7, 7, 0, 2), start=0), update(hour, 1, (8, 8, 2, 1)), update(2 * hour, 2, (7, 7, 2, 3))]
    table: Rows = {}
    kept: bytes | None = None
    poison = []
    for row in rows:
        found = advance(kept, [row], row.ts - LATENESS, make_share)
        kept = found.kept
        table |= found.changed
        poison.append(table[0,]["poison"])
    assert poison == [[7], [7], []]
    assert table == at_once(rows, make_share())


@pytest.mark.parametrize("what", [OFFSETS, SAMPLED_STATE])
def test_a_sample_that_does_not_fit_its_kind_is_passed_over(what: str) -> None:
    row = update(0, 0, (7, 7, 2, 1), start=0)
    table = at_once([row], make_share())
    assert at_once([row, ShareRow(what, 1, 1, "t", b'{"group":"g","start":"?"}')], make_share()) == table


def test_rows_in_order_change_only_their_own_windows() -> None:
    kept: bytes | None = None
    for number in range(200):
        row = update(number * 1_000, number, (number, number, 2, 1), start=number)
        found = advance(kept, [row], number * 1_000 - LATENESS, make_share)
        assert len(found.changed) <= 2
        kept = found.kept
    assert len(kept or b"") < 6_000, "what is old is forgotten"


def counters_row(seq: int, ts: int) -> TimedSample:
    return TimedSample(ts, seq, msgspec.json.encode({"node": 1, "delivered": seq}))


def share_row(number: int, ts: int) -> ShareRow:
    return update(ts, number, (number, number, 2, 1), start=number)


@pytest.mark.parametrize(
    ("make", "row"),
    [
        (lambda: QuorumFold(WINDOW), lambda number, ts: quorum_row(number, ts, 1, 1, 0)),
        (lambda: ShareCounters(WINDOW), counters_row),
        (make_share, share_row),
    ],
    ids=["quorum", "counters", "share"],
)
def test_the_state_does_not_grow(make: Callable[[], WindowFold[Any]], row: Callable[[int, int], Any]) -> None:
    kept: bytes | None = None
    sizes = []
    for number in range(1_000):
        ts = 10**9 + number * 1_000
        kept = advance(kept, [row(10**6 + number, ts)], ts - LATENESS, make).kept
        sizes.append(len(kept))
    assert max(sizes[900:]) <= max(sizes[100:200])


@pytest.mark.parametrize("first", [0, 50_000])
def test_time_goes_on_though_nothing_is_kept(first: int) -> None:
    """All rows are older than the watermark at once."""
    ordered = OrderedFold(None, lambda: QuorumFold(WINDOW))
    ordered.take([quorum_row(0, first, 1, 1, 0)])
    ordered.forget(first + LATENESS)
    again = OrderedFold(ordered.kept(), lambda: QuorumFold(WINDOW))
    changed, _ = again.take([quorum_row(1, first + LATENESS, 2, 2, 0)])
    assert {row["leaderless_ms"] for row in changed.values()} == {LATENESS}


# --- health rules -----------------------------------------------------------------------------------------------------


def make_rules() -> RuleFold:
    return RuleFold("c", {"epochs-climb.rises": 2}, "")


@cache
def facts_of_groups() -> tuple[FactRow, ...]:
    """A group whose epochs climb, told by its records, and one that an observer samples."""
    found: list[FactRow] = []
    for group, rank in (("a", RECORD_RANK), ("b", SAMPLE_RANK)):
        script = Script(group)
        script.at(0).member("m").epoch(1).target(1).current("m", 1, 0)
        for number in range(2, 12):
            script.at(number * 8).epoch(number, topic_hash=1 + number % 2).target(number).current("m", number, 0)
        for at, (ts, fact) in enumerate(group_facts(group, script.rows)):
            row_ts = ts - Script.START_MS
            found.append(FactRow(row_ts, rank, group, at, fact.kind, None, msgspec.json.encode(fact)))
    return tuple(sorted(found))


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_health_rules(data: st.DataObject) -> None:
    rows = list(facts_of_groups())
    expected = at_once(rows, make_rules())
    assert {row["subject_name"] for row in expected.values()} == {"a", "b"}
    assert in_steps(rows, arrivals(rows, data), cuts(rows, data), make_rules) == expected


def test_a_fact_that_was_told_too_early_is_withdrawn() -> None:
    rows = list(facts_of_groups())
    middle = len(rows) // 2
    wrong = rows[middle]._replace(kind="gone", body=msgspec.json.encode({"what": "group", "name": "a"}))
    fold = OrderedFold(None, make_rules)
    table = fold.take([*rows[:middle], wrong])[0]
    changed, deleted = OrderedFold(fold.kept(), make_rules).take(rows[middle:], withdrawn=[wrong])
    table |= changed
    for key in deleted:
        del table[key]
    assert table == at_once(rows, make_rules())
