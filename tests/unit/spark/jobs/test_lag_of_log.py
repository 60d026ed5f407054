"""The rows of lag, from records and samples of groups that stop, go on, and are deleted, over some hours."""

from __future__ import annotations

import json
import random
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from ottla.spark.jobs import lag_of_log
from ottla.spark.jobs.consumer_lag import GROUP_TYPES, TOPIC_IDS, lag_events, lag_table
from ottla.spark.jobs.lag_of_log import LAG_EVENT, LAG_ROW, LOG, lag_rows
from ottla.spark.jobs.params import HOUR_MS, Params
from ottla.spark.schemas import arrow_schema
from tests.unit.spark.jobs.lag_model import Row, key_of
from tests.unit.spark.jobs.lag_model import lag_rows as rows_of_model

TOPICS = ("orders", "payments")
GROUP_TYPE = pa.schema([(name, pa.string()) for name in ("cluster", "group", "type")])
TOPIC_ID = pa.schema([(name, pa.string()) for name in ("cluster", "topic", "topic_id")])
COMMITTED = {
    "cluster": "string", "offset": "bigint", "ts": "bigint", "group": "string", "commit_topic": "string",
    "commit_partition": "int", "committed": "bigint",
}  # fmt: skip
END = {
    "cluster": "string",
    "topic": "string",
    "topic_id": "string",
    "partition": "int",
    "ts": "bigint",
    "end": "bigint",
}
SAMPLE = {"cluster": "string", "kind": "string", "ts": "bigint", "seq": "bigint", "error": "string", "body": "string"}


class History(NamedTuple):
    commits: list[Row]
    ends: list[Row]
    samples: list[Row]

    def rows(self, params: Params | None = None, **known: pa.Table) -> list[Row]:
        """The rows of the table."""
        kinds = zip(self._fields, self, (COMMITTED, END, SAMPLE), strict=True)
        tables = {name: pa.Table.from_pylist(rows, arrow_schema(kind)) for name, rows, kind in kinds}
        events = [
            batch
            for name, table in tables.items()
            for batch in lag_events(name, table.to_batches(), "read_uncommitted")
        ]
        inputs = {GROUP_TYPES: GROUP_TYPE.empty_table(), TOPIC_IDS: TOPIC_ID.empty_table()} | known
        return lag_table(pa.Table.from_batches(events), inputs, params or Params()).to_pylist()

    def commit(self, ts: int, group: str, committed: int | None, topic: str = "orders") -> None:
        self.commits.append(
            {
                "cluster": "c", "offset": len(self.commits), "ts": ts, "group": group, "commit_topic": topic,
                "commit_partition": 0, "committed": committed,
            }
        )  # fmt: skip

    def end(self, ts: int, end: int, topic: str = "orders") -> None:
        self.ends.append({"cluster": "c", "topic": topic, "topic_id": None, "partition": 0, "ts": ts, "end": end})

    def sample(self, ts: int, group: str, **told: Any) -> None:
        body = json.dumps({"group": group, "topic": "orders", "partition": 0, **told})
        seq = len(self.samples)
        self.samples.append({"cluster": "c", "kind": "lag", "ts": ts, "seq": seq, "error": None, "body": body})


def nothing() -> History:
    return History([], [], [])


def history(seed: int) -> History:
    rng, made, now = random.Random(seed), nothing(), HOUR_MS
    for number in range(10):  # stuck for a while, long after all others
        made.end(100 * HOUR_MS + 10_000 * number, 1_000 + 10 * number)
        made.commit(100 * HOUR_MS + 10_000 * number, "a", 1)
    ends = dict.fromkeys(TOPICS, 0)
    for _ in range(400):
        now += rng.choice((300, 2_000, 10_000, 10_000, 600_000))
        topic = rng.choice(TOPICS)
        if rng.random() < 0.7:
            ends[topic] += rng.randint(1, 9)
            made.end(now, ends[topic], topic)
        group, ts = rng.choice("aaaab"), now - rng.choice((0, 0, 400_000))
        if rng.random() < 0.4:
            made.commit(ts, group, None if rng.random() < 0.1 else rng.randint(0, ends[topic]), topic)
    assert now < 100 * HOUR_MS
    return made


@pytest.mark.parametrize("from_ms", [None, 3 * HOUR_MS])
@pytest.mark.parametrize("seed", range(10))
def test_rows_from_records_are_those_of_the_model(seed: int, from_ms: int | None):
    made = history(seed)
    expected = rows_of_model(made.commits, made.ends, from_ms or 0)
    found = sorted(made.rows(Params(from_ms=from_ms)), key=key_of)
    assert len(expected) > 100
    assert any(row["stuck"] for row in expected)
    for row, model in zip(found, expected, strict=True):
        cells = {name: row[name] for name in model}
        assert cells == {name: pytest.approx(cell) if isinstance(cell, float) else cell for name, cell in model.items()}


@pytest.mark.parametrize("size", [1, 7, 100])
def test_events_may_come_in_batches_of_any_size(size: int):
    rng = random.Random(size)
    columns = list(LAG_EVENT)
    cells = [
        (
            "c",
            f"t{rng.randint(0, 5)}",
            rng.randint(0, 1),
            1,
            None,
            rng.choice("ab"),
            ts,
            ts,
            rng.randint(0, 9),
            None,
            None,
        )
        for ts in range(0, 300_000, 1_000)
    ]
    rows = [dict(zip(columns, row, strict=True)) for row in cells]
    events = pa.Table.from_pylist(rows, arrow_schema(LAG_EVENT)).sort_by([(name, "ascending") for name in LOG])
    whole, cut = (
        pa.Table.from_batches(lag_rows(events.to_batches(most), Params()), arrow_schema(LAG_ROW))
        for most in (1_000, size)
    )
    assert whole.num_rows > 100
    assert cut == whole


def test_samples_tell_of_a_group_in_their_hours_and_records_of_all_others():
    made = nothing()
    for hour in range(3):
        for group in ("sampled", "other"):
            made.commit(hour * HOUR_MS, group, hour)
    made.sample(HOUR_MS + 60_000, "sampled", committed=1, high_watermark=5)
    rows = made.rows()
    told = sorted((row["group"], row["window_start"] // HOUR_MS, row["source"]) for row in rows)
    assert told == [
        ("other", 0, "records"), ("other", 1, "records"), ("other", 2, "records"),
        ("sampled", 0, "records"), ("sampled", 1, "samples"), ("sampled", 2, "records"),
    ]  # fmt: skip


def test_samples_that_nobody_can_read_are_left_out():
    made = nothing()
    made.sample(0, "fine", committed=1, high_watermark=2)
    made.sample(0, "nothing committed", committed=-1, high_watermark=2)
    made.sample(0, "unknown")
    made.samples.extend(made.samples[0] | {"body": body} for body in ("{", "[]", '{"group": 1}', "null"))
    for name, number in (
        ("partition", 2**31),
        ("committed", 2**63),
        ("high_watermark", 2**63),
        ("committed_ts", 2**64),
    ):
        made.sample(0, f"no table has room for this {name}", **{"committed": 1, "high_watermark": 2, name: number})
    rows = made.rows()
    assert [(row["group"], row["lag_records"]) for row in rows] == [("fine", 1)]


def test_logs_without_anything_new_or_without_readers_are_not_looked_at(monkeypatch: pytest.MonkeyPatch):
    made = nothing()
    for topic, commits, ends in (("busy", 100, 100), ("stopped", 1, 100), ("old", 1, 1), ("unread", 0, 100)):
        for hour in range(max(commits, ends)):
            if hour < commits:
                made.commit(hour * HOUR_MS, "g", hour, topic)
            if hour < ends:
                made.end(hour * HOUR_MS + 1, hour + 1, topic)
    looked_at: list[str] = []
    rows_of_log = lag_of_log._rows_of_log

    def noted(place: Any, *rest: Any) -> Any:
        looked_at.append(place[1])
        return rows_of_log(place, *rest)

    monkeypatch.setattr(lag_of_log, "_rows_of_log", noted)
    rows = made.rows(Params(from_ms=98 * HOUR_MS))
    assert {(row["topic"], row["window_start"] // HOUR_MS, row["committed"]) for row in rows} == {
        ("busy", 98, 98), ("busy", 99, 99), ("stopped", 98, 0), ("stopped", 99, 0),
    }  # fmt: skip
    assert looked_at == ["busy", "stopped"]


def test_many_rows_come_in_several_batches(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(lag_of_log, "ROWS", 3)
    made = nothing()
    for number in range(10):
        made.sample(20_000 * number, "g", committed=number, high_watermark=number)
    assert [row["committed"] for row in made.rows()] == list(range(10))


def test_a_sample_without_an_end_offset_has_no_lag():
    made = nothing()
    made.sample(0, "g", committed=3)
    made.sample(20_000, "g", committed=3, high_watermark=9)
    made.sample(40_000, "g", committed=4)
    rows = made.rows()
    assert [(row["high_watermark"], row["lag_records"], row["stuck"]) for row in rows] == [
        (None, None, None), (9, 6, False), (None, None, None),
    ]  # fmt: skip
    assert [row["rate_in"] for row in rows] == [None] * 3
    assert [row["rate_out"] for row in rows] == [None, 0.0, pytest.approx(0.05)]


def test_share_groups_have_no_rows_and_others_their_types():
    made = nothing()
    for group in ("shared", "streams", "unknown"):
        made.commit(0, group, 1)
    types = [
        {"cluster": "c", "group": "shared", "type": "share"},
        {"cluster": "c", "group": "streams", "type": "streams"},
    ]
    rows = made.rows(group_types=pa.Table.from_pylist(types, GROUP_TYPE))
    assert sorted((row["group"], row["type"]) for row in rows) == [("streams", "streams"), ("unknown", None)]


def test_end_offsets_of_an_earlier_topic_with_this_name_are_not_used():
    made = nothing()
    made.commit(5_000, "g", 2)
    for topic_id, ts, end in (("old", 1_000, 90), ("new", 2_000, 4)):
        made.end(ts, end)
        made.ends[-1]["topic_id"] = topic_id
    ids = pa.Table.from_pylist([{"cluster": "c", "topic": "orders", "topic_id": "new"}], TOPIC_ID)
    (row,) = made.rows(topic_ids=ids)
    assert (row["topic_id"], row["high_watermark"], row["lag_records"]) == ("new", 4, 2)
