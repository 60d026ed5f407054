"""Health rules over a log alone: the facts that the records of a group give them."""

from __future__ import annotations

import pytest

from ottla.health import Engine, Finding
from ottla.health.facts import Fact, Gone, Group
from ottla.spark.jobs.folds.fold import RecordRow
from tests.unit.spark.jobs.histories import Script, group_facts, listen, scenario_texts


def facts(rows: list[RecordRow]) -> list[tuple[int, Group | Gone]]:
    return group_facts("g", rows)


def found(rows: list[RecordRow], until_s: float | None = None) -> dict[str, Finding]:
    engine = Engine(muted=["observer-stale"])
    for ts, fact in group_facts("g", rows):
        engine.advance(ts)
        engine.take(ts, fact)
    if until_s is not None:
        engine.advance(Script.START_MS + round(until_s * 1000))
    return {each.rule: each for each in engine.findings()}


def last_group(rows: list[RecordRow]) -> Group:
    fact: Fact = facts(rows)[-1][1]
    assert isinstance(fact, Group)
    return fact


def test_a_group_as_its_records_tell_it() -> None:
    script = Script().at(0).member("A", instance="i1").settled(2, A=[0, 1])
    script.at(5).member("B").epoch(3).target(3).current("B", 3, state=2).at(6).current("A", 2, 0, gives_up=[1])

    fact = last_group(script.rows)

    assert (fact.type, fact.state, fact.group_epoch, fact.assignment_epoch) == ("consumer", "Reconciling", 3, 3)
    first, second = fact.members
    assert (first.member, first.instance, first.epoch, first.state) == ("A", "i1", 2, "unrevoked")
    assert [each.partitions for each in first.assigned] == [(0, 1)], "what it gives up is its own until then"
    assert (second.member, second.state, second.subscribed) == ("B", "unreleased", ("t",))


@pytest.mark.parametrize("name", ["streams/third_member_joins", "streams/warmup_before_a_task_moves"])
def test_tasks_and_targets_of_streams_members(name: str) -> None:
    fact = last_group(listen(scenario_texts()[name]).found["g"])

    assert fact.subtopologies is not None
    assert [each.id for each in fact.subtopologies] == ["0"]
    held = {each.member: each.tasks.active for each in fact.members if each.tasks}
    wanted = {each.member: each.target_tasks.active for each in fact.members if each.target_tasks}
    assert held.keys() == wanted.keys()
    assert {task for tasks in wanted.values() for task in tasks} >= {task for tasks in held.values() for task in tasks}


def test_a_deleted_group_is_gone() -> None:
    script = Script().at(0).member("A").settled(2, A=[0]).at(5).delete()

    assert [type(fact) for _, fact in facts(script.rows)] == [Group, Gone]


def test_changes_within_a_second_are_told_together_but_for_epochs() -> None:
    script = Script().at(0).member("A").member("B").epoch(2).target(2)
    for tenth in range(1, 5):
        script.at(tenth / 10).current("A", 2, tenth)
    script.at(0.5).epoch(3)

    told = list(group_facts("g", script.rows))

    assert [(ts - Script.START_MS, fact.group_epoch) for ts, fact in told if isinstance(fact, Group)] == [
        (0, 2), (400, 2), (500, 3),
    ]  # fmt: skip


def test_member_churn_is_seen_in_a_log() -> None:
    script = Script().at(0)
    for number in range(12):
        script.at(10 * number).member(f"m{number}").epoch(2 + 2 * number)
        script.at(10 * number + 5).leave(f"m{number}").epoch(3 + 2 * number)

    assert "member-churn" in found(script.rows)


def test_two_processes_with_one_instance_id_are_seen_in_a_log() -> None:
    script = Script().at(0).member("m0", instance="i1").settled(2, m0=[0])
    for number in range(1, 5):
        script.at(20 * number).leave(f"m{number - 1}").member(f"m{number}", instance="i1")
        script.current(f"m{number}", 2, 0)

    assert "static-member-duplicate" in found(script.rows)


def test_a_member_that_does_not_let_go_is_seen_in_a_log() -> None:
    script = Script().at(0).member("A").settled(2, A=[0, 1])
    script.at(5).member("B").epoch(3).target(3).current("B", 3, state=2).at(6).current("A", 2, 0, gives_up=[1])

    seen = found(script.rows, until_s=60)

    assert "member-stuck-revoking" in seen
    assert seen["member-stuck-revoking"].sentence.startswith("client of A has not revoked ")


def test_a_streams_group_without_its_source_topic_is_not_ready() -> None:
    rows = listen(scenario_texts()["streams/source_topic_missing"]).found["g"]
    engine = Engine(muted=["observer-stale"])
    for ts, fact in group_facts("g", rows[:4]):
        engine.take(ts, fact)
        engine.advance(ts + 16_000)

    assert "streams-not-ready" in {each.rule for each in engine.findings()}
