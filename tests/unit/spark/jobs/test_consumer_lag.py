"""The table of lag: in records, in seconds, and what it does."""

from typing import Any

import pytest

from ottla.spark.jobs.consumer_lag import consumer_lag
from ottla.spark.jobs.params import Params
from ottla.spark.jobs.tables import CONSUMER_LAG
from tests.unit.spark.jobs.frames import CLUSTER, ENDS, commits, metadata, records, rows_of, samples

HOUR = 3_600_000


def lag(ts: int, committed: int, end: int, group: str = "g", **more: Any) -> tuple[int, str, dict[str, Any]]:
    place = {"group": group, "topic": "orders", "topic_id": "id", "partition": 0}
    return ts, "lag", {**place, "committed": committed, "high_watermark": end, "last_stable": end - 1, **more}


def table(spark: Any, *told: Any, params: Params | None = None) -> list[dict[str, Any]]:
    frame = consumer_lag({"samples": samples(spark, *told)}, params or Params())
    return rows_of(frame, "group", "window_start")


def test_a_window_shows_how_it_ended(spark: Any):
    first, second = table(spark, lag(1_000, 5, 10), lag(9_000, 8, 10), lag(10_000, 10, 10))
    assert (first["committed"], first["lag_records"], first["window_start"]) == (8, 2, 0)
    assert (second["lag_records"], second["lag_seconds"], second["eta_s"]) == (0, 0.0, 0.0)
    assert list(first) == list(CONSUMER_LAG.names)


def test_seconds_are_found_between_the_two_looks_at_which_the_log_passed_the_offset(spark: Any):
    """The log ended at 100 at 0 s and at 200 at 10 s: at 150 it ended after 5 s, and the group is there at 20 s."""
    *_, last = table(spark, lag(0, 0, 100), lag(10_000, 0, 200), lag(20_000, 150, 300))
    assert last["lag_seconds"] == pytest.approx(15.0)


def test_a_log_that_stood_still_counts_from_its_next_record(spark: Any):
    *_, last = table(spark, lag(0, 0, 100), lag(10_000, 0, 100), lag(20_000, 0, 200), lag(30_000, 100, 200))
    assert last["lag_seconds"] == pytest.approx(20.0)


def test_other_groups_tell_where_the_log_ended(spark: Any):
    *_, last = table(spark, lag(0, 0, 100, "a"), lag(10_000, 0, 200, "a"), lag(20_000, 150, 200, "b"))
    assert (last["group"], last["lag_seconds"]) == ("b", pytest.approx(15.0))


def test_before_the_first_look_the_last_record_that_was_read_tells_the_time(spark: Any):
    (row,) = table(spark, lag(20_000, 50, 100, committed_ts=8_000))
    assert row["lag_seconds"] == pytest.approx(12.0)
    (row,) = table(spark, lag(20_000, 50, 100))
    assert row["lag_seconds"] is None


def test_what_was_seen_more_than_an_hour_ago_is_not_used(spark: Any):
    looks = (lag(0, 0, 100), lag(1_000, 0, 200))
    *_, last = table(spark, *looks, lag(HOUR, 150, 300, committed_ts=HOUR - 7_000))
    assert last["lag_seconds"] == pytest.approx(3_599.5)
    *_, last = table(spark, *looks, lag(HOUR + 1, 150, 300, committed_ts=HOUR - 6_999))
    assert last["lag_seconds"] == pytest.approx(7.0)


def test_rates_and_when_it_will_be_over(spark: Any):
    _, second = table(spark, lag(5_000, 0, 100), lag(15_000, 50, 120))
    assert (second["rate_in"], second["rate_out"], second["eta_s"]) == (2.0, 5.0, pytest.approx(70 / 3))
    _, second = table(spark, lag(5_000, 0, 100), lag(15_000, 10, 120))
    assert second["eta_s"] is None, "it falls behind"


def growing(windows: int, step: int = 10_000, moved: int = 0) -> list[Any]:
    return [lag(index * step, 7 + moved * index, 100 + index * 10) for index in range(windows)]


def test_five_windows_of_growing_lag_without_a_commit_are_stuck(spark: Any):
    assert [row["stuck"] for row in table(spark, *growing(7))] == [False] * 5 + [True] * 2
    assert not any(row["stuck"] for row in table(spark, *growing(7, moved=1)))
    assert not any(row["stuck"] for row in table(spark, *growing(7, step=20_000))), "windows are missing"


def test_readers_of_what_is_committed_stop_at_the_last_stable_offset(spark: Any):
    (row,) = table(spark, lag(0, 5, 10), params=Params(isolation="read_committed"))
    assert (row["high_watermark"], row["lag_records"]) == (9, 4)


def test_share_groups_have_no_lag_here(spark: Any):
    told = (lag(0, 5, 10, "s"), (1, "group", {"group": "s", "type": "share"}), lag(2, 5, 10, "c"))
    kinds = (*told, (3, "group", {"group": "c", "type": "consumer"}))
    (row,) = table(spark, *kinds)
    assert (row["group"], row["type"]) == ("c", "consumer")


# --- records ----------------------------------------------------------------------------------------------------------


def test_commits_alone_tell_no_lag(spark: Any):
    frames = {
        "commits": commits(spark, (1_000, "g", 5), (2_000, "g", 7), (11_000, "g", None), (12_000, "h", 1)),
        "records": records(spark, (1, "ConsumerGroupMetadata", "g", {}, {"epoch": 1})),
        "metadata": metadata(spark, (1, "TopicRecord", 0, {"name": "orders", "topicId": "id"})),
    }
    g, h = rows_of(consumer_lag(frames, Params()), "group")
    assert (g["committed"], g["lag_records"], g["lag_seconds"], g["stuck"]) == (7, None, None, None)
    assert (g["type"], g["topic_id"], g["source"]) == ("consumer", "id", "records")
    assert (h["type"], h["committed"]) == (None, 1)


def test_commits_are_compared_with_where_the_log_ended_then(spark: Any):
    points = [(CLUSTER, "orders", 0, 0, 10), (CLUSTER, "orders", 0, 10_000, 20), (CLUSTER, "orders", 0, 60_000, 50)]
    frames = {"commits": commits(spark, (15_000, "g", 15)), "ends": spark.createDataFrame(points, ENDS)}
    then, now = rows_of(consumer_lag(frames, Params()), "window_start")
    assert (then["high_watermark"], then["lag_records"], then["lag_seconds"]) == (20, 5, pytest.approx(10.0))
    assert (now["window_start"], now["lag_records"], now["lag_seconds"]) == (60_000, 35, pytest.approx(55.0))


def test_days_that_were_sampled_are_told_by_samples(spark: Any):
    day = 24 * HOUR
    frames = {
        "samples": samples(spark, lag(day + 5, 1, 2)),
        "commits": commits(spark, (5, "g", 1), (day + 7, "g", 2), (day + 8, "h", 3)),
    }
    found = rows_of(consumer_lag(frames, Params()), "group", "window_start")
    assert [(row["group"], row["source"], row["committed"]) for row in found] == [
        ("g", "records", 1),
        ("g", "samples", 1),
        ("h", "records", 3),
    ]
