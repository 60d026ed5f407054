"""Rebalances as the records tell them: when they begin and end, why, and what moved."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.spark.jobs.folds.fold import RecordRow, fold
from ottla.spark.jobs.folds.rows import Rebalance
from tests.unit.spark.jobs.histories import Script, listen, scenario_texts

START_MS = Script.START_MS


def rebalances(rows: list[RecordRow]) -> list[Rebalance]:
    return fold(None, rows)[1].rebalances


def brief(found: list[Rebalance]) -> list[tuple[Any, ...]]:
    """Epoch, how it ended, from which second to which, and why."""
    return [
        (
            each.group_epoch,
            each.ended_by,
            (each.started - START_MS) / 1000,
            None if each.ended is None else (each.ended - START_MS) / 1000,
            each.trigger,
        )
        for each in found
    ]


def two_members() -> Script:
    """A and B share four partitions since second 2."""
    script = Script().at(0).member("A").settled(2, A=[0, 1, 2, 3])
    script.at(1).member("B").epoch(3).target(3).current("B", 3, state=2)
    script.at(2).current("A", 2, 0, 1, gives_up=[2, 3])
    return script.at(3).current("A", 3, 0, 1).at(4).current("B", 3, 2, 3)


def test_a_scripted_history_gives_the_exact_table() -> None:
    script = two_members()
    script.at(10).member("C").epoch(4)  # no target before the next epoch
    script.at(11).leave("C").epoch(5)
    script.at(12).target(5).current("A", 5, 0, 1).at(14).current("B", 5, 2, 3)
    script.at(20).leave("A").epoch(6).at(21).leave("B").epoch(7)
    script.at(30).member("D").epoch(8).target(8).current("D", 8, state=2)

    found = rebalances(script.rows)

    assert brief(found) == [
        (2, "converged", 0, 0, "member_joined"),
        (3, "converged", 1, 4, "member_joined"),
        (4, "superseded", 10, 11, "member_joined"),
        (5, "converged", 11, 14, "left_or_expired"),
        (6, "emptied", 20, 21, "left_or_expired"),
        (7, "emptied", 21, 21, "left_or_expired"),
        (8, "open", 30, None, "member_joined"),
    ]
    columns = ("duration_ms", "computing_ms", "revoking_ms", "members_before", "members_after", "trigger_members")
    assert [tuple(getattr(each, name) for name in columns) for each in found] == [
        (0, 0, 0, 0, 1, ["A"]),
        (3000, 0, 2000, 1, 2, ["B"]),
        (1000, None, None, 2, 3, ["C"]),
        (3000, 1000, 0, 3, 2, ["C"]),
        (1000, None, None, 2, 1, ["A"]),
        (0, None, None, 1, 0, ["B"]),
        (None, 0, None, 0, None, ["D"]),
    ]
    assert [(each.partitions_moved, each.members_touched) for each in found] == [
        (0, 1), (2, 2), (None, None), (0, 0), (None, None), (None, None), (None, None),
    ]  # fmt: skip


def test_a_third_streams_member_moves_two_tasks() -> None:
    _, out = fold(None, listen(scenario_texts()["streams/third_member_joins"]).found["g"])

    third = next(each for each in out.rebalances if each.group_epoch == 4)
    assert (third.ended_by, third.trigger, third.trigger_members) == ("converged", "member_joined", ["C"])
    assert (third.tasks_moved, third.members_touched, third.partitions_moved) == (2, 3, None)
    assert (third.members_before, third.members_after) == (2, 3)
    moved = [(each.task, each.kind, each.role, each.from_member, each.to_member) for each in out.movements]
    assert moved == [("0_4", "moved", "active", "A", "C"), ("0_5", "moved", "active", "B", "C")]
    assert [each.revoke_ms for each in out.movements] == [2000, 3000]
    assert [each.ended_by for each in out.rebalances] == ["superseded", "converged", "converged", "open"]


def test_a_static_member_that_comes_back_under_a_new_id_moves_nothing() -> None:
    script = Script().at(0).member("A", instance="i1").member("B").settled(2, A=[0, 1], B=[2, 3])
    script.at(5).leave("A").member("A2", instance="i1").current("A2", 2, 0, 1)
    script.at(6).member("B", topics=["t", "u"]).settled(3, A2=[0, 1], B=[2, 3])

    over = rebalances(script.rows)[-1]

    assert (over.group_epoch, over.ended_by, over.partitions_moved, over.members_touched) == (3, "converged", 0, 0)


def test_from_one_to_nobody_to_another_is_one_move() -> None:
    script = Script().at(0).member("A").member("B").settled(2, A=[0], B=[1])
    script.at(5).leave("A").epoch(3).target(3)  # nobody has 0
    script.at(6).member("C").epoch(4).target(4).current("B", 4, 1).current("C", 4, 0)

    found = rebalances(script.rows)

    assert [(each.ended_by, each.partitions_moved) for each in found] == [
        ("converged", 0), ("superseded", None), ("converged", 1),
    ]  # fmt: skip


def test_partitions_of_share_groups_move_by_halves() -> None:
    found = rebalances(listen(scenario_texts()["share/more_members_than_partitions"]).found["g"])

    assert {each.type for each in found} == {"share"}
    moved = [each.partitions_moved for each in found if each.partitions_moved]
    assert moved
    assert any(each % 1 == 0.5 for each in moved), "a member that shares what others keep has gained, nobody has lost"
    assert found[1].trigger == "partitions_initialized"


def test_classic_groups_have_no_durations_in_their_records() -> None:
    found = rebalances(listen(scenario_texts()["classic/session_expires"]).found["g"])

    assert [each.duration_ms for each in found] == [None] * len(found)
    assert {each.type for each in found} == {"classic"}
    assert all(each.ended is not None and each.started <= each.ended for each in found)
    assert [(each.ended_by, each.trigger) for each in found] == [
        ("converged", "member_joined"),
        ("converged", "left_or_expired"),
        ("emptied", "left_or_expired"),
    ]


@pytest.mark.parametrize(
    ("change", "trigger"),
    [
        (lambda script: script.member("A", topics=["t", "u"]).epoch(3), "subscription_changed"),
        (lambda script: script.member("A", server_assignor="range").epoch(3), "assignor_changed"),
        (lambda script: script.epoch(3, topic_hash=78), "metadata_changed"),
        (lambda script: script.epoch(3), "unknown"),
        (lambda script: script.leave("A").epoch(3), "left_or_expired"),
        (lambda script: script.member("B").epoch(3, topic_hash=78), "member_joined"),
    ],
)
def test_the_trigger_is_what_came_before_the_epoch(change: Any, trigger: str) -> None:
    script = Script().at(0).member("A").settled(2, A=[0])
    change(script.at(5))

    assert rebalances(script.rows)[-1].trigger == trigger


def test_the_trigger_of_a_streams_group_may_be_a_setting_or_a_step_of_its_warm_ups() -> None:
    texts = scenario_texts()
    configs = rebalances(listen(texts["streams/standby_replicas_changed"]).found["g"])
    warmups = rebalances(listen(texts["streams/warmup_before_a_task_moves"]).found["g"])

    assert "config_changed" in [each.trigger for each in configs]
    assert [each.trigger for each in warmups] == ["member_joined", "member_joined", "warmup_step", "warmup_step"]


def test_a_member_that_gives_nothing_up_until_its_time_is_over_is_fenced() -> None:
    script = two_members()
    script.at(10).member("C").epoch(4).target(4).current("C", 4, state=2).current("B", 4, 2, 3)
    script.at(11).current("A", 3, 0, gives_up=[1])
    script.at(311).leave("A").epoch(5)

    _, out = fold(None, script.rows)

    assert [(each.member, each.event) for each in out.events if each.event in ("member_left", "member_fenced")] == [
        ("A", "member_fenced")
    ]
    assert out.rebalances[-1].trigger == "member_fenced"


def test_a_group_made_anew_has_rows_of_its_own() -> None:
    script = two_members().at(20).delete()
    script._known.clear()
    script.at(30).member("A").settled(2, A=[0])

    keys = [each.key for each in rebalances(script.rows)]

    assert len(keys) == len(set(keys)) == 3


def test_a_static_member_that_is_away_keeps_nobody_waiting() -> None:
    script = Script().at(0).member("A", instance="i1").member("B").settled(2, A=[0], B=[1])
    script.at(5).current("A", -2, 0)
    script.at(6).member("C").epoch(3).target(3).current("B", 3, 1).current("C", 3)

    over = rebalances(script.rows)[-1]

    assert (over.group_epoch, over.ended_by) == (3, "converged")


@pytest.mark.parametrize(("days", "moved"), [(6, 1), (8, 0)])
def test_what_a_group_held_that_was_empty_for_a_week_is_forgotten(days: int, moved: int) -> None:
    script = Script().at(0).member("A").settled(2, A=[0])
    script.at(5).leave("A").epoch(3)
    script.at(days * 86_400).member("B").settled(4, B=[0])

    assert rebalances(script.rows)[-1].partitions_moved == moved
