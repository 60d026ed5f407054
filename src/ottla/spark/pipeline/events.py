"""Events on disk, and the frames that jobs take.

A run reads its origin once and writes the events as Parquet, so that every job reads them quickly and they need no
memory; a stream keeps them for good, because brokers compact and delete records.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from ottla.spark.pipeline.event_decoder import COMMITS, ENDS, RECORDS, SAMPLES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["INPUTS", "frames_of"]

INPUTS: Final = (RECORDS, COMMITS, SAMPLES, ENDS)
_COLUMNS: Final = {
    RECORDS: (
        "cluster", "topic", "partition", "offset", "ts as timestamp", "type", "group", "key", "value", "share_topic_id",
        "share_partition",
    ),
    COMMITS: ("cluster", "partition", "offset", "ts", "group", "commit_topic", "commit_partition", "committed"),
    SAMPLES: (
        "cluster", "type as kind", "entity", "ts", "observer", "seq", "error", "heartbeat", "dropped", "body",
    ),
    ENDS: ("cluster", "topic", "share_topic_id as topic_id", "partition", "ts", "offset as end"),
}  # fmt: skip


def frames_of(events: DataFrame, has: Mapping[str, int]) -> dict[str, DataFrame]:
    """The inputs of the jobs by name, without empty frames."""
    return {
        name: events.where(F.col("input") == name).selectExpr(*(_quoted(each) for each in _COLUMNS[name]))
        for name in INPUTS
        if has.get(name)
    }


def _quoted(column: str) -> str:
    name, _, alias = column.partition(" as ")
    return f"`{name}` as `{alias or name}`"
