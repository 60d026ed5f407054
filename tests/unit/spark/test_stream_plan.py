"""A stream's decisions: where it begins, how far a batch goes, what its tasks read."""

import json

import pytest

from ottla.spark.errors import OttlaSparkError
from ottla.spark.offsets import Offsets, SourceOffset
from ottla.spark.topic.stream_plan import StreamPlan
from tests.unit.spark.fake_cluster import FakeLogs, at, topic_options

IDS = {"t": "id-t"}


def plan_of(logs: FakeLogs, **given: str) -> StreamPlan:
    return StreamPlan(logs, topic_options(**given).for_stream(), sleep=lambda seconds: None)


def place(offsets: Offsets, ids: dict[str, str] | None = None) -> SourceOffset:
    return SourceOffset(offsets, IDS if ids is None else ids)


def read(plan: StreamPlan, start: SourceOffset, end: SourceOffset) -> list[tuple[int, int, int]]:
    return [(each.at.partition, each.start, each.until) for each in plan.tasks_between(start, end)]


# --- where it begins --------------------------------------------------------------------------------------------------


def test_a_stream_begins_at_the_end_and_stays_there_until_it_has_run():
    logs = FakeLogs({at(0): (0, 7)})
    plan = plan_of(logs)
    assert plan.initial() == place({at(0): 7})
    logs.logs[at(0)] = (0, 9)
    assert plan.initial() == place({at(0): 7})


def test_the_first_batch_remembers_where_the_stream_began():
    logs = FakeLogs({at(0): (0, 7)})
    first = plan_of(logs)
    start = first.initial()
    logs.logs[at(0)] = (0, 9)
    end = SourceOffset.from_json(json.loads(json.dumps(first.next_end(start, None).to_json())))
    assert end == SourceOffset({at(0): 9}, IDS, {at(0): 7})

    logs.logs[at(0)] = (0, 30)
    after_restart = plan_of(logs)
    assert read(after_restart, after_restart.initial(), end) == [(0, 7, 9)]
    assert after_restart.next_end(end, None) == place({at(0): 30})


def test_a_topic_has_to_be_there_at_the_beginning():
    logs = FakeLogs({})
    logs.missing = ("topic t",)
    with pytest.raises(OttlaSparkError, match="topic t does not exist"):
        plan_of(logs).initial()


# --- how far a batch goes ---------------------------------------------------------------------------------------------


def test_nothing_new_is_the_start_itself():
    start = SourceOffset({at(0): 7}, IDS, {at(0): 2})
    assert plan_of(FakeLogs({at(0): (0, 7)})).next_end(start, None) is start


def test_a_limit_is_shared():
    logs = FakeLogs({at(0): (0, 800), at(1): (0, 160), at(2): (0, 55)})
    plan = plan_of(logs)
    end = plan.next_end(place({at(0): 0, at(1): 10, at(2): 5}), 100)
    assert end.offsets == {at(0): 80, at(1): 25, at(2): 10}
    assert plan.reported == place({at(0): 800, at(1): 160, at(2): 55})


def test_a_new_partition_begins_at_its_first_offset_and_counts_in_the_limit():
    logs = FakeLogs({at(0): (0, 100), at(1): (0, 100)})
    end = plan_of(logs).next_end(place({at(0): 0}), 100)
    assert end.offsets == {at(0): 50, at(1): 50}
    assert read(plan_of(logs), place({at(0): 0}), end) == [(0, 0, 50), (1, 0, 50)]


def test_too_little_is_waited_for():
    logs = FakeLogs({at(0): (0, 1)})
    plan = plan_of(logs, minOffsetsPerTrigger="10")
    first = plan.next_end(place({at(0): 0}), None)
    logs.logs[at(0)] = (0, 5)
    assert plan.next_end(first, None) is first
    logs.logs[at(0)] = (0, 11)
    assert plan.next_end(first, None).offsets == {at(0): 11}


def test_available_now_ends_at_what_was_there():
    logs = FakeLogs({at(0): (0, 10)})
    plan = plan_of(logs, minOffsetsPerTrigger="1000")
    plan.stop_at_what_is_there()
    first = plan.next_end(place({at(0): 0}), 6)
    logs.logs[at(0)] = (0, 50)
    second = plan.next_end(first, 6)
    assert (first.offsets, second.offsets) == ({at(0): 6}, {at(0): 10})
    assert plan.next_end(second, 6) is second


def test_an_end_before_the_start_is_asked_for_again():
    logs = FakeLogs({at(0): (0, 12)})
    logs.ends_to_come = [{at(0): 8}, {at(0): 9}]
    assert plan_of(logs).next_end(place({at(0): 10}), None).offsets == {at(0): 12}


# --- what was lost ----------------------------------------------------------------------------------------------------


def loses(logs: FakeLogs, start: SourceOffset, text: str) -> StreamPlan:
    """The same twice: failOnDataLoss ends the stream, and without it the stream goes on."""
    with pytest.raises(OttlaSparkError, match=text):
        plan_of(logs).next_end(start, None)
    return plan_of(logs, failOnDataLoss="false")


def test_a_partition_that_is_gone():
    logs = FakeLogs({at(0): (0, 10)})
    start = place({at(0): 5, at(0, "u"): 5}, {"t": "id-t", "u": "id-u"})
    plan = loses(logs, start, "data lost: topic u partition 0: it no longer exists")
    end = plan.next_end(start, None)
    assert end == place({at(0): 10})
    assert read(plan, start, end) == [(0, 5, 10)]
    with pytest.raises(OttlaSparkError, match="topic u partition 0"):
        read(plan_of(logs), start, end)


def test_a_stream_whose_last_topic_is_gone_goes_on_when_it_is_there_again():
    logs = FakeLogs({}, ids={})
    logs.missing = ("topic t",)
    plan = loses(logs, place({at(0): 5}), "data lost: topic t partition 0: it no longer exists")
    gone = plan.next_end(place({at(0): 5}), None)
    assert plan.next_end(gone, None) == gone == place({}, {})
    logs.logs, logs.ids, logs.missing = {at(0): (0, 3)}, {"t": "id-new"}, ()
    end = plan.next_end(gone, None)
    assert read(plan, gone, end) == [(0, 0, 3)]


def test_a_log_that_got_shorter_is_read_from_its_beginning():
    logs = FakeLogs({at(0): (2, 10)})
    start = place({at(0): 50})
    plan = loses(logs, start, "the log ends at offset 10, before 50")
    end = plan.next_end(start, None)
    assert read(plan, start, end) == [(0, 2, 10)]


def test_a_topic_made_anew_is_known_by_its_id():
    logs = FakeLogs({at(0): (0, 500)}, ids={"t": "id-new"})
    start = place({at(0): 50})
    plan = loses(logs, start, "data lost: topic t was recreated")
    end = plan.next_end(start, None)
    assert end == place({at(0): 500}, {"t": "id-new"})
    assert read(plan, start, end) == [(0, 0, 500)]


def test_a_limit_counts_a_topic_made_anew_from_its_beginning():
    logs = FakeLogs({at(0): (0, 500)}, ids={"t": "id-new"})
    end = plan_of(logs, failOnDataLoss="false").next_end(place({at(0): 450}), 100)
    assert end.offsets == {at(0): 100}


def test_a_batch_of_a_topic_that_was_made_anew_since_has_nothing_to_read():
    logs = FakeLogs({at(0): (0, 500)}, ids={"t": "id-new"})
    start, end = place({at(0): 5}), place({at(0): 50})
    with pytest.raises(OttlaSparkError, match="data lost: topic t was recreated"):
        read(plan_of(logs), start, end)
    assert read(plan_of(logs, failOnDataLoss="false"), start, end) == []


def test_offsets_without_ids_are_believed():
    logs = FakeLogs({at(0): (0, 60)})
    assert plan_of(logs).next_end(place({at(0): 50}, {}), None) == place({at(0): 60})


def test_retention_passes_the_start():
    logs = FakeLogs({at(0): (30, 60)})
    start, end = place({at(0): 10}), place({at(0): 50})
    with pytest.raises(OttlaSparkError, match=r"offsets 10\.\.29 were deleted"):
        read(plan_of(logs), start, end)
    assert read(plan_of(logs, failOnDataLoss="false"), start, end) == [(0, 30, 50)]


def test_a_new_partition_that_lost_its_beginning():
    logs = FakeLogs({at(0): (0, 5), at(1): (3, 9)})
    start, end = place({at(0): 5}), place({at(0): 5, at(1): 9})
    with pytest.raises(OttlaSparkError, match="it is new and starts at offset 3 instead of 0"):
        read(plan_of(logs), start, end)
    assert read(plan_of(logs, failOnDataLoss="false"), start, end) == [(1, 3, 9)]


def test_tasks_depend_on_nothing_but_start_and_end():
    logs = FakeLogs({at(0): (0, 100), at(1): (0, 100)})
    start, end = place({at(0): 10, at(1): 20}), place({at(0): 50, at(1): 60})
    first = plan_of(logs, minPartitions="5").tasks_between(start, end)
    logs.logs = {at(0): (0, 900), at(1): (0, 900)}
    assert plan_of(logs, minPartitions="5").tasks_between(start, end) == first
