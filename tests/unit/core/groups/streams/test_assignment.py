"""What assignors are told of members, and when a step may be due."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ottla.core.groups.streams.assignment import Candidate, Progress, _lags, is_step, may_go_on, next_report
from ottla.core.groups.streams.highly_available import UNTOLD_LAG
from ottla.core.groups.streams.members import Metadata, Report, StreamsGroupMember
from ottla.core.groups.streams.reconciliation import Holders
from ottla.core.groups.streams.settings import assignor_name
from ottla.core.groups.streams.tasks import Tasks
from ottla.wire.types.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from simulation.environment import Environment

TASK = ("0", 0)
NOBODY = Holders({}, {}, {})
UNHEARD = Report()


@pytest.mark.parametrize(
    ("report", "ends", "lag"),
    [
        (Report(True, {TASK: 900}, {TASK: 1_000}), {TASK: 5_000}, 100),
        (Report(True, {TASK: 900}), {TASK: 5_000}, 4_100),
        (Report(True, {TASK: 900}), {}, UNTOLD_LAG),
        (Report(True, {TASK: 1_100}, {TASK: 1_000}), {}, 0),
        (Report(True, {TASK: -2}), {}, 0),
        (Report(True, {TASK: -3}, {TASK: 1_000}), {}, None),
    ],
    ids=["its own end", "the end that others saw", "no end", "a stale end", "running", "unknown offset"],
)
def test_lag(report: Report, ends: dict[Any, int], lag: int | None):
    assert _lags(report, ends).get(TASK) == lag


def request(epoch: int, **offsets: int) -> StreamsGroupHeartbeatRequest:
    entry = StreamsGroupHeartbeatRequest.TaskOffset
    given = {name: (entry(*TASK, offset),) for name, offset in offsets.items()}
    return StreamsGroupHeartbeatRequest(member_epoch=epoch, **given)  # type: ignore[arg-type]


def known(report: Report) -> StreamsGroupMember:
    member = StreamsGroupMember("m")
    member.report = report
    return member


def test_who_joins_without_offsets_does_not_report():
    assert next_report(None, request(0), 1).is_made is False


def test_who_is_heard_for_the_first_time_since_a_failover_may_still_report():
    assert next_report(known(Report()), request(3), 1).is_made is None
    assert next_report(known(Report()), request(3), 0).is_made is False


def test_offsets_and_ends_are_replaced_each_on_its_own():
    before = known(Report(True, {TASK: 1}, {TASK: 2}))
    assert next_report(before, request(3, task_end_offsets=9), 1) == Report(True, {TASK: 1}, {TASK: 9})
    assert next_report(before, request(3, task_offsets=8), 1) == Report(True, {TASK: 8}, {TASK: 2})


# --- steps ------------------------------------------------------------------------------------------------------------

SETTINGS: Any = SimpleNamespace(version=4, num_warmup_replicas=1, acceptable_recovery_lag=10)
PROGRESS = Progress(7, 4, frozenset({(TASK, "B")}), lacks_warmups=True, unheard=frozenset({"c"}))
HELD = Holders({}, {}, {("0", 5): {"B"}})


def candidates(b: Report, c: Report = UNHEARD) -> dict[str, Candidate]:
    return {
        "b": Candidate(Metadata(process_id="B"), Tasks(), b),
        "c": Candidate(Metadata(process_id="C"), Tasks(), c),
    }


FAR = candidates(Report(True, {TASK: 0}, {TASK: 11}))


def test_nothing_new_needs_no_look():
    assert not may_go_on(PROGRESS, 7, FAR, SETTINGS, HELD)


def test_a_copy_that_was_waited_for_has_caught_up():
    assert may_go_on(PROGRESS, 7, candidates(Report(True, {TASK: 1}, {TASK: 11})), SETTINGS, HELD)


def test_another_copy_has_caught_up():
    caught_up = candidates(Report(True, {TASK: 0}, {TASK: 11}), Report(None, {TASK: 11}))
    assert not may_go_on(PROGRESS, 7, caught_up, SETTINGS, HELD)


def test_a_warmup_is_free():
    assert may_go_on(PROGRESS, 7, FAR, SETTINGS, NOBODY)
    assert not may_go_on(PROGRESS._replace(lacks_warmups=False), 7, FAR, SETTINGS, NOBODY)


def test_it_is_known_whether_a_member_reports():
    assert may_go_on(PROGRESS, 7, candidates(Report(True), Report(False)), SETTINGS, HELD)


def test_the_target_or_a_setting_is_another():
    assert may_go_on(None, 7, FAR, SETTINGS, HELD)
    assert may_go_on(PROGRESS, 8, FAR, SETTINGS, HELD)
    assert may_go_on(PROGRESS._replace(settings_version=3), 7, FAR, SETTINGS, HELD)


def test_standbys_alone_are_no_step():
    before = {"a": Tasks(frozenset({TASK})), "b": Tasks()}
    assert not is_step(before, {**before, "b": Tasks(standby=frozenset({TASK}))})
    assert is_step(before, {**before, "b": Tasks(warmup=frozenset({TASK}))})
    assert is_step(before, {"a": Tasks(), "b": Tasks(frozenset({TASK}))})


# --- the choice -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("offered", "chosen", "name"),
    [
        (None, None, "sticky"),
        (None, "highly_available", "highly_available"),
        ("highly_available,sticky", None, "highly_available"),
        ("highly_available,sticky", "sticky", "sticky"),
        ("sticky", "highly_available", "sticky"),
        (None, "nearest", "sticky"),
        ("org.example.Nearest", None, "sticky"),
    ],
)
def test_assignor_name(offered: str | None, chosen: str | None, name: str):
    environment = Environment()
    if offered is not None:
        environment.settings.set("group.streams.assignors", offered)
    if chosen is not None:
        environment.set_for_group("g", "streams.assignor.name", chosen)
    assert assignor_name(environment.world, "g") == name


def test_an_unknown_assignor_is_warned_of(caplog: pytest.LogCaptureFixture):
    environment = Environment()
    environment.set_for_group("g", "streams.assignor.name", "nearest")
    assignor_name(environment.world, "g")
    assert "group g requests the unknown assignor nearest" in caplog.text
