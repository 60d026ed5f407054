"""Groups as an observer saw them: the same rows as from records, as far as samples can tell."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ottla.health.facts import Gone, Group, GroupMember, Tasks, TopicPartitions
from ottla.spark.jobs.folds.fold import SampleRow, fold
from ottla.spark.jobs.folds.rows import Out
from tests.unit.spark.jobs.histories import Script

START_MS = Script.START_MS


def sample(second: float, fact: Group | Gone) -> SampleRow:
    return SampleRow(START_MS + round(second * 1000), fact.kind, msgspec.json.encode(fact).decode())


def member(name: str, epoch: int, *held: int, target: tuple[int, ...] | None = None, **more: Any) -> GroupMember:
    def topic(partitions: tuple[int, ...]) -> tuple[TopicPartitions, ...]:
        return (TopicPartitions(topic="t", partitions=partitions),) if partitions else ()

    return GroupMember(
        member=name, epoch=epoch, assigned=topic(held), target=topic(held if target is None else target), **more
    )


def group(
    epoch: int, *members: GroupMember, assigned: int | None = None, state: str = "Stable", kind: str = "consumer"
) -> Group:
    return Group(
        group="g", type=kind, state=state, group_epoch=epoch, members=members,
        assignment_epoch=epoch if assigned is None else assigned,
    )  # fmt: skip


def seen(*samples: SampleRow) -> Out:
    return fold(None, samples)[1]


def brief(out: Out) -> list[tuple[Any, ...]]:
    return [
        (
            each.group_epoch,
            each.ended_by,
            (each.started - START_MS) / 1000,
            None if each.ended is None else (each.ended - START_MS) / 1000,
            each.trigger,
        )
        for each in out.rebalances
    ]


REST = group(3, member("A", 3, 0, 1))
JOINING = group(4, member("A", 3, 0, 1, target=(0,)), member("B", 4, target=(1,)), state="Reconciling")
JOINED = group(4, member("A", 4, 0), member("B", 4, 1))


def test_a_rebalance_from_samples() -> None:
    out = seen(sample(0, REST), sample(1, JOINING), sample(3, JOINED))

    assert brief(out) == [(4, "converged", 1, 3, "member_joined")]
    (over,) = out.rebalances
    assert (over.duration_ms, over.partitions_moved, over.members_touched) == (2000, 1, 2)
    assert (over.members_before, over.members_after, over.trigger_members) == (1, 2, ["B"])
    assert [(each.old, each.new) for each in out.events if each.event == "state_changed"] == [
        ("Empty", "Stable"), ("Stable", "Reconciling"), ("Reconciling", "Stable"),
    ]  # fmt: skip
    revoking = next(each for each in out.events if each.event == "partition_revoking")
    assert (revoking.member, revoking.old, revoking.offset) == ("A", '["t-1"]', None)


def test_who_was_there_at_the_first_sample_did_not_join() -> None:
    out = seen(sample(0, REST), sample(60, REST))

    assert out.rebalances == []
    assert [(each.event, each.detail) for each in out.events[:1]] == [("created", "first_seen")]
    assert out.windows[0].joins == 0
    assert out.windows[0].distinct_members == 1


def test_holes_and_restarts_of_the_observer() -> None:
    """A restart shows as the same group again; a hole hides epochs, and how long a rebalance took."""
    restarted = seen(sample(0, REST), sample(60, REST), sample(75, REST), sample(76, JOINING), sample(78, JOINED))
    assert brief(restarted) == [(4, "converged", 76, 78, "member_joined")]
    assert restarted.rebalances[0].duration_ms == 2000

    later = group(9, member("A", 9, 0), member("B", 9, 1))
    skipped = seen(sample(0, REST), sample(400, later))
    assert brief(skipped) == [(9, "converged", 400, 400, "member_joined")]
    assert skipped.windows[0].epochs == 6

    hidden = seen(sample(0, REST), sample(1, JOINING), sample(500, JOINED))
    assert brief(hidden) == [(4, "converged", 1, 500, "member_joined")]
    assert hidden.rebalances[0].duration_ms is None, "nobody saw when it was over"


def test_samples_of_the_same_moment_and_out_of_order_are_lived_with() -> None:
    in_order = seen(sample(0, REST), sample(1, JOINING), sample(3, JOINED))
    doubled = seen(sample(0, REST), sample(1, JOINING), sample(1, JOINING), sample(0.5, REST), sample(3, JOINED))

    assert doubled.rebalances == in_order.rebalances
    assert doubled.events == in_order.events


def test_a_group_that_is_gone_is_deleted() -> None:
    out = seen(sample(0, REST), sample(5, Gone(what="group", name="g")), sample(6, Gone(what="topic", name="t")))

    assert [each.event for each in out.events][-2:] == ["member_left", "deleted"]


def test_a_classic_group_tells_its_durations_only_in_samples() -> None:
    def classic(generation: int, state: str, *members: GroupMember) -> Group:
        return group(generation, *members, state=state, kind="classic")

    out = seen(
        sample(0, classic(4, "Stable", member("A", 4, 0, 1))),
        sample(1, classic(4, "PreparingRebalance", member("A", 4), member("B", 4))),
        sample(3, classic(5, "CompletingRebalance", member("A", 5), member("B", 5))),
        sample(4, classic(5, "Stable", member("A", 5, 0), member("B", 5, 1))),
    )

    assert brief(out) == [(5, "converged", 1, 4, "member_joined")]
    assert (out.rebalances[0].duration_ms, out.rebalances[0].partitions_moved) == (3000, 1)


def test_tasks_of_a_streams_group() -> None:
    def streams(epoch: int, **tasks: Tasks) -> Group:
        return Group(
            group="g", type="streams", state="Stable", group_epoch=epoch, assignment_epoch=epoch,
            members=tuple(
                GroupMember(member=name, epoch=epoch, process=f"p{name}", tasks=each, target_tasks=each)
                for name, each in tasks.items()
            ),
        )  # fmt: skip

    out = seen(
        sample(0, streams(3, A=Tasks(active=("0_0", "0_1")), B=Tasks(standby=("0_0",)))),
        sample(5, streams(4, A=Tasks(active=("0_0", "0_1")), B=Tasks(standby=("0_0",), warmup=("0_1",)))),
        sample(9, streams(5, A=Tasks(standby=("0_0",)), B=Tasks(active=("0_0", "0_1")))),
    )

    found = {(each.kind, each.task, each.from_member, each.to_member) for each in out.movements}
    assert found == {
        ("warmup_started", "0_1", None, "B"),
        ("warmup_done", "0_1", "B", "B"),
        ("moved", "0_1", "A", "B"),
        ("promoted", "0_0", "A", "B"),
        ("demoted", "0_0", "A", "A"),
    }
    assert out.rebalances[-1].tasks_moved == 2


def test_records_win_over_samples() -> None:
    script = Script().at(10).member("A").settled(2, A=[0])
    kept, first = fold(None, [sample(0, REST)])
    _, out = fold(kept, [*script.rows, sample(20, JOINING)])

    assert {each.offset for each in first.events} == {None}
    assert {each.offset is not None for each in out.events} == {True}
    assert [each.group_epoch for each in out.rebalances] == [2]


@pytest.mark.parametrize("body", ["", "{", "[]", '{"group": "g"}', '{"group": "g", "type": 7, "state": []}'])
def test_what_is_no_sample_is_said_and_passed_over(body: str) -> None:
    out = seen(sample(0, REST), SampleRow(START_MS + 500, "group", body), sample(1, JOINING), sample(3, JOINED))

    assert len(out.faults) == 1
    assert brief(out) == [(4, "converged", 1, 3, "member_joined")]
