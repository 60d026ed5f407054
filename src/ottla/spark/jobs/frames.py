"""Operations on frames that several jobs use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from ottla.spark.records.types import arrow_schema, ddl

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

    from ottla.spark.jobs.params import Params
    from ottla.spark.jobs.tables import Table
    from ottla.spark.records.types import Column as TableColumn

__all__ = ["as_table", "made_of", "parted", "run_date", "within", "written_ms"]

Make = Callable[[Iterator["pa.RecordBatch"]], Iterator["pa.RecordBatch"]]


def made_of(rows: DataFrame, make: Make, columns: tuple[TableColumn, ...], params: Params) -> DataFrame:
    """What a function makes of rows, in workers or in the driver."""
    if not params.in_driver:
        return rows.mapInArrow(make, ddl(columns))
    import pyarrow as pa

    made = pa.Table.from_batches(make(iter(rows.toArrow().to_batches())), arrow_schema(columns))
    return rows.sparkSession.createDataFrame(made, ddl(columns))


def parted(rows: DataFrame, whose: Sequence[str], order: Sequence[str] = (), *, tasks: int | None = None) -> DataFrame:
    """Rows with what has the same key together and in order, for so many tasks. By default, Spark takes few bytes
    together to one task, though a row may take a worker far longer than its bytes suggest."""
    found = rows.repartition(tasks, *whose) if tasks is not None else rows.repartition(*whose)
    return found.sortWithinPartitions(*whose, *order)


def run_date(ms: Column) -> Column:
    """The UTC date of a time in milliseconds, whatever the session's time zone is."""
    return F.date_add(F.lit("1970-01-01").cast("date"), F.floor(ms / 86_400_000).cast("int")).cast("string")


def written_ms() -> Column:
    """When the record in a sample was written; if it has no such time, when it was sampled."""
    return F.coalesce(F.get_json_object("body", "$.written_ms").cast("bigint"), F.col("ts"))


def within(rows: DataFrame, time: str, params: Params) -> DataFrame:
    """The rows in the requested range of time."""
    if params.from_ms is not None:
        rows = rows.where(F.col(time) >= params.from_ms)
    return rows if params.to_ms is None else rows.where(F.col(time) < params.to_ms)


def as_table(rows: DataFrame, table: Table, params: Params) -> DataFrame:
    """Rows with the table's columns, in its order and types; the date comes from the row's time."""
    dated = within(rows, table.event_time, params).withColumn("run_date", run_date(F.col(table.event_time)))
    missing = {each.name for each in table.columns} - set(dated.columns)
    cells = [
        (F.lit(None) if name in missing else F.col(f"`{name}`")).cast(kind.ddl()).alias(name)
        for name, kind in table.columns
    ]
    return dated.select(*cells)


def table_ddl(table: Table) -> str:
    return ddl(table.columns)
