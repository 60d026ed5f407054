"""The lag of the replicas of the metadata log, and changes of its leader."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F

from ottla.spark.errors import OttlaSparkError
from ottla.spark.jobs.frames import as_table
from ottla.spark.jobs.params import Params
from ottla.spark.jobs.tables import QUORUM_LAG

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["quorum_lag"]

BODY: Final = (
    "leader int, leader_epoch int, high_watermark bigint, replicas array<struct<id int, role string, log_end bigint, "
    "last_fetch_ts bigint, last_caught_up_ts bigint>>"
)
_NOBODY: Final = -1
VOTER: Final = "voter"
"""The default role of a replica."""


def quorum_lag(inputs: Mapping[str, DataFrame], params: Params) -> DataFrame:
    """The table `quorum_lag`, from samples; for clusters without samples, from elections in the metadata log."""
    found: list[DataFrame] = []
    samples = inputs.get("samples")
    if samples is not None:
        seen = _seen(samples)
        found.append(_sampled(seen, params))
    metadata = inputs.get("metadata")
    if metadata is not None:
        elected = _elected(metadata, params)
        if samples is not None:
            elected = elected.join(seen.select("cluster").distinct(), "cluster", "left_anti")
        found.append(elected)
    if not found:
        raise OttlaSparkError("quorum_lag needs samples or the metadata log")
    return reduce(lambda one, other: one.unionByName(other), (as_table(each, QUORUM_LAG, params) for each in found))


def _seen(samples: DataFrame) -> DataFrame:
    """Samples of the quorum, each with the values of the one before."""
    told = samples.where((F.col("kind") == "quorum") & F.col("body").isNotNull() & F.col("error").isNull())
    parsed = told.select("cluster", "ts", "seq", F.from_json("body", BODY).alias("q")).select(
        "cluster", "ts", "seq", "q.*"
    )
    in_order = Window.partitionBy("cluster").orderBy("ts", "seq")
    # After a restart of the observer, the same time may occur twice.
    return parsed.select(
        "*",
        F.lag("ts").over(in_order).alias("before_ts"),
        F.lag("leader").over(in_order).alias("before_leader"),
        F.max("leader_epoch").over(in_order.rowsBetween(Window.unboundedPreceding, -1)).alias("before_epoch"),
    )


def _sampled(seen: DataFrame, params: Params) -> DataFrame:
    window = params.quorum_window_ms
    has_passed = F.col("ts") - F.col("before_ts")
    rise = F.greatest(F.col("leader_epoch") - F.col("before_epoch"), F.lit(0))
    had_leader = F.col("before_leader") > _NOBODY
    # Without a leader, the time up to the next sample; if the leader changed, at most the time between the samples.
    without = F.when(~had_leader, has_passed).when((rise > 0) & (F.col("leader") > _NOBODY), has_passed).otherwise(0)
    per_sample = seen.select(
        "*",
        (F.floor(F.col("ts") / window) * window).alias("window_start"),
        F.coalesce(rise, F.lit(0)).alias("rise"),
        F.coalesce(without, F.lit(0)).alias("without_ms"),
        F.coalesce(had_leader & (rise > 0) & (F.col("leader") > _NOBODY), F.lit(False)).alias("is_bound"),
    )
    of_cluster = per_sample.groupBy("cluster", "window_start").agg(
        F.sum("rise").alias("elections"),
        F.sum("without_ms").alias("leaderless_ms"),
        F.max("is_bound").alias("leaderless_is_bound"),
    )
    return _of_replicas(per_sample).join(of_cluster, ["cluster", "window_start"]).withColumn("source", F.lit("samples"))


def _of_replicas(per_sample: DataFrame) -> DataFrame:
    leader = F.expr("get(filter(replicas, r -> r.id = leader), 0)")
    rows = per_sample.select("*", leader.alias("l"), F.explode("replicas").alias("r"))
    now = F.when(F.col("l.last_caught_up_ts") >= 0, F.col("l.last_caught_up_ts")).otherwise(F.col("ts"))
    behind = F.col("l.log_end") - F.col("r.log_end")
    measured = rows.select(
        "cluster", "window_start", "ts", "seq", "leader", "leader_epoch",
        F.col("r.id").alias("replica"),
        F.when(F.col("r.id") == F.col("leader"), "leader").otherwise(F.coalesce("r.role", F.lit(VOTER))).alias("role"),
        F.when(behind.isNotNull(), F.greatest(behind, F.lit(0))).alias("lag_offsets"),
        _since(now, F.col("r.last_caught_up_ts")).alias("lag_ms"),
        _since(now, F.col("r.last_fetch_ts")).alias("fetch_age_ms"),
    )  # fmt: skip
    newest = F.struct("ts", "seq", "role", "leader", "leader_epoch")
    grouped = measured.groupBy("cluster", "replica", "window_start").agg(
        F.max(newest).alias("newest"),
        F.max("lag_offsets").alias("lag_offsets_max"),
        F.avg("lag_offsets").alias("lag_offsets_avg"),
        F.max("lag_ms").alias("lag_ms_max"),
        F.max("fetch_age_ms").alias("fetch_age_ms_max"),
    )
    return grouped.select("*", "newest.role", "newest.leader", "newest.leader_epoch").drop("newest")


def _since(now: Column, then: Column) -> Column:
    """The time since then; null for a replica that has not fetched from this leader."""
    return F.when(then >= 0, F.greatest(now - then, F.lit(0)))


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
