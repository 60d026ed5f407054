"""The table of lag: in records, in seconds, and what it does. Each case is a cluster of its own, computed at once."""

from typing import Any

import pytest

from ottla.spark.jobs.consumer_lag import consumer_lag
from ottla.spark.jobs.params import Params
from ottla.spark.jobs.tables import CONSUMER_LAG
from tests.component.spark.jobs.frames import ENDS, Told, commits, rows_by, samples

HOUR = 3_600_000
DAY = 24 * HOUR


def lag(ts: int, committed: int, end: int, group: str = "g", **more: Any) -> Told:
    place = {"group": group, "topic": "orders", "topic_id": "id", "partition": 0}
    return ts, "lag", {**place, "committed": committed, "high_watermark": end, "last_stable": end - 1, **more}


def growing(step: int = 10_000, moved: int = 0) -> tuple[Told, ...]:
    return tuple(lag(index * step, 7 + moved * index, 100 + index * 10) for index in range(7))


OLD = (lag(0, 0, 100), lag(1_000, 0, 200))
CASES: dict[str, tuple[Told, ...]] = {
    "ended": (lag(1_000, 5, 10), lag(9_000, 8, 10), lag(10_000, 10, 10)),
    "between": (lag(0, 0, 100), lag(10_000, 0, 200), lag(20_000, 150, 300)),
    "stood still": (lag(0, 0, 100), lag(10_000, 0, 100), lag(20_000, 0, 200), lag(30_000, 100, 200)),
    "others": (lag(0, 0, 100, "a"), lag(10_000, 0, 200, "a"), lag(20_000, 150, 200, "b")),
    "first": (lag(20_000, 50, 100, committed_ts=8_000),),
    "unknown": (lag(20_000, 50, 100),),
    "an hour": (*OLD, lag(HOUR, 150, 300, committed_ts=HOUR - 7_000)),
    "over an hour": (*OLD, lag(HOUR + 1, 150, 300, committed_ts=HOUR - 6_999)),
    "catches up": (lag(5_000, 0, 100), lag(15_000, 50, 120)),
    "falls behind": (lag(5_000, 0, 100), lag(15_000, 10, 120)),
    "stuck": growing(),
    "moves": growing(moved=1),
    "gaps": growing(step=20_000),
    "share": (lag(0, 5, 10, "s"), lag(2, 5, 10, "c")),
    "both": (lag(DAY + 5, 1, 2),),
}
COMMITS = (
    ("alone", 1_000, "g", 5),
    ("alone", 2_000, "g", 7),
    ("alone", 11_000, "g", None),
    ("alone", 12_000, "h", 1),
    ("both", 5, "g", 1),
    ("both", DAY + 7, "g", 2),
    ("both", DAY + 8, "h", 3),
)


TYPES = (("share", "s", "share"), ("share", "c", "consumer"), ("alone", "g", "consumer"))
GROUP_TYPES = "cluster string, `group` string, type string"
TOPIC_IDS = "cluster string, topic string, topic_id string"


@pytest.fixture(scope="module")
def inputs(spark: Any) -> dict[str, Any]:
    return {
        "samples": samples(spark, CASES),
        "commits": commits(spark, *COMMITS),
        "group_types": spark.createDataFrame(TYPES, GROUP_TYPES),
        "topic_ids": spark.createDataFrame([("alone", "orders", "id"), ("both", "orders", "id")], TOPIC_IDS),
    }


@pytest.fixture(scope="module")
def table(inputs: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    return rows_by(consumer_lag(inputs, Params()), "cluster", "group", "window_start")


def test_a_window_shows_how_it_ended(table: Any):
    first, second = table["ended"]
    assert (first["committed"], first["lag_records"], first["window_start"]) == (8, 2, 0)
    assert (second["lag_records"], second["lag_seconds"], second["eta_s"]) == (0, 0.0, 0.0)
    assert tuple(first) == CONSUMER_LAG.names


@pytest.mark.parametrize(
    ("case", "seconds"),
    [
        # The log ended at 100 at 0 s and at 200 at 10 s, so at 150 after 5 s; the group is there at 20 s.
        ("between", 15.0),
        ("stood still", 20.0),
        ("others", 15.0),
        ("first", 12.0),
        ("unknown", None),
        ("an hour", 3_599.5),
        ("over an hour", 7.0),
    ],
)
def test_lag_in_seconds(table: Any, case: str, seconds: float | None):
    assert table[case][-1]["lag_seconds"] == (None if seconds is None else pytest.approx(seconds))


def test_rates_and_when_it_will_be_over(table: Any):
    last = table["catches up"][-1]
    assert (last["rate_in"], last["rate_out"], last["eta_s"]) == (2.0, 5.0, pytest.approx(70 / 3))
    assert table["falls behind"][-1]["eta_s"] is None


def test_five_windows_of_growing_lag_without_a_commit_are_stuck(table: Any):
    assert [row["stuck"] for row in table["stuck"]] == [False] * 5 + [True] * 2
    assert not any(row["stuck"] for case in ("moves", "gaps") for row in table[case])


def test_share_groups_have_no_lag_here(table: Any):
    (row,) = table["share"]
    assert (row["group"], row["type"]) == ("c", "consumer")


def test_commits_alone_tell_no_lag(table: Any):
    g, h = table["alone"]
    assert (g["committed"], g["lag_records"], g["lag_seconds"], g["stuck"]) == (7, None, None, None)
    assert (g["type"], g["topic_id"], g["source"]) == ("consumer", "id", "records")
    assert (h["type"], h["committed"]) == (None, 1)


def test_days_that_were_sampled_are_told_by_samples(table: Any):
    found = [(row["group"], row["source"], row["committed"]) for row in table["both"]]
    assert found == [("g", "records", 1), ("g", "samples", 1), ("h", "records", 3)]


def test_commits_are_compared_with_where_the_log_ended_then(spark: Any):
    points = [("c", "orders", "id", 0, ts, end) for ts, end in ((0, 10), (10_000, 20), (60_000, 50))]
    frames = {"commits": commits(spark, ("c", 15_000, "g", 15)), "ends": spark.createDataFrame(points, ENDS)}
    then, now = rows_by(consumer_lag(frames, Params()), "cluster", "window_start")["c"]
    assert (then["high_watermark"], then["lag_records"], then["lag_seconds"]) == (20, 5, pytest.approx(10.0))
    assert (now["window_start"], now["lag_records"], now["lag_seconds"]) == (60_000, 35, pytest.approx(55.0))


def test_the_state_at_the_end_is_told_by_samples_if_there_are_any_in_its_hour(spark: Any):
    points = [("c", "orders", None, 0, 10_000, 20), ("c", "orders", None, 0, HOUR + 5_000, 50)]
    frames = {
        "commits": commits(spark, ("c", 15_000, "g", 15), ("c", HOUR + 1_000, "g", 40)),
        "samples": samples(spark, {"c": (lag(HOUR + 5_000, 40, 50, topic_id=None),)}),
        "ends": spark.createDataFrame(points, ENDS),
    }
    found = rows_by(consumer_lag(frames, Params()), "cluster", "window_start")["c"]
    told = [(row["window_start"], row["source"], row["committed"]) for row in found]
    assert told == [(10_000, "records", 15), (HOUR, "samples", 40)]


def test_end_offsets_of_an_earlier_topic_with_this_name_are_not_used(spark: Any):
    points = [("c", "orders", "old", 0, 0, 90), ("c", "orders", "id", 0, 9_000, 5), ("c", "orders", "old", 0, HOUR, 95)]
    frames = {
        "commits": commits(spark, ("c", 10_000, "g", 3)),
        "ends": spark.createDataFrame(points, ENDS),
        "topic_ids": spark.createDataFrame([("c", "orders", "id")], TOPIC_IDS),
    }
    (row,) = rows_by(consumer_lag(frames, Params()), "cluster")["c"]
    assert (row["high_watermark"], row["lag_records"]) == (5, 2)


def test_readers_of_what_is_committed_stop_at_the_last_stable_offset(inputs: dict[str, Any]):
    only = {"samples": inputs["samples"].where("cluster = 'unknown'")}
    (row,) = rows_by(consumer_lag(only, Params(isolation="read_committed")), "cluster")["unknown"]
    assert (row["high_watermark"], row["lag_records"]) == (99, 49)
