"""How steady a group is: counts by the hour, and the alarm of epochs that climb while nobody comes or goes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ottla.health import Engine, Severity
from ottla.spark.jobs.folds.fold import fold
from ottla.spark.jobs.folds.rows import Window
from ottla.spark.jobs.params import HOUR_MS, Params
from tests.unit.spark.jobs.histories import Script, group_facts

START_MS = Script.START_MS


def windows(script: Script, params: Params | None = None) -> list[Window]:
    return fold(None, script.rows, params)[1].windows


def steady() -> Script:
    return Script().at(0).member("A").member("B").settled(2, A=[0], B=[1])


def bumps(script: Script, count: int, *, converge: bool = True, step: Callable[[int], int] = lambda _: 77) -> Script:
    """So many epochs, 20 s apart, each with the hash of topics that `step` gives."""
    for number in range(count):
        script.at(60 + 20 * number).epoch(3 + number, step(number))
        if converge:
            script.target(3 + number).current("A", 3 + number, 0).current("B", 3 + number, 1)
    return script


def findings(script: Script) -> list[tuple[str, Severity]]:
    """What the rule itself says of the same records."""
    engine = Engine(muted=["observer-stale"])
    for ts, fact in group_facts(script.group, script.rows):
        engine.take(ts, fact)
    return [(each.rule, each.severity) for each in engine.findings() if each.rule == "epochs-climb"]


def test_five_epochs_with_the_same_members_raise_the_alarm() -> None:
    four, five = bumps(steady(), 4), bumps(steady(), 5)

    assert [each.alarm for each in windows(four)] == [None]
    assert [each.alarm for each in windows(five)] == ["warning"]
    reason = windows(five)[0].alarm_reason
    assert reason == "5 epochs in 10 min without a change of members or topics: the records do not show why"
    assert (findings(four), findings(five)) == ([], [("epochs-climb", Severity.WARNING)])


def test_no_alarm_when_a_topic_grew() -> None:
    grew = bumps(steady(), 5, step=lambda number: 77 if number < 3 else 78)

    assert [each.alarm for each in windows(grew)] == [None]
    assert findings(grew) == []


def test_a_hash_that_goes_to_and_fro_is_no_topic_that_grew() -> None:
    flapping = bumps(steady(), 7, step=lambda number: 78 if number % 2 == 0 else 77)

    found = windows(flapping)[0]
    assert found.alarm == "warning"
    assert "the metadata hash keeps changing back and forth" in (found.alarm_reason or "")
    assert findings(flapping) == [("epochs-climb", Severity.WARNING)]


def test_ten_epochs_are_critical() -> None:
    assert windows(bumps(steady(), 10))[0].alarm == "critical"
    assert findings(bumps(steady(), 10)) == [("epochs-climb", Severity.CRITICAL)]


def test_epochs_of_which_none_converged_are_critical() -> None:
    script = Script().at(0).member("A").epoch(2)
    for number in range(5):
        script.at(20 * (number + 1)).epoch(3 + number)

    found = windows(script)[0]

    assert found.alarm == "critical"
    assert (found.alarm_reason or "").endswith("no rebalance completed before the next one began")
    assert findings(script) == [("epochs-climb", Severity.CRITICAL)]


def test_no_alarm_when_somebody_joined_in_between() -> None:
    script = bumps(steady(), 3)
    script.at(115).member("C").epoch(6).target(6)
    script.at(140).epoch(7).at(160).epoch(8)

    assert [each.alarm for each in windows(script)] == [None]
    assert findings(script) == []


def test_thresholds_can_be_set() -> None:
    params = Params(thresholds={"epochs-climb.rises": 3})

    assert [each.alarm for each in windows(bumps(steady(), 3), params)] == ["warning"]


def test_the_counts_of_an_hour() -> None:
    script = steady()
    script.at(100).member("C").epoch(3).target(3).current("C", 3).current("A", 3, 0).at(130).current("B", 3, 1)
    script.at(105 + 60).leave("C").epoch(4).target(4).current("A", 4, 0).current("B", 4, 1)
    script.at(200).epoch(5).target(5).current("A", 5, 0).current("B", 5, 1)

    (found,) = windows(script)

    assert (found.epochs, found.epochs_without_membership_change) == (4, 1)
    assert (found.joins, found.leaves, found.fences, found.distinct_members) == (3, 1, 0, 3)
    assert (found.median_lifetime_s, found.short_lived) == (65.0, 0)
    assert found.longest_rebalance_ms == 30_000
    assert found.converged_share == pytest.approx(1 - 30 / 3600)


def test_a_member_that_is_gone_within_two_heartbeats_is_short_lived() -> None:
    script = steady().at(100).member("C").epoch(3).at(109).leave("C").epoch(4)

    assert windows(script)[0].short_lived == 1


def test_hours_in_which_nothing_happens_are_told_only_while_the_group_is_not_at_rest() -> None:
    quiet = steady().at(5 * 3600).member("C").epoch(3).target(3)
    quiet.current("A", 3, 0).current("B", 3, 1).current("C", 3)
    hanging = steady().at(10).member("C").epoch(3).at(2.5 * 3600).target(3)

    assert [(each.window_start - START_MS) // HOUR_MS for each in windows(quiet)] == [0, 5]
    found = windows(hanging)
    assert [(each.window_start - START_MS) // HOUR_MS for each in found] == [0, 1, 2]
    assert [round(each.converged_share or 0, 4) for each in found] == [round(10 / 3600, 4), 0, 0]
    assert [each.distinct_members for each in found] == [3, 3, 3]
    assert found[1].longest_rebalance_ms == 2 * HOUR_MS - 10_000


def test_time_without_members_does_not_count() -> None:
    script = steady().at(60).leave("A").epoch(3).leave("B").epoch(4)

    assert windows(script)[0].converged_share == 1.0


def test_the_hour_in_which_a_group_is_deleted_knows_what_it_was() -> None:
    deleted = steady().at(60).delete()

    assert [each.type for each in windows(deleted)] == ["consumer"]
    assert [each.type for each in windows(deleted.at(3700).member("C").epoch(2))] == ["consumer", "consumer"]


def test_a_deleted_group_is_known_across_a_cut() -> None:
    script = steady()
    before = len(script.rows)
    script.at(60).delete()
    tombstones = len(script.rows)
    script.at(120).member("C").epoch(2).at(180).leave("C").delete()

    kept, _ = fold(None, script.rows[:before])
    kept, deleted = fold(kept, script.rows[before:tombstones])
    _, again = fold(kept, script.rows[tombstones:])

    assert [each.type for each in deleted.windows + again.windows] == ["consumer", "consumer"]


def test_tombstones_alone_are_no_group() -> None:
    assert windows(Script().at(0).delete()) == []
