"""Frames for jobs, made by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from ottla.wire import uuid_text, versions
from ottla.wire.keyed import encode_framed

SAMPLES = (
    "cluster string, kind string, entity string, ts bigint, observer string, seq bigint, error string, "
    "heartbeat boolean, dropped bigint, body string"
)
COMMITS = (
    "cluster string, partition int, offset bigint, ts bigint, `group` string, commit_topic string, "
    "commit_partition int, committed bigint"
)
RECORDS = (
    "cluster string, topic string, partition int, offset bigint, timestamp bigint, type string, `group` string, "
    "key binary, value binary, share_topic_id string, share_partition int"
)
METADATA = "cluster string, offset bigint, timestamp bigint, type string, version int, epoch int, value string"
ENDS = "cluster string, topic string, topic_id string, partition int, ts bigint, end bigint"

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


def records(spark: Any, *rows: tuple[str, int, Any, Any]) -> Any:
    """(cluster, time, key, value), the last two as messages; no value is a tombstone."""
    return spark.createDataFrame([_record(offset, *row) for offset, row in enumerate(rows)], RECORDS)


def _record(offset: int, cluster: str, ts: int, key: Any, value: Any) -> tuple[Any, ...]:
    name = type(key).__name__
    key_bytes = encode_framed(key, versions(name)[0])
    value_bytes = None if value is None else encode_framed(value, versions(type(value).__name__)[-1])
    share = (uuid_text(key.topic_id), key.partition) if hasattr(key, "topic_id") else (None, None)
    return cluster, "t", 0, offset, ts, name.removesuffix("Key"), key.group_id, key_bytes, value_bytes, *share


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
