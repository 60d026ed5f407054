"""The tasks of a batch query."""

from typing import Any

import pytest

from ottla.spark.errors import OttlaSparkError
from ottla.spark.filters import Bounds
from ottla.spark.topic.plan import Task, join_tasks, plan_batch
from tests.unit.spark.fake_cluster import FakeLogs, at, topic_options

TWO = {at(0): (0, 100), at(1): (5, 50)}


def planned(logs: FakeLogs, bounds: Bounds | None = None, **given: str) -> list[tuple[int, int, int]]:
    tasks = plan_batch(logs, topic_options(**given).for_batch(), *([bounds] if bounds else []))
    return [(each.at.partition, each.start, each.until) for each in tasks]


def refusal(logs: FakeLogs, **given: str) -> str:
    with pytest.raises(OttlaSparkError) as raised:
        planned(logs, **given)
    return str(raised.value)


def test_everything_is_read_unless_told_otherwise():
    (task, _) = plan_batch(FakeLogs(TWO), topic_options())
    assert task == (at(0), "id-t", 0, 100, 1, 0)
    assert planned(FakeLogs(TWO)) == [(0, 0, 100), (1, 5, 50)]


@pytest.mark.parametrize(
    ("sizes", "least", "expected"),
    [
        ([5, 5, 5], 1, [[5], [5], [5]]),
        ([5, 5, 5], 5, [[5], [5], [5]]),
        ([5, 5, 5], 6, [[5, 5], [5]]),
        ([1, 2, 90, 3, 4], 10, [[1, 2, 90], [3, 4]]),
        ([], 10, []),
    ],
)
def test_small_ranges_are_read_by_one_task(sizes: list[int], least: int, expected: list[list[int]]):
    tasks = [Task(at(number), None, 7, 7 + size, 1, 0) for number, size in enumerate(sizes)]
    joined = join_tasks(tasks, least)
    assert [[part.until - part.start for part in each.parts] for each in joined] == expected
    assert [part for each in joined for part in each.parts] == tasks


def test_empty_partitions_have_no_task():
    assert planned(FakeLogs({at(0): (7, 7), at(1): (0, 0)})) == []


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"startingOffsets": '{"t":{"0":23,"1":-2}}'}, [(0, 23, 100), (1, 5, 50)]),
        ({"endingOffsets": '{"t":{"0":23,"1":-1}}'}, [(0, 0, 23), (1, 5, 50)]),
        ({"startingOffsets": '{"t":{"0":100,"1":40}}'}, [(1, 40, 50)]),
        ({"startingOffsets": '{"t":{"0":90,"1":40}}', "endingOffsets": '{"t":{"0":80,"1":45}}'}, [(1, 40, 45)]),
        ({"minPartitions": "4"}, [(0, 0, 33), (0, 33, 66), (0, 66, 100), (1, 5, 50)]),
        ({"maxRecordsPerPartition": "60"}, [(0, 0, 50), (0, 50, 100), (1, 5, 50)]),
    ],
)
def test_offsets_and_parts(given: dict[str, str], expected: Any):
    assert planned(FakeLogs(TWO), **given) == expected


def test_offsets_have_to_name_every_partition_and_no_other():
    text = refusal(FakeLogs(TWO), startingOffsets='{"t":{"0":1}}')
    assert text == "option startingOffsets: topic t partition 1 is missing; name every partition to read"
    text = refusal(FakeLogs(TWO), startingOffsets='{"t":{"0":1,"1":1,"2":1}}')
    assert text == "option startingOffsets: topic t partition 2 is not among the partitions to read"


def test_a_topic_that_is_not_there():
    logs = FakeLogs({})
    logs.missing = ("topic t",)
    assert refusal(logs) == "topic t does not exist"


# --- by time ----------------------------------------------------------------------------------------------------------


def timed() -> FakeLogs:
    logs = FakeLogs(TWO)
    logs.times = {(at(0), 1000): 60, (at(1), 1000): 20, (at(0), 2000): 80}
    return logs


def test_a_time_stands_for_the_first_record_not_before_it():
    assert planned(timed(), startingTimestamp="1000") == [(0, 60, 100), (1, 20, 50)]
    assert planned(timed(), endingTimestamp="2000") == [(0, 0, 80), (1, 5, 50)]
    given = {"startingOffsetsByTimestamp": '{"t":{"0":2000,"1":1000}}'}
    assert planned(timed(), **given) == [(0, 80, 100), (1, 20, 50)]


def test_no_record_so_late():
    text = refusal(timed(), startingTimestamp="2000")
    assert text.startswith("option startingTimestamp: topic t partition 1 has no record at or after 2000")
    given = {"startingOffsetsByTimestampStrategy": "latest"}
    assert planned(timed(), startingTimestamp="2000", **given) == [(0, 80, 100)]


# --- filters ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        (Bounds(partitions=frozenset({1})), [(1, 5, 50)]),
        (Bounds(topics=frozenset({"other"})), []),
        (Bounds(offset_from=40, offset_until=60), [(0, 40, 60), (1, 40, 50)]),
        (Bounds(time_from_ms=1000), [(0, 60, 100), (1, 20, 50)]),
        (Bounds(time_from_ms=2000), [(0, 80, 100)]),
        (Bounds(time_from_ms=-1), [(0, 0, 100), (1, 5, 50)]),  # records without a timestamp have this one
        (Bounds(time_from_ms=1000, offset_from=90), [(0, 90, 100)]),
        (Bounds(offset_from=60, offset_until=40), []),
    ],
)
def test_filters_narrow_the_plan(bounds: Bounds, expected: Any):
    assert planned(timed(), bounds) == expected


# --- data that is not there -------------------------------------------------------------------------------------------

LOST = FakeLogs({at(0): (10, 100)})


@pytest.mark.parametrize(
    ("given", "text", "expected"),
    [
        ({"startingOffsets": '{"t":{"0":5}}'}, "offsets 5..9 were deleted", [(0, 10, 100)]),
        (
            {"startingOffsets": '{"t":{"0":2}}', "endingOffsets": '{"t":{"0":8}}'},
            "offsets 2..7 were deleted",
            [],
        ),
        ({"startingOffsets": '{"t":{"0":105}}'}, "the log ends at offset 100, before 105", []),
        ({"endingOffsets": '{"t":{"0":105}}'}, "the log ends at offset 100, before 105", [(0, 10, 100)]),
    ],
)
def test_lost_data_is_an_error_or_left_out(given: dict[str, str], text: str, expected: Any):
    advice = "set failOnDataLoss=false to continue without them"
    assert refusal(LOST, **given) == f"data lost: topic t partition 0: {text}; {advice}"
    assert planned(LOST, failOnDataLoss="false", **given) == expected
