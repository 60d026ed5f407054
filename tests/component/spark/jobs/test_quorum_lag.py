"""The table of the quorum: lag of replicas, elections, and time without a leader. Each case is a cluster of its own, so
that all of them are computed at once."""

from typing import Any

import pytest

from ottla.spark.jobs.params import Params
from ottla.spark.jobs.quorum_lag import quorum_lag
from ottla.spark.jobs.tables import QUORUM_LAG
from tests.component.spark.jobs.frames import Told, metadata, rows_by, samples


def look(ts: int, leader: int, epoch: int, *ends: int, behind_ms: int = 0) -> Told:
    replicas = []
    for number, end in enumerate(ends, 1):
        then = ts - behind_ms * (number != leader)
        replicas.append({"id": number, "log_end": end, "last_fetch_ts": then, "last_caught_up_ts": then})
    return ts, "quorum", {"leader": leader, "leader_epoch": epoch, "replicas": replicas}


def silent_follower() -> Told:
    ts, kind, body = look(0, 1, 1, 100)
    body["replicas"].append({"id": 2, "log_end": None, "last_fetch_ts": -1, "last_caught_up_ts": -1})
    return ts, kind, body


CASES: dict[str, tuple[Told, ...]] = {
    "measured": (look(10_000, 1, 3, 100, 90, behind_ms=40), look(11_000, 1, 3, 200, 110, behind_ms=500)),
    "silent": (silent_follower(),),
    "elected": (look(1_000, 1, 3, 9), look(9_000, 1, 3, 9), look(12_500, 1, 5, 9)),
    "leaderless": (look(1_000, 1, 3, 9), look(2_000, -1, 4, 9), look(5_000, 1, 4, 9)),
    "failed": (look(1_000, 1, 3, 9), (2_000, "quorum", "UNREACHABLE")),
}
ELECTIONS = (
    ("told by the log", 5, "LeaderChange", 1, {"leaderId": 7}),
    ("told by the log", 9, "LeaderChange", 2, {"leaderId": 7}),
    ("measured", 9, "LeaderChange", 2, {"leaderId": 7}),
)


@pytest.fixture(scope="module")
def inputs(spark: Any) -> dict[str, Any]:
    return {"samples": samples(spark, CASES), "metadata": metadata(spark, *ELECTIONS)}


@pytest.fixture(scope="module")
def table(inputs: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    return rows_by(quorum_lag(inputs, Params()), "cluster", "window_start", "replica")


def test_replicas_are_measured_against_the_leader(table: Any):
    leader, follower = table["measured"]
    assert (leader["role"], leader["lag_offsets_max"], leader["lag_ms_max"]) == ("leader", 0, 0)
    assert (follower["role"], follower["lag_offsets_max"], follower["lag_offsets_avg"]) == ("voter", 90, 50.0)
    assert (follower["lag_ms_max"], follower["fetch_age_ms_max"], follower["window_start"]) == (500, 500, 10_000)
    assert tuple(leader) == QUORUM_LAG.names
    assert (leader["run_date"], leader["source"]) == ("1970-01-01", "samples")


def test_what_a_replica_did_not_tell_is_not_known(table: Any):
    _, follower = table["silent"]
    assert [follower[name] for name in ("lag_offsets_max", "lag_ms_max", "fetch_age_ms_max")] == [None, None, None]


def test_an_election_between_two_looks_took_at_most_the_time_between(table: Any):
    first, second = table["elected"]
    assert (first["elections"], first["leaderless_ms"], first["leaderless_is_bound"]) == (0, 0, False)
    assert (second["elections"], second["leaderless_ms"], second["leaderless_is_bound"]) == (2, 3_500, True)


def test_a_time_that_was_seen_without_leader_is_no_bound(table: Any):
    (row,) = table["leaderless"]
    assert (row["elections"], row["leaderless_ms"], row["leaderless_is_bound"]) == (1, 3_000, False)


def test_looks_that_failed_say_nothing(table: Any):
    (row,) = table["failed"]
    assert row["elections"] == 0


def test_without_samples_the_log_tells_the_elections(table: Any):
    (row,) = table["told by the log"]
    assert (row["replica"], row["leader_epoch"], row["elections"], row["source"]) == (7, 2, 2, "records")
    assert row["lag_offsets_max"] is None


def test_only_the_range_that_was_asked_for(inputs: dict[str, Any]):
    found = rows_by(quorum_lag(inputs, Params(from_ms=10_000)), "cluster", "window_start")
    assert sorted(found) == ["elected", "measured"]
    assert found["elected"][0]["elections"] == 2, "what was before the range is known all the same"
