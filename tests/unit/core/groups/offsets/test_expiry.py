"""Expiry of offsets and of groups: nothing goes too early, everything goes at last."""

import pytest

from ottla.core.groups.offsets import expiry
from ottla.core.groups.table import ExpiryRule
from ottla.wire.keyed import KeyedRecord
from ottla.wire.types.group_classic import GroupMetadataKey, OffsetCommitKey
from tests.unit.core.groups.offsets.bench import DAY_MS, START_MS, Bench

CHECK_MS = 600_000


def gone(records: list[KeyedRecord]) -> list[tuple[str, str | None]]:
    """Group, and topic of an offset."""
    assert all(record.value is None for record in records)
    return [(record.key.group, getattr(record.key, "topic", None)) for record in records]


def test_an_offset_goes_after_the_retention_time_and_its_group_with_it(bench: Bench):
    bench.advance(1)
    bench.commit("g", ("orders", 0, 1))
    assert bench.advance(7 * DAY_MS - 1) == []  # one check finds it 1 ms too young
    assert gone(bench.advance(CHECK_MS)) == [("g", "orders"), ("g", None)]
    assert bench.table.get("g") is None


def test_at_the_very_age_it_is_gone(bench: Bench):
    bench.commit("g", ("orders", 0, 1))
    assert bench.advance(7 * DAY_MS - 1) == []
    assert gone(bench.advance(1)) == [("g", "orders"), ("g", None)]


def test_a_renewed_offset_stays(bench: Bench):
    bench.commit("g", ("orders", 0, 1), ("orders", 1, 1))
    bench.advance(4 * DAY_MS)
    bench.commit("g", ("orders", 0, 1))
    assert gone(bench.advance(4 * DAY_MS)) == [("g", "orders")]
    assert bench.stored("g") == {("orders", 0): 1}


def test_the_retention_time_is_a_setting(bench: Bench):
    bench.settings["offsets.retention.minutes"] = 10
    bench.commit("g", ("orders", 0, 1))
    assert gone(bench.advance(CHECK_MS)) == [("g", "orders"), ("g", None)]


def test_an_explicit_time_comes_first_or_last(bench: Bench):
    bench.commit("early", ("orders", 0, 1), version=4, retention_time_ms=CHECK_MS)
    bench.commit("late", ("orders", 0, 1), version=4, retention_time_ms=30 * DAY_MS)
    assert gone(bench.advance(CHECK_MS)) == [("early", "orders"), ("early", None)]
    assert bench.advance(29 * DAY_MS) == []
    assert gone(bench.advance(DAY_MS)) == [("late", "orders"), ("late", None)]


def test_a_retention_beyond_all_time_is_for_ever(bench: Bench):
    bench.commit("g", ("orders", 0, 1), version=4, retention_time_ms=2**63 - 1)
    assert bench.advance(30 * DAY_MS) == []


def test_the_group_says_from_when_on_its_offsets_age(bench: Bench):
    bench.commit("g", ("orders", 0, 1))
    emptied_at_ms = START_MS + 3 * DAY_MS
    bench.group("g").rule = ExpiryRule(lambda commit_ms: emptied_at_ms, lambda topic: False)
    assert bench.advance(10 * DAY_MS - 1) == []
    assert gone(bench.advance(1)) == [("g", "orders"), ("g", None)]


def test_topics_that_the_group_reads_keep_their_offsets(bench: Bench):
    bench.commit("g", ("orders", 0, 1), ("bills", 0, 1))
    group = bench.group("g")
    group.subscribed, group.is_empty = frozenset({"orders"}), False
    assert gone(bench.advance(8 * DAY_MS)) == [("g", "bills")]


def test_a_group_without_a_rule_is_left_alone(bench: Bench):
    bench.commit("g", ("orders", 0, 1))
    bench.group("g").rule = None
    bench.group("nothing").rule = None
    assert bench.advance(30 * DAY_MS) == []


def test_a_group_with_members_stays(bench: Bench):
    bench.commit("g", ("orders", 0, 1))
    bench.group("g").is_empty = False
    assert gone(bench.advance(8 * DAY_MS)) == [("g", "orders")]
    assert bench.table.get("g") is not None


def test_an_empty_group_without_offsets_goes_with_the_next_check(bench: Bench):
    bench.group("g")
    (record,) = bench.advance(CHECK_MS)
    assert record.key == GroupMetadataKey("g")


def test_a_pending_offset_keeps_the_group_and_the_older_offset(bench: Bench):
    bench.commit("g", ("orders", 0, 1), ("orders", 1, 1))
    bench.commit_in_transaction("g", 7, ("orders", 0, 2))
    bench.commit_in_transaction("only-pending", 7, ("orders", 0, 2))
    (record,) = bench.advance(8 * DAY_MS)
    assert record.key == OffsetCommitKey("g", "orders", 1)
    bench.end_transaction(7, committed=False)
    assert sorted(gone(bench.advance(CHECK_MS)), key=str) == [("g", "orders"), ("g", None), ("only-pending", None)]


def test_the_check_comes_again_and_again(bench: Bench):
    for day in range(3):
        bench.commit(f"g{day}", ("orders", 0, 1))
        assert gone(bench.advance(8 * DAY_MS)) == [(f"g{day}", "orders"), (f"g{day}", None)]


def test_a_long_check_is_done_in_pieces(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(expiry, "_PIECE", 4)
    for number in range(10):
        bench.commit(f"g{number}", ("orders", 0, 1), ("orders", 1, 1))
    bench.now_ms = bench.timers["offsets", "expire"] = 8 * DAY_MS
    first = bench.core.expire(("offsets", "expire"), bench.context())
    assert [(timer.key, timer.at_ms) for timer in first.timers] == [(("offsets", "expire"), 8 * DAY_MS + 1)]
    assert len(first.records) == 6  # two groups
    bench.core.families["offsets"]._expiring._left.clear()  # the piece was not written: begin again
    assert len(bench.advance(CHECK_MS)) == 30
    assert [bench.table.get(f"g{number}") for number in range(10)] == [None] * 10


def test_a_group_that_goes_between_two_pieces_is_passed_over(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(expiry, "_PIECE", 1)
    bench.group("a")
    bench.group("b")
    bench.now_ms = CHECK_MS
    bench.core.expire(("offsets", "expire"), bench.context())
    bench.table.remove("b")
    assert bench.core.expire(("offsets", "expire"), bench.context()).records == []
