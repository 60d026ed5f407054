"""The deliveries of share groups, window by window.

Spark sorts the steps of each share partition (records of its state, and samples of its offsets), and Python workers
fold them, one partition after the other: only one partition's state is in memory at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

import msgspec
from pyspark.sql import Window
from pyspark.sql import functions as F

from ottla.health.facts import ShareOffsets, ShareState
from ottla.spark.errors import OttlaSparkError
from ottla.spark.jobs.frames import as_table, written_ms
from ottla.spark.jobs.params import Params
from ottla.spark.jobs.share_fold import Batch, ShareFold, ShareLimits, StateRecord
from ottla.spark.jobs.share_state import SNAPSHOT, STATE_TYPES, read_state, start_of
from ottla.spark.jobs.tables import SHARE_DELIVERY
from ottla.spark.notes import warn_seldom
from ottla.spark.records.types import arrow_schema, ddl
from ottla.wire import WireError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

__all__ = ["share_delivery"]

KEY: Final = ["cluster", "group", "topic_id", "partition"]
WHOLE_GROUP: Final = -1
"""The partition of rows about a whole group."""
_SAMPLED_STATE, _OFFSETS = "sampled_state", "offsets"
_FOLDED: Final = tuple(
    each
    for each in SHARE_DELIVERY.columns
    if each.name not in ("rejected", "lock_expiries", "time_in_lock_ms", "run_date")
)
_METRICS: Final = "`group` string, node int, delivered bigint, rejected bigint, lock_expiries bigint, lock_ms bigint"


def share_delivery(inputs: Mapping[str, DataFrame], params: Params) -> DataFrame:
    """The table `share_delivery`, from records of `__share_group_state` and samples of them: brokers delete records
    that newer snapshots replace, and an observer may have sampled them before. Each record counts once."""
    steps = list(_steps(inputs))
    if not steps:
        raise OttlaSparkError("share_delivery needs samples or records of __share_group_state")
    all_steps = reduce(lambda one, other: one.unionByName(other), steps)
    # Records come before samples of them, which are then duplicates.
    is_sample = F.col("what").isin(_SAMPLED_STATE, _OFFSETS)
    in_order = all_steps.repartition(*KEY).sortWithinPartitions(*KEY, "order_ts", "offset", is_sample, "what")
    folded = in_order.mapInArrow(_Folding(params), ddl(_FOLDED))
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
        states.append(_from_samples(seen, _SAMPLED_STATE, F.get_json_object("body", "$.offset").cast("bigint")))
        yield _from_samples(told.where(F.col("kind") == "share_offsets"), _OFFSETS, F.col("seq"))
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
        F.col("timestamp").alias("ts"),
        F.col("type").alias("what"),
        "offset",
        F.col("value").alias("data"),
        F.lit(None).cast("string").alias("topic"),
        F.col("timestamp").alias("order_ts"),
    )


def _from_samples(told: DataFrame, what: str, order: Any) -> DataFrame:
    body = {name: F.get_json_object("body", f"$.{name}") for name in ("group", "topic_id", "partition", "topic")}
    return told.select(
        "cluster",
        body["group"].alias("group"),
        F.coalesce(body["topic_id"], body["topic"]).alias("topic_id"),
        body["partition"].cast("int").alias("partition"),
        "ts",
        F.lit(what).alias("what"),
        order.alias("offset"),
        F.col("body").cast("binary").alias("data"),
        body["topic"].alias("topic"),
        F.col("ts").alias("order_ts"),
    )


# --- folding, in workers ----------------------------------------------------------------------------------------------


class _Folding:
    """Turns ordered rows into rows of the table."""

    def __init__(self, params: Params) -> None:
        self._window_ms = params.share_window_ms
        self._limits = params.share_limits
        self._topic_names = params.topic_names

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        schema = arrow_schema(_FOLDED)
        rows = (row for batch in batches for row in batch.to_pylist())
        for key, steps in groupby(rows, key=lambda row: tuple(row[name] for name in KEY)):
            cluster, group, topic_id, _ = key
            common = {**dict(zip(KEY, key, strict=True)), "topic": self._topic_names.get(topic_id)}
            found = [common | row for row in self._folded(self._limits_of(cluster, group), steps)]
            if found:
                yield pa.RecordBatch.from_pylist(found, schema=schema)

    def _limits_of(self, cluster: str, group: str) -> ShareLimits:
        known = self._limits.get((cluster, group)) or self._limits.get((cluster, ""))
        return ShareLimits() if known is None else ShareLimits(*known)

    def _folded(self, limits: ShareLimits, steps: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
        fold = ShareFold(self._window_ms, limits)
        topic, taken = None, -1
        for step in steps:
            topic = step["topic"] or topic
            if step["what"] == _OFFSETS:
                look = _OFFSETS_BODY.decode(step["data"])
                fold.take_offsets(step["ts"], look.start, look.lag)
            elif step["offset"] is None or step["offset"] > taken:  # else it is a duplicate
                _take(fold, step)
                taken = taken if step["offset"] is None else step["offset"]
        for row in fold.rows():
            more = {} if topic is None else {"topic": topic}
            yield {**row, **more, "source": "records" if fold.is_from_records else "samples"}


def _take(fold: ShareFold, step: Mapping[str, Any]) -> None:
    """A sample of a record, or a record of the type `what`."""
    ts, what, data = step["ts"], step["what"], step["data"]
    if what == _SAMPLED_STATE:
        told = _SAMPLED_BODY.decode(data)
        batches = tuple(Batch(each.first, each.last, each.state, each.count) for each in told.batches)
        fold.take_record(ts, StateRecord(told.record == SNAPSHOT, told.start, batches))
        return
    fold.is_from_records = True
    if data is None:
        fold.deleted()
        return
    try:
        fold.take_record(ts, _record(what, data))
    except WireError as error:
        warn_seldom(f"share group {step['group']}: {what} at offset {step['offset']} cannot be read: {error}")


_SAMPLED_BODY: Final = msgspec.json.Decoder(ShareState)
_OFFSETS_BODY: Final = msgspec.json.Decoder(ShareOffsets)


def _record(record_type: str, value: bytes) -> StateRecord:
    state = read_state(record_type, value)
    batches = tuple(
        Batch(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
        for each in state.state_batches
    )
    # An update has no state epoch: it belongs to the snapshot before it.
    return StateRecord(record_type == SNAPSHOT, start_of(state), batches, getattr(state, "state_epoch", None))


# --- what brokers counted ---------------------------------------------------------------------------------------------


def _metrics(samples: DataFrame, params: Params) -> DataFrame:
    """Rejects, expired locks and lock times, which ottla brokers count for each group since they started."""
    told = samples.where((F.col("kind") == "share_metrics") & F.col("body").isNotNull() & F.col("error").isNull())
    counted = told.select("cluster", "ts", "seq", F.from_json("body", _METRICS).alias("m")).select(
        "cluster", "ts", "seq", "m.*"
    )
    counted = counted.fillna(0, ["delivered", "rejected", "lock_expiries"])  # zeros are not written
    before = Window.partitionBy("cluster", "group", "node").orderBy("ts", "seq")
    # A counter that decreased belongs to a restarted broker; its whole value was counted since.
    is_new = F.coalesce(F.col("delivered") < F.lag("delivered").over(before), F.lit(False))
    grown = {
        name: F.when(is_new, F.col(name)).otherwise(F.greatest(F.col(name) - F.lag(name).over(before), F.lit(0)))
        for name in ("rejected", "lock_expiries", "lock_ms")
    }
    window = params.share_window_ms
    start = (F.floor(F.col("ts") / window) * window).alias("window_start")
    counted = counted.select("cluster", "group", start, *(each.alias(name) for name, each in grown.items()))
    sums = counted.groupBy("cluster", "group", "window_start").agg(
        F.sum("rejected").alias("rejected"),
        F.sum("lock_expiries").alias("lock_expiries"),
        F.sum("lock_ms").alias("time_in_lock_ms"),
    )
    return sums.withColumns({"topic_id": F.lit(""), "partition": F.lit(WHOLE_GROUP), "source": F.lit("samples")})
