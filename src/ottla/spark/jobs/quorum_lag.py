"""The lag of the replicas of the metadata log, and changes of its leader."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce
from itertools import groupby
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from ottla.spark.errors import OttlaSparkError
from ottla.spark.jobs.frames import as_table, made_of
from ottla.spark.jobs.ordered_fold import TimedSample
from ottla.spark.jobs.params import Params
from ottla.spark.jobs.quorum_fold import QuorumFold
from ottla.spark.jobs.tables import QUORUM_LAG
from ottla.spark.records.types import arrow_schema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

__all__ = ["quorum_lag"]

_FOLDED: Final = QUORUM_LAG.undated


def quorum_lag(inputs: Mapping[str, DataFrame], params: Params) -> DataFrame:
    """The table `quorum_lag`, from samples; for clusters without samples, from elections in the metadata log."""
    found: list[DataFrame] = []
    samples = inputs.get("samples")
    if samples is not None:
        seen = _sampled(samples)
        found.append(_folded(seen, params))
    metadata = inputs.get("metadata")
    if metadata is not None:
        elected = _elected(metadata, params)
        if samples is not None:
            elected = elected.join(seen.select("cluster").distinct(), "cluster", "left_anti")
        found.append(elected)
    if not found:
        raise OttlaSparkError("quorum_lag needs samples or the metadata log")
    return reduce(lambda one, other: one.unionByName(other), (as_table(each, QUORUM_LAG, params) for each in found))


def _sampled(samples: DataFrame) -> DataFrame:
    return samples.where((F.col("kind") == "quorum") & F.col("body").isNotNull() & F.col("error").isNull())


def _folded(samples: DataFrame, params: Params) -> DataFrame:
    rows = samples.select("cluster", "ts", F.col("seq").cast("bigint").alias("seq"), F.col("body").cast("binary"))
    in_order = rows.repartition("cluster").sortWithinPartitions("cluster", "ts", "seq")
    return made_of(in_order, _Folding(params.quorum_window_ms), _FOLDED, params)


class _Folding:
    """Turns ordered samples into rows of the table, in a worker."""

    def __init__(self, window_ms: int) -> None:
        self._window_ms = window_ms

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        schema = arrow_schema(_FOLDED)
        rows = (row for batch in batches for row in zip(*(column.to_pylist() for column in batch.columns), strict=True))
        for cluster, samples in groupby(rows, key=lambda row: row[0]):
            fold = QuorumFold(self._window_ms)
            for _, ts, seq, body in samples:
                fold.take((ts, seq), TimedSample(ts, seq, body))
            found = [{"cluster": cluster, **row} for row in fold.rows(is_all=True).values()]
            yield pa.RecordBatch.from_pylist(found, schema=schema)


def _elected(metadata: DataFrame, params: Params) -> DataFrame:
    """The elections in the metadata log."""
    window = params.quorum_window_ms
    told = metadata.where(F.col("type") == "LeaderChange").select(
        "cluster",
        (F.floor(F.col("timestamp") / window) * window).alias("window_start"),
        F.get_json_object("value", "$.leaderId").cast("int").alias("replica"),
        F.col("epoch").alias("leader_epoch"),
    )
    return told.groupBy("cluster", "replica", "window_start").agg(
        F.lit("leader").alias("role"),
        F.max("replica").alias("leader"),
        F.max("leader_epoch").alias("leader_epoch"),
        F.count("*").alias("elections"),
        F.lit("records").alias("source"),
    )
