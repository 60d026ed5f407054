"""Frames for jobs, made by hand."""

from __future__ import annotations

import json
from typing import Any

CLUSTER = "c"
SAMPLES = (
    "cluster string, kind string, entity string, ts bigint, observer string, seq bigint, error string, "
    "heartbeat boolean, dropped bigint, body string"
)
COMMITS = (
    "cluster string, partition int, offset bigint, ts bigint, `group` string, commit_topic string, "
    "commit_partition int, committed bigint"
)
RECORDS = (
    "cluster string, topic string, partition int, offset bigint, timestamp bigint, type string, version int, "
    "`group` string, key string, value string"
)
METADATA = "cluster string, offset bigint, timestamp bigint, type string, version int, epoch int, value string"
ENDS = "cluster string, topic string, partition int, ts bigint, end bigint"


def samples(spark: Any, *rows: tuple[int, str, dict[str, Any] | str]) -> Any:
    """(time, kind, body), or a text instead of the body: an error."""
    made = [
        (
            CLUSTER, kind, str((body if isinstance(body, dict) else {}).get("group", "")), ts, "o", seq,
            body if isinstance(body, str) else None, False, 0, None if isinstance(body, str) else json.dumps(body),
        )
        for seq, (ts, kind, body) in enumerate(rows)
    ]  # fmt: skip
    return spark.createDataFrame(made, SAMPLES)


def commits(spark: Any, *rows: tuple[int, str, int | None], topic: str = "orders") -> Any:
    """(time, group, offset)."""
    made = [(CLUSTER, 0, offset, ts, group, topic, 0, committed) for offset, (ts, group, committed) in enumerate(rows)]
    return spark.createDataFrame(made, COMMITS)


def records(spark: Any, *rows: tuple[int, str, str, dict[str, Any], dict[str, Any] | None]) -> Any:
    """(time, type, group, key, value)."""
    made = [
        (CLUSTER, "t", 0, offset, ts, kind, 0, group, json.dumps(key), None if value is None else json.dumps(value))
        for offset, (ts, kind, group, key, value) in enumerate(rows)
    ]
    return spark.createDataFrame(made, RECORDS)


def metadata(spark: Any, *rows: tuple[int, str, int, dict[str, Any]]) -> Any:
    """(time, type, epoch, value)."""
    made = [(CLUSTER, at, ts, kind, 0, epoch, json.dumps(value)) for at, (ts, kind, epoch, value) in enumerate(rows)]
    return spark.createDataFrame(made, METADATA)


def rows_of(frame: Any, *order: str) -> list[dict[str, Any]]:
    return [row.asDict(recursive=True) for row in frame.orderBy(*order).collect()]
