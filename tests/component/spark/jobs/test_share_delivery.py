"""The table of deliveries, from records and from samples. Each case is a cluster of its own, so that all of them are
computed at once."""

from typing import Any

import pytest

from ottla.spark.jobs.params import Params
from ottla.spark.jobs.share_delivery import share_delivery
from ottla.spark.jobs.tables import SHARE_DELIVERY
from ottla.wire import uuid_text
from ottla.wire.types.share_state import ShareSnapshotKey, ShareUpdateKey, ShareUpdateValue
from tests.component.spark.jobs.frames import Told, records, rows_by, samples

TOPIC_ID = bytes(range(16))
ID = uuid_text(TOPIC_ID)
KEY = ShareUpdateKey("g", TOPIC_ID, 3)


def update(cluster: str, ts: int, *batches: tuple[int, int, int, int], start: int = -1) -> tuple[Any, ...]:
    states = tuple(ShareUpdateValue.StateBatch(*each) for each in batches)
    return cluster, ts, KEY, ShareUpdateValue(start_offset=start, state_batches=states)


def sampled(ts: int, offset: int, *batches: tuple[int, int, int, int], start: int | None = None) -> Told:
    states = [dict(zip(("first", "last", "state", "count"), each, strict=True)) for each in batches]
    place = {"group": "g", "topic_id": ID, "partition": 3, "offset": offset, "written_ms": ts}
    return ts + 700, "share_state", {**place, "start": start, "batches": states}


def offsets(ts: int, start: int, lag: int) -> Told:
    body = {"group": "g", "topic": "jobs", "topic_id": ID, "partition": 3, "start": start, "lag": lag}
    return ts, "share_offsets", body


def metrics(ts: int, delivered: int, **more: int) -> Told:
    return ts, "share_metrics", {"group": "g", "node": 1, "delivered": delivered, **more}


RECORDS = (
    update("records", 1_000, (0, 4, 0, 1), start=0),
    # The clock went back; the order of offsets counts.
    update("records", 900, (0, 4, 2, 2)),
    update("limits", 1, (0, 0, 4, 2), start=0),
    update("deleted", 1, start=0),
    ("deleted", 2, ShareSnapshotKey("g", TOPIC_ID, 3), None),
    # Of three records one is left; an observer has seen them all.
    update("pruned", 4, (0, 0, 2, 3)),
)
SAMPLES = {
    "records": (offsets(5_000, 0, 9), sampled(1_000, 0, (0, 4, 0, 1)), sampled(900, 1, (0, 4, 2, 2))),
    "samples": (sampled(1_000, 0, (0, 9, 2, 1), start=0), sampled(2_000, 1, (10, 10, 0, 1)), offsets(3_000, 10, 4)),
    "pruned": (sampled(1, 3, (0, 0, 0, 1), start=0), sampled(2, 4, (0, 0, 0, 2)), sampled(4, 5, (0, 0, 2, 3))),
    "metrics": (
        metrics(1_000, 10, rejected=2, lock_ms=500),
        metrics(61_000, 30, rejected=5, lock_expiries=1, lock_ms=900),
        metrics(62_000, 4, rejected=1, lock_ms=100),
    ),
}


@pytest.fixture(scope="module")
def table(spark: Any) -> dict[str, list[dict[str, Any]]]:
    inputs = {"records": records(spark, *RECORDS), "samples": samples(spark, SAMPLES)}
    params = Params(topic_names={ID: "jobs"}, share_limits={("limits", "g"): (2, 1_000)})
    return rows_by(share_delivery(inputs, params), "cluster", "window_start")


def test_records_tell_it_where_there_are_some(table: Any):
    (row,) = table["records"]
    assert tuple(row) == SHARE_DELIVERY.names
    assert (row["delivered"], row["redelivered"], row["accepted"], row["released"]) == (10, 5, 5, 5)
    assert (row["topic"], row["partition"], row["source"], row["lag"]) == ("jobs", 3, "records", 9)
    assert (row["rejected"], row["lock_expiries"], row["time_in_lock_ms"]) == (None, None, None)


def test_samples_of_records_tell_it_elsewhere(table: Any):
    (row,) = table["samples"]
    assert (row["accepted"], row["released"], row["start_offset"], row["lag"]) == (10, 1, 10, 4)
    assert (row["source"], row["lock_expiries_est"], row["topic"]) == ("samples", None, "jobs")


def test_records_that_are_gone_are_told_by_those_who_saw_them(table: Any):
    (row,) = table["pruned"]
    assert (row["delivered"], row["redelivered"], row["accepted"], row["source"]) == (3, 2, 1, "records")


def test_the_limit_of_the_group_makes_poison(table: Any):
    assert table["limits"][0]["poison"] == [0]


def test_state_that_was_deleted_is_no_delivery(table: Any):
    (row,) = table["deleted"]
    assert (row["delivered"], row["poison"]) == (0, [])


def test_what_brokers_counted_stands_in_rows_of_the_whole_group(table: Any):
    """A counter that fell belongs to a broker that began anew."""
    first, second = table["metrics"]
    assert (first["partition"], first["topic_id"], first["delivered"]) == (-1, "", None)
    assert (second["rejected"], second["lock_expiries"], second["time_in_lock_ms"]) == (4, 1, 500)
