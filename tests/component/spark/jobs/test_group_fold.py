"""The tables about groups as Spark makes them: it and the plain fold give the same."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from ottla.health.facts import Group, GroupMember, TopicPartitions
from ottla.spark.jobs.folds.fold import fold
from ottla.spark.jobs.group_fold import fold_to_files, folded
from ottla.spark.jobs.params import Params
from ottla.spark.jobs.tables import GROUP_FACTS, TABLES, Table
from ottla.spark.pipeline.jobs import FOLDED, job_of
from tests.unit.spark.jobs.histories import Histories, Script, group_facts, listen, scenario_texts

RECORDS = (
    "cluster string, partition int, offset bigint, timestamp bigint, type string, `group` string, "
    "key binary, value binary"
)


SAMPLES = "cluster string, kind string, entity string, ts bigint, seq bigint, error string, body string"


JOBS: dict[Table, Callable[..., Any]] = {TABLES[name]: job_of(name) for name in FOLDED}


Tables = dict[str, dict[tuple[Any, ...], dict[str, Any]]]


@cache
def groups() -> Histories:
    """Groups of all kinds, each under the name of its scenario."""
    names = (
        "classic/session_expires", "consumer/static_steps_away", "consumer/revocation_never_confirmed",
        "consumer/delete_group", "share/describe", "share/session_expires", "streams/third_member_joins",
        "streams/warmup_before_a_task_moves", "streams/static_member_returns", "streams/source_topic_deleted",
    )  # fmt: skip
    texts = scenario_texts()
    return {name: listen(texts[name]).found["g"] for name in names}


def record_rows() -> list[tuple[Any, ...]]:
    others = [("c", 0, 10_000_000, 1, "OffsetCommit", "share/describe", b"", b"nobody looks at it")]
    return others + [
        ("c", row.partition, row.offset, row.timestamp, row.type, name, row.key, row.value)
        for name, rows in groups().items()
        for row in rows
    ]


def expected() -> Tables:
    """What the plain fold gives, as tables."""
    found: Tables = {table.name: {} for table in JOBS}
    for name, rows in groups().items():
        _, out = fold(None, rows)
        for row in out.rows():
            table = TABLES[str(row.key[0])]
            cells = {"cluster": "c", "group": name, "source": "records", **msgspec.to_builtins(row)}
            kept = {each: cells.get(each) for each in table.names if each != "run_date"}
            found[table.name][tuple(kept[each] for each in table.key)] = kept
    return found


def tables_of(rows: Iterable[Any]) -> Tables:
    """Folded rows as tables; of the same key the last counts, and what was taken back does not."""
    found: Tables = {table.name: {} for table in JOBS}
    for row in rows:
        if row.table == GROUP_FACTS.name:
            continue
        table = TABLES[row.table]
        kept = {each: row[each] for each in table.names if each != "run_date"}
        found[table.name][tuple(kept[each] for each in table.key)] = kept
    timeline = found["group_timeline"].items()
    is_told = {key: row["event"] != "state_changed" or row["old"] != row["new"] for key, row in timeline}
    found["group_timeline"] = {key: row for key, row in timeline if is_told[key]}
    return found


def records_in(spark: Any, folder: Path) -> Any:
    write(folder / "records.parquet", record_rows(), 0)
    return spark.read.schema(RECORDS).parquet(str(folder))


def test_a_batch_gives_what_the_plain_fold_gives(spark: Any, tmp_path: Path) -> None:
    params = Params()
    records = records_in(spark, tmp_path)
    made = folded({"records": records}, params).cache()

    assert tables_of(made.collect()) == expected()
    assert facts_of(made.collect()) == {
        name: [(ts, msgspec.json.encode(fact)) for ts, fact in group_facts(name, rows)]
        for name, rows in groups().items()
    }
    written = fold_to_files({"records": records}, params, tmp_path / "folded")
    for table, job in JOBS.items():
        frame = job(written, params)
        assert frame.count() == len(expected()[table.name])
        assert frame.schema.simpleString() == f"struct<{plain_ddl(table)}>"
        assert {row.run_date for row in frame.collect()} == {"2023-11-14"}


def facts_of(rows: Iterable[Any]) -> dict[str, list[tuple[int, bytes]]]:
    found: dict[str, list[tuple[int, bytes]]] = {}
    for row in sorted((row for row in rows if row.table == GROUP_FACTS.name), key=lambda row: row.seq):
        found.setdefault(row.group, []).append((row.ts, bytes(row.body)))
    return found


def plain_ddl(table: Table) -> str:
    return ",".join(f"{name}:{kind.ddl()}" for name, kind in table.columns)


def test_a_range_begins_in_the_middle_of_a_rebalance(spark: Any, tmp_path: Path) -> None:
    """What happened before the range is read, and not told."""
    middle_ms = 1_700_000_011_500  # the third member of the streams group waits
    params = Params(from_ms=middle_ms, to_ms=middle_ms + 60_000)
    name = "streams/third_member_joins"

    rows = (
        job_of("group_timeline")({"records": records_in(spark, tmp_path)}, params)
        .where(f"`group` = '{name}'")
        .collect()
    )

    whole = [row for row in expected()["group_timeline"].values() if row["group"] == name]
    later = [(row["ts"], row["seq"], row["event"]) for row in whole if row["ts"] >= middle_ms]
    assert sorted((row.ts, row.seq, row.event) for row in rows) == later
    assert "partition_revoked" in {row.event for row in rows}


def write(path: Path, rows: list[tuple[Any, ...]], number: int) -> None:
    names = [each.split()[0].strip("`") for each in RECORDS.split(", ")]
    columns = dict(zip(names, zip(*rows, strict=True), strict=True))
    fields = {"partition": pa.int32(), "offset": pa.int64(), "timestamp": pa.int64()}
    fields |= {"key": pa.binary(), "value": pa.binary()}
    schema = pa.schema([(name, fields.get(name, pa.string())) for name in names])
    pq.write_table(pa.table({name: list(values) for name, values in columns.items()}, schema=schema), path)
    os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))


def test_where_there_are_records_samples_are_not_used(spark: Any) -> None:
    def sample(group: str, second: int, epoch: int) -> tuple[Any, ...]:
        member = GroupMember(member="A", epoch=epoch, assigned=(TopicPartitions(topic="t", partitions=(0,)),))
        fact = Group(group=group, type="consumer", state="Stable", group_epoch=epoch, assignment_epoch=epoch,
                     members=(member,))  # fmt: skip
        body = msgspec.json.encode(fact).decode()
        return ("c", "group", group, Script.START_MS + second * 1000, second, None, body)

    failed = ("c", "group", "", Script.START_MS + 7000, 7, "UNREACHABLE", None)
    gone = ("c", "gone", "x", Script.START_MS + 9000, 9, None, '{"what": "group", "name": "sampled"}')
    seen = [sample(name, second, second) for name in ("g", "sampled") for second in (3, 4, 5)]
    samples = spark.createDataFrame([*seen, failed, gone], SAMPLES)
    script = Script().at(0).member("A").settled(2, A=[0])
    rows = [("c", row.partition, row.offset, row.timestamp, row.type, "g", row.key, row.value) for row in script.rows]
    records = spark.createDataFrame(rows, RECORDS)

    found = job_of("rebalances")({"records": records, "samples": samples}, Params()).collect()

    assert sorted((row.group, row.source, row.group_epoch) for row in found) == [
        ("g", "records", 2), ("sampled", "samples", 4), ("sampled", "samples", 5),
    ]  # fmt: skip
    events = job_of("group_timeline")({"samples": samples}, Params()).where("event = 'deleted'").collect()
    assert [row.group for row in events] == ["sampled"]
