"""Frames for jobs, made by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

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

Told = tuple[int, str, Any]
"""Time, kind, and the body of a sample, or, as text, an error."""


def samples(spark: Any, told: Mapping[str, Sequence[Told]]) -> Any:
    """What was told of each cluster."""
    made = [
        (
            cluster, kind, "" if isinstance(body, str) else str(body.get("group", "")), ts, "o", seq,
            body if isinstance(body, str) else None, False, 0, None if isinstance(body, str) else json.dumps(body),
        )
        for cluster, rows in told.items()
        for seq, (ts, kind, body) in enumerate(rows)
    ]  # fmt: skip
    return spark.createDataFrame(made, SAMPLES)


def commits(spark: Any, *rows: tuple[str, int, str, int | None]) -> Any:
    """(cluster, time, group, offset)."""
    made = [(cluster, 0, at, ts, group, "orders", 0, offset) for at, (cluster, ts, group, offset) in enumerate(rows)]
    return spark.createDataFrame(made, COMMITS)


def records(spark: Any, *rows: tuple[str, int, str, str, Any, Any]) -> Any:
    """(cluster, time, type, group, key, value)."""
    made = [
        (cluster, "t", 0, offset, ts, kind, 0, group, json.dumps(key), None if value is None else json.dumps(value))
        for offset, (cluster, ts, kind, group, key, value) in enumerate(rows)
    ]
    return spark.createDataFrame(made, RECORDS)


def metadata(spark: Any, *rows: tuple[str, int, str, int, Any]) -> Any:
    """(cluster, time, type, epoch, value)."""
    made = [
        (cluster, offset, ts, kind, 0, epoch, json.dumps(value))
        for offset, (cluster, ts, kind, epoch, value) in enumerate(rows)
    ]
    return spark.createDataFrame(made, METADATA)


def rows_by(frame: Any, by: str, *order: str) -> dict[str, list[dict[str, Any]]]:
    """The rows of each cluster, or of each of something else, in order."""
    found = [row.asDict(recursive=True) for row in frame.orderBy(by, *order).collect()]
    return {name: list(rows) for name, rows in groupby(found, key=lambda row: row[by])}
