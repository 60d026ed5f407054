"""The table of the quorum: lag of replicas, elections, and time without a leader."""

from typing import Any

from ottla.spark.jobs.params import Params
from ottla.spark.jobs.quorum_lag import quorum_lag
from ottla.spark.jobs.tables import QUORUM_LAG
from tests.unit.spark.jobs.frames import metadata, rows_of, samples


def look(ts: int, leader: int, epoch: int, *ends: int, behind_ms: int = 0) -> tuple[int, str, dict[str, Any]]:
    replicas = [
        {"id": id, "log_end": end, "last_fetch_ts": ts - behind_ms * (id != leader), "last_caught_up_ts": ts - behind_ms * (id != leader)}
        for id, end in enumerate(ends, 1)
    ]  # fmt: skip
    return ts, "quorum", {"leader": leader, "leader_epoch": epoch, "replicas": replicas}


def table(spark: Any, *told: tuple[int, str, dict[str, Any] | str]) -> list[dict[str, Any]]:
    return rows_of(quorum_lag({"samples": samples(spark, *told)}, Params()), "window_start", "replica")


def test_replicas_are_measured_against_the_leader(spark: Any):
    found = table(spark, look(10_000, 1, 3, 100, 90, behind_ms=40), look(11_000, 1, 3, 200, 110, behind_ms=500))
    leader, follower = found
    assert (leader["role"], leader["lag_offsets_max"], leader["lag_ms_max"]) == ("leader", 0, 0)
    assert (follower["role"], follower["lag_offsets_max"], follower["lag_offsets_avg"]) == ("voter", 90, 50.0)
    assert (follower["lag_ms_max"], follower["fetch_age_ms_max"], follower["window_start"]) == (500, 500, 10_000)
    assert list(found[0]) == list(QUORUM_LAG.names)
    assert {row["run_date"] for row in found} == {"1970-01-01"}


def test_what_a_replica_did_not_tell_is_not_known(spark: Any):
    never = {"id": 2, "log_end": None, "last_fetch_ts": -1, "last_caught_up_ts": -1}
    ts, kind, body = look(0, 1, 1, 100)
    body["replicas"].append(never)
    follower = table(spark, (ts, kind, body))[1]
    assert [follower[name] for name in ("lag_offsets_max", "lag_ms_max", "fetch_age_ms_max")] == [None, None, None]


def test_an_election_between_two_looks_took_at_most_the_time_between(spark: Any):
    first, second = table(spark, look(1_000, 1, 3, 9), look(9_000, 1, 3, 9), look(12_500, 1, 5, 9))
    assert (first["elections"], first["leaderless_ms"], first["leaderless_is_bound"]) == (0, 0, False)
    assert (second["elections"], second["leaderless_ms"], second["leaderless_is_bound"]) == (2, 3_500, True)


def test_a_time_that_was_seen_without_leader_is_no_bound(spark: Any):
    (row,) = table(spark, look(1_000, 1, 3, 9), look(2_000, -1, 4, 9), look(5_000, 1, 4, 9))[:1]
    assert (row["elections"], row["leaderless_ms"], row["leaderless_is_bound"]) == (1, 3_000, False)


def test_looks_that_failed_say_nothing(spark: Any):
    (row,) = table(spark, look(1_000, 1, 3, 9), (2_000, "quorum", "UNREACHABLE"))
    assert row["elections"] == 0


def test_without_samples_the_log_tells_the_elections(spark: Any):
    told = metadata(spark, (5, "LeaderChange", 1, {"leaderId": 7}), (9, "LeaderChange", 2, {"leaderId": 7}))
    (row,) = rows_of(quorum_lag({"metadata": told}, Params()), "replica")
    assert (row["replica"], row["leader_epoch"], row["elections"], row["source"]) == (7, 2, 2, "records")
    both = {"metadata": told, "samples": samples(spark, look(1, 1, 1, 1))}
    assert {row["source"] for row in rows_of(quorum_lag(both, Params()), "replica")} == {"samples"}


def test_only_the_range_that_was_asked_for(spark: Any):
    told = samples(spark, look(1_000, 1, 3, 9), look(20_000, 1, 4, 9))
    (row,) = rows_of(quorum_lag({"samples": told}, Params(from_ms=20_000)), "replica")
    assert (row["window_start"], row["elections"]) == (20_000, 1)
