"""The lag of groups, in records and in seconds.

Samples have both the committed offset and the end offset of the partition, so they are used where there are any.
Records have only commits; the end offset at that time is known if the partition's log was read (`ends`), else lag is
null. Then groups that do not commit have rows, too: the state at the last record of each hour. So a row depends on the
newest commit before its hour, and on what is at most an hour older than the row, but on nothing that comes later.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F

from ottla.spark.errors import OttlaSparkError
from ottla.spark.jobs.frames import as_table
from ottla.spark.jobs.lag_seconds import HISTORY_MS, with_lag_seconds
from ottla.spark.jobs.params import HOUR_MS, Params
from ottla.spark.jobs.tables import CONSUMER_LAG

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, WindowSpec

__all__ = ["TYPE_PREFIXES", "consumer_lag"]

BODY: Final = (
    "`group` string, topic string, topic_id string, partition int, committed bigint, committed_ts bigint, "
    "high_watermark bigint, last_stable bigint"
)
STUCK_WINDOWS: Final = 5
LOG: Final = ["cluster", "topic", "partition"]
PLACE: Final = ["cluster", "topic", "topic_id", "partition"]
POINT_MS: Final = 1_000
"""Of the end offsets within this time only the last one is used."""
KEY: Final = ["cluster", "group", "topic", "topic_id", "partition"]
SHARE: Final = "share"
TYPE_PREFIXES: Final = {
    "ConsumerGroup": "consumer",
    "StreamsGroup": "streams",
    "ShareGroup": SHARE,
    "GroupMeta": "classic",
}
"""How the types of a group's records begin -> the type of the group."""


def consumer_lag(inputs: Mapping[str, DataFrame], params: Params) -> DataFrame:
    """The table `consumer_lag`. It has no share groups, which have no committed offsets."""
    found: list[DataFrame] = []
    samples, commits = inputs.get("samples"), inputs.get("commits")
    if samples is not None:
        told = _sampled(samples, params)
        found.append(_measured(told, told, params).withColumn("source", F.lit("samples")))
    if commits is not None:
        rows, points = _commits(commits, inputs.get("metadata")), None
        if "ends" in inputs:
            points = _points(inputs["ends"], rows)
            rows = _with_last_of_hours(rows, points)
        rows = _recent(rows.where(F.col("committed").isNotNull()), params)
        if samples is not None:
            rows = _unless_sampled(rows, told)
        found.append(_from_records(rows, points, params).withColumn("source", F.lit("records")))
    if not found:
        raise OttlaSparkError("consumer_lag needs samples or offset commits")
    both = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), found)
    return as_table(_with_types(both, inputs), CONSUMER_LAG, params)


# --- samples ----------------------------------------------------------------------------------------------------------


def _sampled(samples: DataFrame, params: Params) -> DataFrame:
    is_told = (F.col("kind") == "lag") & F.col("body").isNotNull() & F.col("error").isNull()
    told = _recent(samples.where(is_told), params)
    parsed = told.select("cluster", "ts", "seq", F.from_json("body", BODY).alias("b")).select(
        "cluster", "ts", "seq", "b.*"
    )
    end = "last_stable" if params.isolation == "read_committed" else "high_watermark"
    return parsed.where(F.col("committed").isNotNull() & (F.col("committed") >= 0)).select(
        *KEY, "ts", "seq", "committed", "committed_ts", F.col(end).alias("end")
    )


def _unless_sampled(rows: DataFrame, told: DataFrame) -> DataFrame:
    """The rows in hours without samples of the group."""
    hour = F.floor(F.col("ts") / HOUR_MS).alias("hour")
    hours = told.select("cluster", "group", hour).distinct()
    return rows.select("*", hour).join(hours, ["cluster", "group", "hour"], "left_anti").drop("hour")


# --- records ----------------------------------------------------------------------------------------------------------


def _commits(commits: DataFrame, metadata: DataFrame | None) -> DataFrame:
    """Commits with the ids of their topics. Deleted commits have no offset."""
    rows = commits.select(
        "cluster", "group", F.col("commit_topic").alias("topic"), F.col("commit_partition").alias("partition"),
        "ts", F.col("offset").alias("seq"), "committed", F.lit(None).cast("bigint").alias("committed_ts"),
    )  # fmt: skip
    if metadata is None:
        return rows.withColumn("topic_id", F.lit(None).cast("string"))
    topics = metadata.where(F.col("type") == "TopicRecord").select(
        "cluster",
        F.get_json_object("value", "$.name").alias("topic"),
        F.get_json_object("value", "$.topicId").alias("topic_id"),
        "offset",
    )
    newest = topics.groupBy("cluster", "topic").agg(F.max_by("topic_id", "offset").alias("topic_id"))
    return rows.join(F.broadcast(newest), ["cluster", "topic"], "left")


def _points(ends: DataFrame, rows: DataFrame) -> DataFrame:
    """The end offsets of the partitions to which groups have committed, as their topics are now."""
    newest = F.max(F.struct("ts", "end")).alias("newest")
    thinned = ends.groupBy(*LOG, F.col("topic_id").alias("id"), F.floor(F.col("ts") / POINT_MS)).agg(newest)
    ids = rows.select(*PLACE).distinct()
    is_of_topic = F.col("id").isNull() | F.col("topic_id").isNull() | (F.col("id") == F.col("topic_id"))
    return thinned.join(F.broadcast(ids), LOG).where(is_of_topic).select(*PLACE, "newest.*")


def _with_last_of_hours(rows: DataFrame, points: DataFrame) -> DataFrame:
    """Commits, and the state at the last record of each hour of the partition, though no commit came then."""
    hour = F.floor(F.col("ts") / HOUR_MS).alias("hour")
    newest, told_ms = F.max(F.struct("seq", "committed")).alias("newest"), F.max("ts").alias("told_ms")
    told = rows.groupBy(*KEY, hour).agg(newest, told_ms)
    last = points.groupBy(*LOG, hour).agg(F.max("ts").alias("ts"))
    asked = told.select(*KEY).distinct().join(last, LOG)
    so_far = Window.partitionBy(*KEY).orderBy("hour").rangeBetween(Window.unboundedPreceding, Window.currentRow)
    known = told.unionByName(asked, allowMissingColumns=True).select(
        *KEY, "ts", F.max("newest").over(so_far).alias("newest"), F.max("told_ms").over(so_far).alias("told_ms")
    )
    states = known.where(F.col("ts") > F.col("told_ms")).select(*KEY, "ts", "newest.committed")
    return rows.unionByName(states, allowMissingColumns=True)


def _from_records(rows: DataFrame, points: DataFrame | None, params: Params) -> DataFrame:
    if points is None:
        bare = _last_of_windows(rows.withColumn("end", F.lit(None).cast("bigint")), params)
        return _with_rates(bare.withColumn("lag_seconds", F.lit(None).cast("double")), params)
    return _measured(_with_ends(rows, points), points, params)


def _with_ends(rows: DataFrame, points: DataFrame) -> DataFrame:
    """Each row with the end offset of its partition at that time: the last point that is not newer."""
    marked = points.select(*PLACE, "ts", F.lit(0).alias("order"), F.col("end").alias("point"))
    both = rows.withColumn("order", F.lit(1)).unionByName(marked, allowMissingColumns=True)
    so_far = Window.partitionBy(*PLACE).orderBy("ts", "order").rowsBetween(Window.unboundedPreceding, 0)
    return (
        both.withColumn("end", F.last("point", ignorenulls=True).over(so_far)).where("order = 1").drop("order", "point")
    )


# --- both -------------------------------------------------------------------------------------------------------------


def _recent(rows: DataFrame, params: Params) -> DataFrame:
    """The rows that have influence on those of the requested range."""
    return rows if params.from_ms is None else rows.where(F.col("ts") >= params.from_ms - HISTORY_MS)


def _measured(rows: DataFrame, points: DataFrame, params: Params) -> DataFrame:
    newest = _last_of_windows(rows, params)
    return _with_rates(with_lag_seconds(newest, points.select(*PLACE, "ts", "end"), PLACE), params)


def _last_of_windows(rows: DataFrame, params: Params) -> DataFrame:
    """The state at the end of each window. Rows stay in the order that the rates need: to group them would cost two
    sorts and a shuffle more."""
    window = params.lag_window_ms
    in_order = Window.partitionBy(*KEY).orderBy("ts", "seq", "committed", "committed_ts", "end")
    start = F.floor(F.col("ts") / window) * window
    marked = rows.withColumn("window_start", start).withColumn("next", F.lead("window_start").over(in_order))
    is_last = F.col("next").isNull() | (F.col("next") != F.col("window_start"))
    return marked.where(is_last).select(*KEY, "window_start", "ts", "seq", "committed", "committed_ts", "end")


def _with_rates(rows: DataFrame, params: Params) -> DataFrame:
    before = Window.partitionBy(*KEY).orderBy("ts")
    lag = F.when(F.col("end").isNotNull(), F.greatest(F.col("end") - F.col("committed"), F.lit(0)))
    known = rows.withColumn("lag_records", lag)
    rate_in, rate_out = _rate("end", before), _rate("committed", before)
    rated = known.select(
        "*", rate_in.alias("rate_in"), rate_out.alias("rate_out"), _grows(before, params).alias("grows")
    )
    gain = F.col("rate_out") - F.col("rate_in")
    eta = F.when(F.col("lag_records") == 0, 0.0).when(gain > 0, F.col("lag_records") / gain)
    grew = (F.lag("grows", back, False).over(before) for back in range(1, STUCK_WINDOWS))
    stuck = F.when(F.col("end").isNotNull(), reduce(lambda one, other: one & other, grew, F.col("grows")))
    return rated.select(
        *KEY, "window_start", "committed", F.col("end").alias("high_watermark"), "lag_records", "lag_seconds",
        "rate_in", "rate_out", eta.alias("eta_s"), stuck.alias("stuck"),
    )  # fmt: skip


def _rate(column: str, before: WindowSpec) -> Column:
    """Records per second since the window before, unless that was long ago."""
    passed_s = (F.col("ts") - F.lag("ts").over(before)) / 1000
    return F.when(
        (passed_s > 0) & (passed_s <= HISTORY_MS / 1000), (F.col(column) - F.lag(column).over(before)) / passed_s
    )


def _grows(before: WindowSpec, params: Params) -> Column:
    """Whether lag is greater than in the window just before, and nothing was committed since."""
    is_next = F.col("window_start") - F.lag("window_start").over(before) == params.lag_window_ms
    is_more = F.col("lag_records") > F.lag("lag_records").over(before)
    is_same = F.col("committed") == F.lag("committed").over(before)
    return F.coalesce(is_next & is_more & is_same, F.lit(False))


def _with_types(rows: DataFrame, inputs: Mapping[str, DataFrame]) -> DataFrame:
    """Rows with the type of their group, where it is known. `group_types` are used if they are among the inputs."""
    types = inputs["group_types"] if "group_types" in inputs else _group_types(inputs)
    if types is None:
        return rows.withColumn("type", F.lit(None).cast("string"))
    known = rows.join(types, ["cluster", "group"], "left")
    return known.where(F.col("type").isNull() | (F.col("type") != SHARE))


def _group_types(inputs: Mapping[str, DataFrame]) -> DataFrame | None:
    """The last known type of each group."""
    told: list[DataFrame] = []
    if "samples" in inputs:
        samples = inputs["samples"].where((F.col("kind") == "group") & F.col("body").isNotNull())
        group, kind = (F.get_json_object("body", f"$.{name}").alias(name) for name in ("group", "type"))
        told.append(samples.select("cluster", group, kind, "ts"))
    if "records" in inputs:
        records = inputs["records"].where(F.col("value").isNotNull())
        told.append(records.select("cluster", "group", _kind().alias("type"), F.col("timestamp").alias("ts")))
    if not told:
        return None
    all_told = reduce(lambda one, other: one.unionByName(other), told).where(F.col("type").isNotNull())
    return all_told.groupBy("cluster", "group").agg(F.max_by("type", "ts").alias("type"))


def _kind() -> Column:
    cases = [F.when(F.col("type").startswith(prefix), kind) for prefix, kind in TYPE_PREFIXES.items()]
    return F.coalesce(*cases)
