"""Which rebalances belong to a group that starts or stops as a whole."""

from __future__ import annotations

from typing import Any

from ottla.spark.report.phases import PAUSE_MS, RUNNING, STARTING, STOPPING, Phases
from ottla.spark.report.rows import Rows
from tests.unit.spark.report.story import tables_of

JOIN, LEAVE, TOPICS = "member_joined", "left_or_expired", "metadata_changed"


def phases_of(*steps: tuple[int, str, int, int]) -> list[str]:
    """The phases of rebalances, each given as its time in seconds, its trigger, and the members before and after."""
    rows: list[dict[str, Any]] = [
        {"cluster": "c", "group": "g", "group_epoch": epoch, "started": 1000 * second, "trigger": trigger,
         "members_before": before, "members_after": after}
        for epoch, (second, trigger, before, after) in enumerate(steps, 1)
    ]  # fmt: skip
    phases = Phases(Rows(tables_of({"rebalances": rows})["rebalances"]))
    return [phases.of(("c", "g"), row["started"], row["group_epoch"]) for row in rows]


def test_members_that_join_one_after_another_start_a_group():
    assert phases_of((0, JOIN, 0, 1), (1, JOIN, 1, 2), (10, TOPICS, 2, 2), (20, JOIN, 2, 3)) == [STARTING] * 4


def test_a_member_that_comes_much_later_joins_a_running_group():
    late = PAUSE_MS // 1000 + 1
    assert phases_of((0, JOIN, 0, 1), (late, JOIN, 1, 2), (late + 1, JOIN, 2, 3)) == [STARTING, RUNNING, RUNNING]


def test_a_member_that_leaves_ends_the_start():
    steps = (0, JOIN, 0, 1), (1, JOIN, 1, 2), (2, LEAVE, 2, 1), (3, JOIN, 1, 2)
    assert phases_of(*steps) == [STARTING, STARTING, RUNNING, RUNNING]


def test_members_that_leave_one_after_another_stop_a_group():
    steps = (0, LEAVE, 4, 3), (100, LEAVE, 3, 2), (101, LEAVE, 2, 1), (101, LEAVE, 1, 0)
    assert phases_of(*steps) == [RUNNING, STOPPING, STOPPING, STOPPING]


def test_a_group_that_stops_and_starts_again():
    steps = (0, LEAVE, 2, 1), (0, LEAVE, 1, 0), (0, JOIN, 0, 1), (1, JOIN, 1, 2)
    assert phases_of(*steps) == [STOPPING, STOPPING, STARTING, STARTING]


def test_a_group_whose_last_member_is_back_at_once_was_empty():
    assert phases_of((0, LEAVE, 1, 0), (1, JOIN, 0, 1), (2, LEAVE, 1, 0)) == [STOPPING, STARTING, STOPPING]


def test_unknown_sizes_are_those_of_a_running_group():
    rows = {"rebalances": [{"group": "g", "group_epoch": 3, "started": 5, "trigger": JOIN}]}
    assert Phases(Rows(tables_of(rows)["rebalances"])).of(("c", "g"), 5, 3) == RUNNING
    assert Phases(Rows(None)).of(("c", "g"), 5, None) == RUNNING
