"""The deliveries of share groups, window by window.

Spark sorts the steps of each share partition (records of its state, and samples of its offsets), and Python workers
fold them, one partition after the other: only one partition's state is in memory at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import Window
from pyspark.sql import functions as F

from ottla.spark.errors import OttlaSparkError
from ottla.spark.jobs.frames import as_table, made_of, written_ms
from ottla.spark.jobs.ordered_fold import TimedSample
from ottla.spark.jobs.params import Params
from ottla.spark.jobs.share_counters import ShareCounters
from ottla.spark.jobs.share_fold import limits_of
from ottla.spark.jobs.share_partition import OFFSETS, SAMPLED_STATE, SharePartition, ShareRow
from ottla.spark.jobs.share_state import STATE_TYPES
from ottla.spark.jobs.tables import SHARE_DELIVERY
from ottla.spark.records.types import arrow_schema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

__all__ = ["share_delivery"]

KEY: Final = ["cluster", "group", "topic_id", "partition"]
_FOLDED: Final = tuple(
    each
    for each in SHARE_DELIVERY.columns
    if each.name not in ("rejected", "lock_expiries", "time_in_lock_ms", "run_date")
)
_COUNTED: Final = tuple(
    each
    for each in SHARE_DELIVERY.columns
    if each.name in {*KEY, "window_start", "rejected", "lock_expiries", "time_in_lock_ms", "source"}
)


def share_delivery(inputs: Mapping[str, DataFrame], params: Params) -> DataFrame:
    """The table `share_delivery`, from records of `__share_group_state` and samples of them: brokers delete records
    that newer snapshots replace, and an observer may have sampled them before. Each record counts once."""
    steps = list(_steps(inputs))
    if not steps:
        raise OttlaSparkError("share_delivery needs samples or records of __share_group_state")
    all_steps = reduce(lambda one, other: one.unionByName(other), steps)
    # Records come before samples of them, which are then duplicates.
    is_sample = F.col("what").isin(SAMPLED_STATE, OFFSETS)
    in_order = all_steps.repartition(*KEY).sortWithinPartitions(*KEY, "order_ts", "offset", is_sample, "what")
    folded = made_of(in_order, _Folding(params), _FOLDED, params)
    rows = folded
    if "samples" in inputs:
        rows = folded.unionByName(_metrics(inputs["samples"], params), allowMissingColumns=True)
    return as_table(rows, SHARE_DELIVERY, params)


# --- steps ------------------------------------------------------------------------------------------------------------


def _steps(inputs: Mapping[str, DataFrame]) -> Iterator[DataFrame]:
    records, samples = inputs.get("records"), inputs.get("samples")
    states = [] if records is None else [_from_records(records.where(F.col("type").isin(*STATE_TYPES)))]
    if samples is not None:
        told = samples.where(F.col("body").isNotNull() & F.col("error").isNull())
        seen = told.where(F.col("kind") == "share_state").withColumn("ts", written_ms())
        states.append(_from_samples(seen, SAMPLED_STATE, F.get_json_object("body", "$.offset").cast("bigint")))
        yield _from_samples(told.where(F.col("kind") == "share_offsets"), OFFSETS, F.col("seq"))
    if states:
        # Records are ordered by offset, not by the clocks of coordinators.
        so_far = Window.partitionBy(*KEY).orderBy("offset").rowsBetween(Window.unboundedPreceding, 0)
        yield reduce(lambda one, other: one.unionByName(other), states).withColumn("order_ts", F.max("ts").over(so_far))


def _from_records(written: DataFrame) -> DataFrame:
    return written.select(
        "cluster",
        "group",
        F.col("share_topic_id").alias("topic_id"),
        F.col("share_partition").alias("partition"),
        F.col("type").alias("what"),
        F.col("timestamp").alias("ts"),
        "offset",
        F.lit(None).cast("string").alias("topic"),
        F.col("value").alias("data"),
        F.col("timestamp").alias("order_ts"),
    )


def _from_samples(told: DataFrame, what: str, order: Any) -> DataFrame:
    body = {name: F.get_json_object("body", f"$.{name}") for name in ("group", "topic_id", "partition", "topic")}
    return told.select(
        "cluster",
        body["group"].alias("group"),
        F.coalesce(body["topic_id"], body["topic"]).alias("topic_id"),
        body["partition"].cast("int").alias("partition"),
        F.lit(what).alias("what"),
        "ts",
        order.alias("offset"),
        body["topic"].alias("topic"),
        F.col("body").cast("binary").alias("data"),
        F.col("ts").alias("order_ts"),
    )


# --- folding, in workers ----------------------------------------------------------------------------------------------


class _Folding:
    """Turns ordered rows into rows of the table."""

    def __init__(self, params: Params) -> None:
        self._params = params

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        schema = arrow_schema(_FOLDED)
        rows = (row for batch in batches for row in zip(*(column.to_pylist() for column in batch.columns), strict=True))
        for key, steps in groupby(rows, key=lambda row: row[: len(KEY)]):
            cluster, group, topic_id, _ = key
            fold = SharePartition(self._params.share_window_ms, limits_of(self._params, cluster, group))
            taken = -1
            for row in (ShareRow._make(step[len(KEY) : len(KEY) + len(ShareRow._fields)]) for step in steps):
                if row.what == OFFSETS or row.offset is None or row.offset > taken:  # else it is a duplicate
                    fold.take_next(row)
                    taken = taken if row.what == OFFSETS or row.offset is None else row.offset
            common = dict(zip(KEY, key, strict=True))
            name = self._params.topic_names.get(topic_id)
            found = [{**common, **row, "topic": row["topic"] or name} for row in fold.rows(is_all=True).values()]
            if found:
                yield pa.RecordBatch.from_pylist(found, schema=schema)


# --- what brokers counted ---------------------------------------------------------------------------------------------


def _metrics(samples: DataFrame, params: Params) -> DataFrame:
    told = samples.where((F.col("kind") == "share_metrics") & F.col("body").isNotNull() & F.col("error").isNull())
    group = F.get_json_object("body", "$.group").alias("group")
    rows = told.select("cluster", group, "ts", F.col("seq").cast("bigint").alias("seq"), F.col("body").cast("binary"))
    in_order = rows.repartition("cluster", "group").sortWithinPartitions("cluster", "group", "ts", "seq")
    return made_of(in_order, _Counting(params.share_window_ms), _COUNTED, params)


class _Counting:
    """Turns ordered samples into rows of whole groups."""

    def __init__(self, window_ms: int) -> None:
        self._window_ms = window_ms

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        schema = arrow_schema(_COUNTED)
        rows = (row for batch in batches for row in zip(*(column.to_pylist() for column in batch.columns), strict=True))
        for (cluster, group), samples in groupby(rows, key=lambda row: row[:2]):
            fold = ShareCounters(self._window_ms)
            for _, _, ts, seq, body in samples:
                fold.take((ts, seq), TimedSample(ts, seq, body))
            found = [{"cluster": cluster, "group": group, **row} for row in fold.rows(is_all=True).values()]
            yield pa.RecordBatch.from_pylist(found, schema=schema)
