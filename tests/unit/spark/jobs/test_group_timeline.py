"""The timeline of a group, held against what the coordinator that wrote the records says itself."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ottla.spark.jobs.folds.fold import Fold, RecordRow, fold
from ottla.spark.jobs.params import Params
from ottla.wire import uuid_text
from ottla.wire.keyed import encode_framed
from ottla.wire.types import ShareGroupMetadataValue
from tests.unit.spark.jobs.histories import FAMILIES, Listener, Script, listen, scenario_texts

TEXTS = scenario_texts()


def followed(scenario: Listener, group: str) -> Fold:
    reader = Fold(Params())
    reader.take_records(scenario.found[group])
    return reader


def truth(scenario: Listener, group: str) -> Any:
    """The group as the coordinator has it."""
    return scenario.core.families["consumer"]._table.get(group)  # type: ignore[attr-defined]


@pytest.mark.parametrize("family", FAMILIES)
def test_following_the_records_leads_to_the_coordinators_own_state(family: str) -> None:
    checked = 0
    for name, text in TEXTS.items():
        if not name.startswith(f"{family}/"):
            continue
        scenario = listen(text)
        for group in scenario.found:
            reader = followed(scenario, group)
            out = reader.end()
            assert out.faults == [], name
            check(name, reader, truth(scenario, group))
            checked += 1
    assert checked > 40


def check(name: str, reader: Fold, group: Any) -> None:
    state = reader.state
    if group is None:
        assert not state.type, f"{name}: the coordinator has no such group"
        return
    if group.kind == "classic":  # its records lag behind: there is one for each generation that is complete
        assert state.type in ("classic", ""), name
        return
    assert state.type == group.kind, name
    assert state.state == group.state_name(), name
    if state.epoch != -1:  # else only the states of share partitions were written
        assert state.epoch == group.group_epoch, name
    told = {each.id: (each.epoch, each.active, each.pending) for each in state.members.values()}
    assert told == {each.member_id: member_truth(state.type, each) for each in group.members.values()}, name


def member_truth(kind: str, member: Any) -> tuple[int, set[str], set[str]]:
    """The epoch of a member, what it has, and what it has to give up."""
    if kind == "streams":
        current = member.current
        held = ({f"{name}_{number}" for name, number in each.active} for each in (current.assigned, current.pending))
        return (current.member_epoch, *held)
    if kind == "share":
        return member.member_epoch, named(member.assigned), set()
    return member.member_epoch, named(member.assigned), named(member.pending_revocation)


def named(partitions: Any) -> set[str]:
    return {f"{uuid_text(topic_id)}-{number}" for topic_id, numbers in partitions.items() for number in numbers}


def test_the_events_of_a_small_life() -> None:
    script = Script().at(0).member("A", instance="i1").settled(2, A=[0, 1])
    script.at(5).member("A", instance="i1", topics=["t", "u"]).epoch(3).target(3).current("A", 2, 0, gives_up=[1])
    script.at(6).current("A", 3, 0)
    script.at(9).leave("A").epoch(4).at(20).delete()

    _, out = fold(None, script.rows, Params(topic_names={"AAECAwQFBgcICQoLDA0ODw": "orders"}))

    assert [(each.event, each.member, each.old, each.new) for each in out.events] == [
        ("created", None, None, "consumer"),
        ("member_joined", "A", None, "client of A"),
        ("epoch_bumped", None, None, "2"),
        ("target_computed", None, None, "2"),
        ("member_epoch", "A", "0", "2"),
        ("partition_gained", "A", None, '["orders-0","orders-1"]'),
        ("state_changed", None, "Empty", "Stable"),
        ("subscription_changed", "A", "t", "t,u"),
        ("epoch_bumped", None, "2", "3"),
        ("target_computed", None, "2", "3"),
        ("partition_revoking", "A", '["orders-1"]', None),
        ("state_changed", None, "Stable", "Reconciling"),
        ("member_epoch", "A", "2", "3"),
        ("partition_revoked", "A", '["orders-1"]', None),
        ("state_changed", None, "Reconciling", "Stable"),
        ("member_left", "A", "client of A", None),
        ("epoch_bumped", None, "3", "4"),
        ("state_changed", None, "Stable", "Empty"),
        ("deleted", None, "consumer", None),
    ]
    assert [each.detail for each in out.events if each.event == "epoch_bumped"] == [
        "member_joined", "subscription_changed", "left_or_expired",
    ]  # fmt: skip
    order = [(each.ts, each.seq) for each in out.events]
    assert order == sorted(set(order)), "time and seq tell them apart and say their order"
    assert {each.offset for each in out.events} <= {row.offset for row in script.rows}


def test_a_static_member_says_whom_it_follows() -> None:
    script = Script().at(0).member("A", instance="i1").settled(2, A=[0])
    script.at(5).leave("A").member("A2", instance="i1").current("A2", 2, 0)

    _, out = fold(None, script.rows)

    detail = [json.loads(each.detail or "{}") for each in out.events if each.event == "member_joined"]
    assert detail == [{"host": "", "instance": "i1"}, {"host": "", "instance": "i1", "same_instance": "A"}]


def test_a_member_whose_beginning_is_lost_was_there_before() -> None:
    script = Script().at(0).member("A").settled(2, A=[0])
    _, out = fold(None, script.rows[1:])

    joined = next(each for each in out.events if each.event == "member_joined")
    assert json.loads(joined.detail or "")["first_seen"] is True
    assert out.windows[0].joins == 0
    assert [each.ended_by for each in out.rebalances] == ["converged"]


def test_tasks_carry_their_role_and_process() -> None:
    _, out = fold(None, listen(TEXTS["streams/warmup_before_a_task_moves"]).found["g"])

    gained = [(each.member, each.new, each.detail) for each in out.events if each.event == "partition_gained"]
    assert gained[1] == ("B", '["0_2","0_3"]', '{"role":"warmup","process":"B"}')
    kinds = [(each.kind, each.task, each.warmup_ms) for each in out.movements]
    assert kinds == [
        ("warmup_started", "0_2", None),
        ("warmup_started", "0_3", None),
        ("moved", "0_3", None),
        ("warmup_done", "0_3", 7000),
        ("moved", "0_2", None),
        ("warmup_done", "0_2", 17000),
    ]


def test_an_active_task_that_becomes_a_standby_is_demoted() -> None:
    _, out = fold(None, listen(TEXTS["streams/active_becomes_standby"]).found["g"])

    assert [(each.kind, each.task, each.role) for each in out.movements] == [
        ("moved", "0_1", "active"), ("demoted", "0_1", "standby"), ("standby_added", "0_0", "standby"),
    ]  # fmt: skip


def test_a_member_that_only_reaches_an_epoch_is_told_from_the_bytes_of_its_last_record() -> None:
    script = Script().at(0).member("A").settled(2, A=[0, 1]).at(1).epoch(3).target(3)
    first = script.rows[-3]
    assert first.type == "ConsumerGroupCurrentMemberAssignment"
    version, epoch, rest = (first.value or b"")[:2], (3).to_bytes(4, "big"), (first.value or b"")[6:]

    def told(value: bytes) -> tuple[list[tuple[str, str | None]], int]:
        row = first._replace(offset=len(script.rows), timestamp=script.now_ms + 1_000, value=value)
        out = fold(None, [*script.rows, row])[1]
        return [(each.event, each.new) for each in out.events[-2:]], len(out.faults)

    assert told(version + epoch + rest) == ([("member_epoch", "3"), ("state_changed", "Stable")], 0)
    assert told(b"\0\7" + epoch + rest) == ([("target_computed", "3"), ("state_changed", "Reconciling")], 1)
    assert told(version + epoch) == ([("target_computed", "3"), ("state_changed", "Reconciling")], 1)


def test_a_group_that_is_replaced_by_one_of_another_type_is_created_once() -> None:
    consumer = Script().at(0).member("A").settled(2, A=[0])
    value = encode_framed(ShareGroupMetadataValue(epoch=3), 0)
    share = [RecordRow(0, 100 + nth, Script.START_MS + 1_000, "ShareGroupMetadata", b"", value) for nth in range(2)]

    events = fold(None, [*consumer.rows, *share])[1].events

    assert [(each.type, each.new) for each in events if each.event == "created"] == [
        ("consumer", "consumer"),
        ("share", "share"),
    ]
