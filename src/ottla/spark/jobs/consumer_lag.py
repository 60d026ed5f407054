"""The lag of groups, in records and in seconds.

Samples have both the committed offset and the end offset of the partition, so they are used where there are any.
Records have only commits; the end offset at that time is known if the partition's log was read (`ends`), else lag is
null. Then groups that do not commit have rows, too: the state at the last record of each hour. So a row depends on the
newest commit before its hour, and on what is at most an hour older than the row, but on nothing that comes later.

What there is of a log comes together in one worker, which computes its rows; small inputs need no worker.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ottla.spark.errors import OttlaSparkError
from ottla.spark.jobs.lag_of_log import (
    COMMIT,
    HISTORY_MS,
    LAG_EVENT,
    LAG_ROW,
    LOG,
    POINT,
    earliest_ms,
    lag_rows,
    sampled_lag,
)
from ottla.spark.jobs.params import DAY_MS, Isolation, Params
from ottla.spark.jobs.tables import CONSUMER_LAG
from ottla.spark.records.types import arrow_schema as table_schema
from ottla.spark.schemas import arrow_repeated, arrow_schema, ddl
from ottla.spark.worker_files import write_by_workers

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray
    from pyspark.sql import DataFrame

    from ottla.spark.worker_files import Rows

__all__ = [
    "GROUP_TYPES",
    "TOPIC_IDS",
    "TYPE_PREFIXES",
    "consumer_lag",
    "lag_events",
    "lag_of_events",
    "lag_table",
    "lag_to_files",
]

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
_SAMPLED: Final = ("cluster", "ts", "seq", "body")
_COLUMNS: Final[Mapping[str, tuple[int, Mapping[str, str]]]] = {
    "commits": (
        COMMIT,
        {
            "cluster": "cluster", "topic": "commit_topic", "partition": "commit_partition", "group": "group",
            "ts": "ts", "seq": "offset", "committed": "committed",
        },
    ),
    "ends": (POINT, {name: name for name in (*LOG, "topic_id", "ts", "end")}),
}  # fmt: skip
"""Input -> what its rows are, and the columns of events with those of the input."""


def consumer_lag(inputs: Mapping[str, DataFrame], params: Params) -> DataFrame:
    """The table `consumer_lag`. It has no share groups, which have no committed offsets, as far as GROUP_TYPES tells
    which these are. TOPIC_IDS tell which end offsets are those of an earlier topic with the same name."""
    return lag_of_events(_events(inputs, params), inputs, params)


def lag_of_events(events: DataFrame, inputs: Mapping[str, DataFrame], params: Params) -> DataFrame:
    """The same table, from events as `lag_events` makes them."""
    from pyspark.sql import functions as F

    from ottla.spark.jobs.frames import as_table

    rows = _in_order(events, inputs).mapInArrow(partial(lag_rows, params=params), ddl(LAG_ROW))
    if GROUP_TYPES in inputs:
        rows = rows.join(F.broadcast(inputs[GROUP_TYPES]), ["cluster", "group"], "left")
        rows = rows.where(F.col("type").isNull() | (F.col("type") != SHARE))
    return as_table(rows, CONSUMER_LAG, params)


def lag_to_files(inputs: Mapping[str, DataFrame], params: Params, path: Path, *, tasks: int) -> None:
    """The rows of the same table, which so many tasks write below a path: in a directory for each day, without that
    column."""
    types = inputs[GROUP_TYPES].toArrow()
    in_order = _in_order(_events(inputs, params), inputs, tasks)
    write_by_workers(in_order, partial(_rows_by_day, types=types, params=params), path)


def _events(inputs: Mapping[str, DataFrame], params: Params) -> DataFrame:
    events = list(_event_frames(inputs, params))
    if not events:
        raise OttlaSparkError("consumer_lag needs samples or offset commits")
    return reduce(lambda one, other: one.union(other), events)


def _in_order(events: DataFrame, inputs: Mapping[str, DataFrame], tasks: int | None = None) -> DataFrame:
    """Events log by log, with the ids of topics."""
    from pyspark.sql import functions as F

    from ottla.spark.jobs.frames import parted

    if TOPIC_IDS in inputs:
        ids = inputs[TOPIC_IDS].withColumnRenamed("topic_id", "newest_id")
        newest = F.when(F.col("what") == COMMIT, F.col("newest_id")).otherwise(F.col("topic_id"))
        events = events.join(F.broadcast(ids), ["cluster", "topic"], "left").withColumn("topic_id", newest)
    return parted(events.select(*LAG_EVENT), LOG, tasks=tasks)


def _event_frames(inputs: Mapping[str, DataFrame], params: Params) -> Iterator[DataFrame]:
    from pyspark.sql import functions as F

    if "samples" in inputs:
        is_told = (F.col("kind") == "lag") & F.col("body").isNotNull() & F.col("error").isNull()
        if params.from_ms is not None:
            is_told &= F.col("ts") >= params.from_ms - HISTORY_MS
        read = partial(sampled_lag, isolation=params.isolation)
        yield inputs["samples"].where(is_told).select(*_SAMPLED).mapInArrow(read, ddl(LAG_EVENT))
    if "commits" not in inputs:
        return
    for name, (what, columns) in _COLUMNS.items():
        if name in inputs:
            cells = {each: F.col(f"`{column}`") for each, column in columns.items()} | {"what": F.lit(what)}
            nothing = F.lit(None)
            yield inputs[name].select(
                *(cells.get(each, nothing).cast(kind).alias(each) for each, kind in LAG_EVENT.items())
            )


# --- without Spark ----------------------------------------------------------------------------------------------------


def lag_events(name: str, batches: Iterable[pa.RecordBatch], isolation: Isolation) -> Iterator[pa.RecordBatch]:
    """The rows of an input as events. Of samples, only those of lag may be among them."""
    import pyarrow as pa

    if name == "samples":
        yield from sampled_lag(batches, isolation)
        return
    what, columns = _COLUMNS[name]
    schema = arrow_schema(LAG_EVENT)
    for batch in batches:
        count = batch.num_rows
        found = {each: batch.column(column) for each, column in columns.items()}
        found["what"] = arrow_repeated(what, pa.int32(), count)
        cells = [found[field.name] if field.name in found else pa.nulls(count, field.type) for field in schema]
        yield pa.RecordBatch.from_arrays(cells, schema=schema)


def lag_table(events: pa.Table, inputs: Mapping[str, pa.Table], params: Params) -> pa.Table:
    """The rows of the table, from events in memory."""
    import pyarrow as pa
    import pyarrow.compute as pc

    events = _of_busy_logs(events, params)
    newest = pc.if_else(pc.equal(events["what"], COMMIT), _looked_up(events, inputs[TOPIC_IDS]), events["topic_id"])
    events = events.set_column(events.column_names.index("topic_id"), "topic_id", newest)
    in_order = events.sort_by([(name, "ascending") for name in LOG]).combine_chunks()
    rows = pa.Table.from_batches(lag_rows(in_order.to_batches(), params), arrow_schema(LAG_ROW))
    return _table_rows(rows, inputs[GROUP_TYPES], params)


def _table_rows(rows: pa.Table, types: pa.Table, params: Params) -> pa.Table:
    """The rows of the table without their day: those of the range and of groups that have committed offsets."""
    import pyarrow.compute as pc

    rows = rows.append_column("type", _looked_up(rows, types))
    rows = rows.filter(pc.fill_null(pc.not_equal(rows["type"], SHARE), True))
    for bound, is_within in ((params.from_ms, pc.greater_equal), (params.to_ms, pc.less)):
        if bound is not None:
            rows = rows.filter(is_within(rows[CONSUMER_LAG.event_time], bound))
    schema = table_schema(CONSUMER_LAG.undated)
    return rows.select(schema.names).cast(schema)


def _rows_by_day(batches: Iterable[pa.RecordBatch], types: pa.Table, params: Params) -> Rows:
    """The rows of whole logs, with the day to which they belong."""
    import numpy as np
    import pyarrow as pa

    for batch in lag_rows(batches, params):
        rows = _table_rows(pa.Table.from_batches([batch]), types, params)
        day = rows[CONSUMER_LAG.event_time].to_numpy() // DAY_MS
        for each in np.unique(day):
            of_day = rows.filter(pa.array(day == each)).combine_chunks()
            yield str(np.datetime64(int(each), "D")), of_day.to_batches()[0]


def _of_busy_logs(events: pa.Table, params: Params) -> pa.Table:
    """The events of logs that may have rows: something recent, and somebody who reads them. What is kept of others
    would cost a stream as much in each step as if they were busy."""
    import numpy as np
    import pyarrow as pa

    log = _numbered(events, LOG)
    is_recent = events["ts"].to_numpy() >= earliest_ms(params)
    is_read = events["what"].to_numpy() != POINT
    return events.filter(pa.array(np.isin(log, log[is_recent]) & np.isin(log, log[is_read])))


def _numbered(table: pa.Table, key: Sequence[str]) -> NDArray[np.int64]:
    """A number for each row, the same for rows with the same key."""
    import numpy as np

    codes = np.zeros(table.num_rows, np.int64)
    for each in key:
        column = table[each].combine_chunks().dictionary_encode()
        codes = codes * (len(column.dictionary) + 1) + column.indices.fill_null(-1).to_numpy(zero_copy_only=False) + 1
    return codes


def _looked_up(table: pa.Table, known: pa.Table) -> pa.Array:
    """For each row of a table the last column of another one, which the others are the key of."""
    import numpy as np
    import pyarrow as pa

    *key, _ = known.column_names
    cells = {tuple(each): cell for *each, cell in zip(*(column.to_pylist() for column in known.columns), strict=True)}
    _, first, place = np.unique(_numbered(table, key), return_index=True, return_inverse=True)
    asked = table.select(key).take(pa.array(first))
    found = map(cells.get, zip(*(column.to_pylist() for column in asked.columns), strict=True))
    return pa.array(found, pa.string()).take(pa.array(place))
