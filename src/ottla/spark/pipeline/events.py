"""Events on disk, and the frames that jobs take.

A run reads its origin once and writes the events as Parquet, so that every job reads them quickly and they need no
memory; a stream keeps them for good, because brokers compact and delete records.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from ottla.spark.pipeline.event_decoder import COMMITS, ENDS, EVENT_COLUMNS, RECORDS, SAMPLES
from ottla.spark.pipeline.in_process import INPUT
from ottla.spark.schemas import arrow_schema

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds
    from pyspark.sql import DataFrame

__all__ = ["INPUTS", "batches_of", "frames_of"]

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


def batches_of(name: str, files: Sequence[Path], wanted: ds.Expression) -> Iterator[pa.RecordBatch]:
    """The same columns of an input, from files of events, without Spark. `wanted` is about the columns of the files."""
    import pyarrow.dataset as ds

    if files:
        schema = arrow_schema({each: kind for each, kind in EVENT_COLUMNS.items() if each != INPUT})
        columns = {alias: ds.field(column) for column, alias in map(_with_alias, _COLUMNS[name])}
        yield from ds.dataset([str(file) for file in files], schema).to_batches(columns=columns, filter=wanted)


def _quoted(column: str) -> str:
    name, alias = _with_alias(column)
    return f"`{name}` as `{alias}`"


def _with_alias(column: str) -> tuple[str, str]:
    name, _, alias = column.partition(" as ")
    return name, alias or name
