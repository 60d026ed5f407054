"""What the runner of a share group's stream works out, with a group that is a list."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.spark.errors import OttlaSparkError
from ottla.spark.share import plan as plan_module
from ottla.spark.share.decisions import Decisions
from ottla.spark.share.offsets import Acquisition, ShareOffset, TopicIdPartition
from ottla.spark.share.plan import Acknowledgement, AcquiredPartition, Limits, SharePlan, tasks_of
from ottla.spark.share.ranges import cut, join, subtract
from ottla.wire.acknowledge_type import AcknowledgeType

HERE, THERE = TopicIdPartition("id-jobs", 0), TopicIdPartition("id-jobs", 1)
NOTHING = ShareOffset(0, "g")
MANY = 1000

# --- ranges -----------------------------------------------------------------------------------------------------------

RANGES = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 6)).map(lambda each: (each[0], sum(each))), max_size=6)


def offsets_of(ranges: Iterable[Sequence[int]]) -> set[int]:
    return {offset for first, last, *_ in ranges for offset in range(first, last + 1)}


@given(RANGES, RANGES)
def test_joined_ranges_ascend_apart_from_each_other(some: list[tuple[int, int]], more: list[tuple[int, int]]) -> None:
    joined = join(some, more)
    assert offsets_of(joined) == offsets_of(some) | offsets_of(more)
    assert all(before[1] + 1 < after[0] for before, after in pairwise(joined))


@given(RANGES, RANGES)
def test_subtracting_is_that_of_sets(some: list[tuple[int, int]], by: list[tuple[int, int]]) -> None:
    assert offsets_of(subtract(join(some), by)) == offsets_of(some) - offsets_of(by)


@given(st.integers(0, 20), st.integers(0, 30), RANGES)
def test_parts_of_a_cut_are_the_whole(first: int, size: int, by: list[tuple[int, int]]) -> None:
    parts = cut(first, first + size, join(by))
    assert [offset for part in parts for offset in range(part[0], part[1] + 1)] == list(range(first, first + size + 1))
    assert all((offset in offsets_of(by)) == part[2] for part in parts for offset in offsets_of([part[:2]]))


# --- offsets ----------------------------------------------------------------------------------------------------------


def test_the_same_offset_has_the_same_text() -> None:
    one = ShareOffset(3, "g", {THERE: (Acquisition(5, 9, 1),), HERE: (Acquisition(0, 1, 2),)}, {"id-jobs": "jobs"})
    other = ShareOffset(3, "g", {HERE: (Acquisition(0, 1, 2),), THERE: (Acquisition(5, 9, 1),)}, {"id-jobs": "jobs"})
    text = json.dumps(one.to_json())
    assert text == json.dumps(other.to_json())
    assert '"acq": {"id-jobs": {"0": [[0, 1, 2]], "1": [[5, 9, 1]]}}' in text


def test_an_offset_comes_back_from_its_text() -> None:
    offset = ShareOffset(3, "g", {HERE: (Acquisition(0, 1, 2),)}, {"id-jobs": "jobs"}, {THERE: ((4, 7), (9, 9))})
    assert ShareOffset.from_json(json.loads(json.dumps(offset.to_json())), "g") == offset


@pytest.mark.parametrize("found", [{"jobs": {"0": 23}}, {"v": 2, "seq": 1}, {}])
def test_checkpoints_of_others_are_refused(found: dict[str, Any]) -> None:
    with pytest.raises(OttlaSparkError, match="the checkpoint was not written by the format ottla-share"):
        ShareOffset.from_json(found, "g")


def test_a_checkpoint_belongs_to_one_group() -> None:
    with pytest.raises(OttlaSparkError, match="option group: the checkpoint belongs to group g, not to h"):
        ShareOffset.from_json(NOTHING.to_json(), "h")


# --- a group that is a list -------------------------------------------------------------------------------------------


class FakeMember:
    """Brings what tests put there; one answer for each call."""

    def __init__(self, *rounds: list[AcquiredPartition]) -> None:
        self.rounds = list(rounds)
        self.said: list[tuple[TopicIdPartition, Acknowledgement]] = []
        self.refuses: set[TopicIdPartition] = set()
        self.start_offsets: dict[TopicIdPartition, int] = {}
        self.asked: list[int] = []
        self.waited: list[bool] = []

    def acquire(self, max_records: int, *, waits: bool = True) -> list[AcquiredPartition]:
        self.asked.append(max_records)
        self.waited.append(waits)
        return self.rounds.pop(0) if self.rounds else []

    def settle(self, acknowledgements: Mapping[TopicIdPartition, Sequence[Acknowledgement]]) -> set[TopicIdPartition]:
        self.said += [(tp, each) for tp, some in acknowledgements.items() for each in some]
        return set(acknowledgements) - self.refuses

    def starts(self, places: Iterable[TopicIdPartition]) -> Mapping[TopicIdPartition, int]:
        return self.start_offsets


def held(first: int, last: int, count: int = 1, tp: TopicIdPartition = HERE) -> AcquiredPartition:
    return AcquiredPartition(tp, "jobs", [Acquisition(first, last, count)])


def plan_of(member: FakeMember, decisions: Decisions | None = None, **options: Any) -> SharePlan:
    return SharePlan(member, "g", decisions or Decisions(), **options)


def test_a_batch_is_what_was_acquired() -> None:
    member = FakeMember([held(0, 4)], [held(7, 9), held(2, 3, tp=THERE)])
    end = plan_of(member).next_end(NOTHING, MANY)
    assert end.seq == 1
    assert end.acquired == {HERE: (Acquisition(0, 4, 1), Acquisition(7, 9, 1)), THERE: (Acquisition(2, 3, 1),)}
    assert end.names == {"id-jobs": "jobs"}
    assert member.said == []


def test_no_more_is_asked_for_than_is_wanted() -> None:
    member = FakeMember([held(0, 4)], [held(5, 7)], [held(8, 9)])
    end = plan_of(member).next_end(NOTHING, 8)
    assert member.asked == [8, 3]
    assert offsets_of(end.acquired[HERE]) == set(range(8))


def test_only_the_first_records_of_a_batch_are_waited_for() -> None:
    member = FakeMember([held(0, 4)], [held(5, 7)], [], [])
    plan = plan_of(member)
    end = plan.next_end(NOTHING, MANY)
    assert member.waited == [True, False, False]
    plan.next_end(end, MANY)
    assert member.waited[3:] == [True]


def test_what_is_owed_is_not_what_was_waited_for() -> None:
    logged = ShareOffset(7, "g", {HERE: (Acquisition(0, 4, 1),)}, {"id-jobs": "jobs"})
    member = FakeMember([held(0, 4, 2)], [held(5, 7)])
    plan_of(member).next_end(logged, MANY)
    assert member.waited == [True, True, False]


def test_a_batch_is_limited_in_bytes() -> None:
    large = [held(each, each)._replace(size_bytes=40) for each in range(9)]
    member = FakeMember(*([each] for each in large))
    end = plan_of(member, limits=Limits(max_bytes=100)).next_end(NOTHING, MANY)
    assert offsets_of(end.acquired[HERE]) == {0, 1, 2}


def test_a_batch_is_limited_in_time() -> None:
    clock = iter(range(0, 9_000, 400))
    member = FakeMember(*([held(each, each)] for each in range(9)))
    plan = plan_of(member, now_ms=lambda: next(clock), limits=Limits(acquire_time_ms=1_000))
    assert offsets_of(plan.next_end(NOTHING, MANY).acquired[HERE]) == {0, 1, 2}


def test_records_that_come_again_while_a_batch_is_acquired_are_in_it_once() -> None:
    member = FakeMember([held(0, 9)], [held(3, 5, 2)])
    end = plan_of(member).next_end(NOTHING, MANY)
    assert end.acquired == {HERE: (Acquisition(0, 2, 1), Acquisition(3, 5, 2), Acquisition(6, 9, 1))}


def test_nothing_new_is_the_same_offset() -> None:
    assert plan_of(FakeMember()).next_end(NOTHING, MANY) is NOTHING


def test_offsets_stay_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_module, "RANGES_MAX", 3)
    member = FakeMember(*([held(number * 10, number * 10)] for number in range(9)))
    assert len(plan_of(member).next_end(NOTHING, MANY).acquired[HERE]) == 3


def test_a_batch_that_spark_has_not_run_is_given_again() -> None:
    plan = plan_of(FakeMember([held(0, 4)], [], [held(5, 9)]))
    end = plan.next_end(NOTHING, MANY)
    assert plan.next_end(NOTHING, MANY) is end


# --- settling ---------------------------------------------------------------------------------------------------------


def test_a_batch_is_accepted_once_the_next_is_asked_for() -> None:
    member = FakeMember([held(0, 4)], [], [held(5, 6)])
    plan = plan_of(member)
    first = plan.next_end(NOTHING, MANY)
    second = plan.next_end(first, MANY)
    assert member.said == [(HERE, Acknowledgement(0, 4, AcknowledgeType.ACCEPT))]
    assert (second.seq, second.owed) == (2, {})
    plan.settle(first)
    assert len(member.said) == 1


def test_an_idle_query_accepts_its_last_batch() -> None:
    member = FakeMember([held(0, 4)])
    plan = plan_of(member)
    end = plan.next_end(NOTHING, MANY)
    assert plan.next_end(end, MANY) is end
    assert member.said == [(HERE, Acknowledgement(0, 4, AcknowledgeType.ACCEPT))]


def test_what_is_not_stored_is_owed_and_accepted_when_it_comes_again() -> None:
    member = FakeMember([held(0, 4), held(0, 1, tp=THERE)], [], [held(5, 6)], [], [held(0, 4, 2)])
    plan = plan_of(member)
    first = plan.next_end(NOTHING, MANY)
    member.refuses = {HERE}
    second = plan.next_end(first, MANY)
    assert second.owed == {HERE: ((0, 4),)}
    member.refuses, member.said = set(), []
    assert plan.next_end(second, MANY) is second
    assert member.said == [
        (HERE, Acknowledgement(5, 6, AcknowledgeType.ACCEPT)),
        (HERE, Acknowledgement(0, 4, AcknowledgeType.ACCEPT)),
    ]


def test_batches_of_a_process_that_died_are_owed() -> None:
    logged = ShareOffset(7, "g", {HERE: (Acquisition(10, 14, 1),)}, {"id-jobs": "jobs"}, {HERE: ((5, 9),)})
    member = FakeMember([held(5, 14, 2)], [held(15, 16)])
    end = plan_of(member).next_end(logged, MANY)
    assert member.said == [(HERE, Acknowledgement(5, 14, AcknowledgeType.ACCEPT))]
    assert end.acquired == {HERE: (Acquisition(15, 16, 1),)}
    assert (end.seq, end.owed) == (8, {})


def test_owed_ranges_that_overlap_new_ones_are_split() -> None:
    logged = ShareOffset(7, "g", {HERE: (Acquisition(10, 14, 1), Acquisition(18, 19, 1))}, {"id-jobs": "jobs"})
    member = FakeMember([held(8, 25, 3)])
    end = plan_of(member).next_end(logged, MANY)
    assert [verdict for _, verdict in member.said] == [
        Acknowledgement(10, 14, AcknowledgeType.ACCEPT),
        Acknowledgement(18, 19, AcknowledgeType.ACCEPT),
    ]
    assert end.acquired == {HERE: (Acquisition(8, 9, 3), Acquisition(15, 17, 3), Acquisition(20, 25, 3))}


def test_what_is_owed_and_not_stored_stays_owed() -> None:
    logged = ShareOffset(7, "g", {HERE: (Acquisition(0, 4, 1),)}, {"id-jobs": "jobs"})
    member = FakeMember([held(0, 4, 2), held(0, 0, tp=THERE)])
    member.refuses = {HERE}
    assert plan_of(member).next_end(logged, MANY).owed == {HERE: ((0, 4),)}


def test_what_the_group_has_left_behind_is_owed_no_longer() -> None:
    clock = [0.0]
    logged = ShareOffset(7, "g", {HERE: (Acquisition(0, 4, 1), Acquisition(8, 9, 1))}, {"id-jobs": "jobs"})
    member = FakeMember([held(20, 20)], [], [held(21, 21)], [], [held(22, 22)])
    member.start_offsets = {HERE: 3, THERE: 99}
    plan = plan_of(member, now_ms=lambda: clock[0])
    first = plan.next_end(logged, MANY)
    assert first.owed == {HERE: ((3, 4), (8, 9))}
    member.start_offsets = {HERE: 100}
    second = plan.next_end(first, MANY)
    assert second.owed == first.owed, "it is looked at once in a minute"
    clock[0] = 60_000
    assert plan.next_end(second, MANY).owed == {}


# --- decisions --------------------------------------------------------------------------------------------------------


def batch_with(decisions: Decisions, member: FakeMember) -> tuple[SharePlan, ShareOffset]:
    member.rounds.insert(0, [held(0, 9)])
    plan = plan_of(member, decisions)
    end = plan.next_end(NOTHING, 10)
    decisions.expect(end)
    return plan, end


def test_decided_rows_are_not_accepted() -> None:
    decisions, member = Decisions(), FakeMember()
    plan, end = batch_with(decisions, member)
    assert decisions.add(1, "jobs", 0, [3, 4], AcknowledgeType.REJECT)
    assert decisions.add(1, "jobs", 0, [9], AcknowledgeType.RELEASE)
    plan.settle(end)
    assert [verdict for _, verdict in member.said] == [
        Acknowledgement(0, 2, AcknowledgeType.ACCEPT),
        Acknowledgement(3, 3, AcknowledgeType.REJECT),
        Acknowledgement(4, 4, AcknowledgeType.REJECT),
        Acknowledgement(5, 8, AcknowledgeType.ACCEPT),
        Acknowledgement(9, 9, AcknowledgeType.RELEASE),
    ]


def test_decisions_that_were_not_stored_are_made_when_the_rows_come_again() -> None:
    decisions, member = Decisions(), FakeMember()
    plan, end = batch_with(decisions, member)
    decisions.add(1, "jobs", 0, [3], AcknowledgeType.REJECT)
    decisions.add(1, "jobs", 0, [9], AcknowledgeType.RELEASE)
    member.refuses = {HERE}
    plan.settle(end)
    member.refuses, member.said = set(), []
    member.rounds = [[held(0, 9, 2)]]
    again = plan.next_end(end, MANY)
    assert [verdict for _, verdict in member.said] == [
        Acknowledgement(0, 2, AcknowledgeType.ACCEPT),
        Acknowledgement(3, 3, AcknowledgeType.REJECT),
        Acknowledgement(4, 8, AcknowledgeType.ACCEPT),
    ]
    assert again.acquired == {HERE: (Acquisition(9, 9, 2),)}, "what was released is shown again"


@pytest.mark.parametrize(
    ("seq", "topic", "partition", "offsets"),
    [(2, "jobs", 0, [1]), (1, "other", 0, [1]), (1, "jobs", 1, [1]), (1, "jobs", 0, [9, 10])],
)
def test_only_rows_of_the_batch_can_be_decided(seq: int, topic: str, partition: int, offsets: list[int]) -> None:
    decisions = Decisions()
    batch_with(decisions, FakeMember())
    assert not decisions.add(seq, topic, partition, offsets, AcknowledgeType.REJECT)
    assert decisions.take(1) == {}


def test_decisions_in_a_directory_outlive_the_process(tmp_path: Path) -> None:
    decisions = Decisions(str(tmp_path / "decided"))
    _, end = batch_with(decisions, FakeMember())
    decisions.add(1, "jobs", 0, [3], AcknowledgeType.REJECT)
    member = FakeMember([held(0, 9, 2)])
    plan_of(member, Decisions(str(tmp_path / "decided"))).next_end(end, MANY)
    assert (HERE, Acknowledgement(3, 3, AcknowledgeType.REJECT)) in member.said
    assert list((tmp_path / "decided").iterdir()) == []


# --- stopping ---------------------------------------------------------------------------------------------------------


def test_a_query_that_is_to_stop_leaves_what_comes_later_alone() -> None:
    member = FakeMember([held(0, 4), held(8, 9)], [held(5, 7)], [held(10, 12)])
    plan = plan_of(member)
    plan.stop_at({HERE: 8})
    end = plan.next_end(NOTHING, MANY)
    assert offsets_of(end.acquired[HERE]) == set(range(8))
    assert member.said == [], "released, it would come again and again"


def test_a_query_that_is_to_stop_does_not_wait_while_more_and_more_comes() -> None:
    clock = [0.0]

    class Endless(FakeMember):
        def acquire(self, max_records: int, *, waits: bool = True) -> list[AcquiredPartition]:
            clock[0] += 100
            assert clock[0] < 60_000, "it goes on for ever"
            return [held(10, 10)]

    plan = plan_of(Endless(), now_ms=lambda: clock[0])
    plan.stop_at({HERE: 8})
    assert plan.next_end(NOTHING, MANY) is NOTHING


def test_partitions_that_came_later_are_not_read_by_a_query_that_is_to_stop() -> None:
    plan = plan_of(FakeMember([held(0, 4, tp=THERE)]))
    plan.stop_at({HERE: 8})
    assert plan.next_end(NOTHING, MANY) is NOTHING


# --- tasks ------------------------------------------------------------------------------------------------------------

END = ShareOffset(
    4, "g", {THERE: (Acquisition(0, 6, 1),), HERE: (Acquisition(0, 3, 1), Acquisition(9, 12, 2))}, {"id-jobs": "jobs"}
)


def test_a_task_for_each_partition() -> None:
    tasks = tasks_of(END, None)
    assert [(task.tp, task.ranges, task.seq) for task in tasks] == [
        (HERE, END.acquired[HERE], 4),
        (THERE, END.acquired[THERE], 4),
    ]


def test_the_same_offset_gives_the_same_tasks() -> None:
    logged = ShareOffset.from_json(json.loads(json.dumps(END.to_json())), "g")
    assert tasks_of(logged, 3) == tasks_of(END, 3)


def test_tasks_of_a_size() -> None:
    tasks = tasks_of(END, 5)
    assert [task.ranges for task in tasks] == [
        (Acquisition(0, 3, 1), Acquisition(9, 9, 2)),
        (Acquisition(10, 12, 2),),
        (Acquisition(0, 4, 1),),
        (Acquisition(5, 6, 1),),
    ]
