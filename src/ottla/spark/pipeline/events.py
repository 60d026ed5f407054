"""Events on disk, and the frames that jobs take.

A run reads its origin once and keeps what it read as Parquet, so that every job reads it quickly and no memory is
needed for it; a stream keeps what it read for good, since brokers compact and delete what they have.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from ottla.spark.pipeline.decoding import COMMITS, RECORDS, SAMPLES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["INPUTS", "frames_of", "metadata_frame", "topic_rows"]

INPUTS: Final = (RECORDS, COMMITS, SAMPLES)
_COLUMNS: Final = {
    RECORDS: ("cluster", "topic", "partition", "offset", "ts as timestamp", "type", "version", "group", "key", "value"),
    COMMITS: ("cluster", "partition", "offset", "ts", "group", "commit_topic", "commit_partition", "committed"),
    SAMPLES: (
        "cluster", "type as kind", "entity", "ts", "observer", "seq", "error", "heartbeat", "dropped", "value as body",
    ),
}  # fmt: skip
_METADATA: Final = "cluster string, offset bigint, timestamp bigint, type string, version int, epoch int, value string"


def frames_of(events: DataFrame, has: Mapping[str, int]) -> dict[str, DataFrame]:
    """The frames by the names that jobs know; those that have no rows are left out."""
    return {
        name: events.where(F.col("input") == name).selectExpr(*(_quoted(each) for each in _COLUMNS[name]))
        for name in INPUTS
        if has.get(name)
    }


def _quoted(column: str) -> str:
    name, _, alias = column.partition(" as ")
    return f"`{name}` as `{alias or name}`"


def metadata_frame(
    spark: SparkSession, cluster: str, rows: DataFrame | None, ids: Mapping[str, str]
) -> DataFrame | None:
    """Records of the metadata log; where it cannot be read, one for each topic that is known otherwise."""
    if rows is not None:
        return rows.select(
            F.lit(cluster).alias("cluster"),
            F.col("_offset").alias("offset"),
            F.unix_millis("_timestamp").alias("timestamp"),
            F.col("_record").alias("type"),
            F.col("_version").alias("version"),
            F.col("_epoch").alias("epoch"),
            "value",
        )
    return spark.createDataFrame(topic_rows(cluster, ids), _METADATA) if ids else None


def topic_rows(cluster: str, ids: Mapping[str, str]) -> list[tuple[str, int, int, str, int, int, str]]:
    """What the metadata log says of topics, made from what is known of them now."""
    import json

    return [
        (cluster, 0, 0, "TopicRecord", 0, 0, json.dumps({"name": name, "topicId": topic_id}))
        for name, topic_id in sorted(ids.items())
    ]
