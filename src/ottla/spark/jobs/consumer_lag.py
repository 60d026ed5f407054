"""The lag of groups, in records and in seconds.

Samples have both the committed offset and the end offset of the partition, so they are used where there are any.
Records have only commits; the end offset at that time is known if the partition's log was read (`ends`), else lag is
null. Then groups that do not commit have rows, too: the state at the last record of each hour. So a row depends on the
newest commit before its hour, and on what is at most an hour older than the row, but on nothing that comes later.

What there is of a log comes together in one worker, which computes its rows; small inputs need no worker.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, Final

from ottla.spark.errors import OttlaSparkError
from ottla.spark.jobs.lag_of_log import (
    COMMIT,
    HISTORY_MS,
    LAG_EVENT,
    LAG_ROW,
    LOG,
    POINT,
    lag_rows,
    sampled_lag,
)
from ottla.spark.jobs.params import Params
from ottla.spark.jobs.tables import CONSUMER_LAG
from ottla.spark.schemas import arrow_schema, ddl

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

__all__ = ["GROUP_TYPES", "TOPIC_IDS", "TYPE_PREFIXES", "consumer_lag", "lag_table"]

SHARE: Final = "share"
TYPE_PREFIXES: Final = {
    "ConsumerGroup": "consumer",
    "StreamsGroup": "streams",
    "ShareGroup": SHARE,
    "GroupMeta": "classic",
}
"""How the types of a group's records begin -> the type of the group."""
GROUP_TYPES: Final = "group_types"
"""Input: the last known type of each group (`cluster`, `group`, `type`)."""
TOPIC_IDS: Final = "topic_ids"
"""Input: the newest id of each topic (`cluster`, `topic`, `topic_id`)."""
_SAMPLED: Final = ["cluster", "ts", "seq", "body"]
_COMMIT: Final = {
    "cluster": "cluster", "topic": "commit_topic", "partition": "commit_partition", "group": "group", "ts": "ts",
    "seq": "offset", "committed": "committed",
}  # fmt: skip
_POINT: Final = {name: name for name in (*LOG, "topic_id", "ts", "end")}
"""The columns of events -> those of the inputs."""


def consumer_lag(inputs: Mapping[str, DataFrame], params: Params) -> DataFrame:
    """The table `consumer_lag`. It has no share groups, which have no committed offsets."""
    from pyspark.sql import functions as F

    from ottla.spark.jobs.frames import as_table

    events = list(_event_frames(inputs, params))
    if not events:
        raise OttlaSparkError("consumer_lag needs samples or offset commits")
    together = reduce(lambda one, other: one.union(other), map(_complete, events))
    in_order = together.repartition(*LOG).sortWithinPartitions(*LOG)
    rows = in_order.mapInArrow(partial(lag_rows, params=params), ddl(LAG_ROW))
    if GROUP_TYPES in inputs:
        rows = rows.join(F.broadcast(inputs[GROUP_TYPES]), ["cluster", "group"], "left")
        rows = rows.where(F.col("type").isNull() | (F.col("type") != SHARE))
    return as_table(rows, CONSUMER_LAG, params)


def _event_frames(inputs: Mapping[str, DataFrame], params: Params) -> Iterator[DataFrame]:
    from pyspark.sql import functions as F

    if "samples" in inputs:
        samples = inputs["samples"]
        is_told = (F.col("kind") == "lag") & F.col("body").isNotNull() & F.col("error").isNull()
        if params.from_ms is not None:
            is_told &= F.col("ts") >= params.from_ms - HISTORY_MS
        read = partial(sampled_lag, isolation=params.isolation)
        yield samples.where(is_told).select(*_SAMPLED).mapInArrow(read, ddl(LAG_EVENT))
    if "commits" not in inputs:
        return
    commits = _named(inputs["commits"], _COMMIT, COMMIT)
    if TOPIC_IDS in inputs:
        commits = commits.join(F.broadcast(inputs[TOPIC_IDS]), ["cluster", "topic"], "left")
    yield commits
    if "ends" in inputs:
        yield _named(inputs["ends"], _POINT, POINT)


def _complete(events: DataFrame) -> DataFrame:
    """Events with all columns."""
    from pyspark.sql import functions as F

    there = events.columns
    return events.select(
        *(
            (F.col(f"`{name}`") if name in there else F.lit(None)).cast(kind).alias(name)
            for name, kind in LAG_EVENT.items()
        )
    )


def _named(frame: DataFrame, columns: Mapping[str, str], what: int) -> DataFrame:
    from pyspark.sql import functions as F

    return frame.select(*(F.col(f"`{old}`").alias(new) for new, old in columns.items()), F.lit(what).alias("what"))


# --- without Spark ----------------------------------------------------------------------------------------------------


def lag_table(inputs: Mapping[str, pa.Table], params: Params) -> pa.Table:
    """The same rows, from inputs that are small."""
    import pyarrow as pa
    import pyarrow.compute as pc

    events = pa.concat_tables(_event_tables(inputs, params), promote_options="default")
    in_order = events.sort_by([(name, "ascending") for name in LOG]).combine_chunks()
    rows = pa.Table.from_batches(lag_rows(in_order.to_batches(), params), arrow_schema(LAG_ROW))
    rows = _looked_up(rows, inputs[GROUP_TYPES])
    rows = rows.filter(pc.fill_null(pc.not_equal(rows["type"], SHARE), True))
    if params.from_ms is not None:
        rows = rows.filter(pc.greater_equal(rows[CONSUMER_LAG.event_time], params.from_ms))
    return rows


def _event_tables(inputs: Mapping[str, Any], params: Params) -> Iterator[pa.Table]:
    import pyarrow as pa
    import pyarrow.compute as pc

    yield arrow_schema(LAG_EVENT).empty_table()
    if "samples" in inputs:
        samples = inputs["samples"]
        is_told = pc.and_(pc.equal(samples["kind"], "lag"), pc.is_valid(samples["body"]))
        told = samples.filter(pc.and_(is_told, pc.is_null(samples["error"]))).select(_SAMPLED)
        yield pa.Table.from_batches(sampled_lag(told.to_batches(), params.isolation), arrow_schema(LAG_EVENT))
    if "commits" in inputs:
        yield _looked_up(_renamed(inputs["commits"], _COMMIT, COMMIT), inputs[TOPIC_IDS])
    if "ends" in inputs:
        yield _renamed(inputs["ends"], _POINT, POINT)


def _renamed(table: pa.Table, columns: Mapping[str, str], what: int) -> pa.Table:
    import pyarrow as pa

    found = table.select(list(columns.values())).rename_columns(list(columns))
    return found.append_column("what", pa.repeat(pa.scalar(what, pa.int32()), table.num_rows))


def _looked_up(table: pa.Table, known: pa.Table) -> pa.Table:
    """A table with the last column of another one, which the others are the key of."""
    import pyarrow as pa

    *key, name = known.column_names
    cells = {tuple(each): cell for *each, cell in zip(*(column.to_pylist() for column in known.columns), strict=True)}
    found = map(cells.get, zip(*(table[each].to_pylist() for each in key), strict=True))
    return table.append_column(name, pa.array(found, pa.string()))
