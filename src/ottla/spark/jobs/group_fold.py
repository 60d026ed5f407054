"""Runs the folds over groups in Spark: one pass over their history makes all four tables about groups, and the facts
about them that the health rules need.

`folded` returns one frame with the rows of all, distinguished by `table`; each job selects its rows. The rows of a
group come together and in order, so a worker holds the state of one group, not its history.

Where a group has records, its samples are not used for the tables: they can miss what happens between two of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import astuple
from pyspark.sql import functions as F

from ottla.health.facts import Gone, Group
from ottla.spark.jobs.folds.fold import Fold
from ottla.spark.jobs.folds.records import GROUP_RECORDS
from ottla.spark.jobs.folds.rows import Out, Row
from ottla.spark.jobs.folds.samples import SAMPLES
from ottla.spark.jobs.frames import as_table, parted
from ottla.spark.jobs.tables import GROUP_FACTS, GROUP_TIMELINE, REBALANCES, STABILITY, TASK_MOVEMENT, Table
from ottla.spark.notes import warn_seldom
from ottla.spark.records.types import Column, Scalar, arrow_schema, ddl
from ottla.spark.worker_files import write_by_workers

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from ottla.spark.jobs.params import Params

__all__ = ["FOLDED", "RECORDS_FIRST", "SAMPLES_AFTER", "fold_to_files", "folded", "folded_rows", "table_of"]

ROWS: Final = 20_000
"""About so many rows are in one batch."""
RECORDS_FIRST, SAMPLES_AFTER = 0, 1
_ORDER: Final = ("rank", "partition", "place", "seq")
_whose_and_rank: Final = itemgetter(0, 1, 2)
_record: Final = itemgetter(3, 4, 6, 7, 8, 9)
"""Of a row of the history: what a fold takes of a record."""
_MADE: Final = (GROUP_TIMELINE, REBALANCES, STABILITY, TASK_MOVEMENT)
_TABLES: Final = {table.name: table for table in (*_MADE, GROUP_FACTS)}


def _united() -> tuple[Column, ...]:
    """The columns of all tables, each once."""
    found = {"table": Column("table", Scalar("string"))}
    for table in _TABLES.values():
        found |= {each.name: each for each in table.undated}
    return tuple(found.values())


FOLDED: Final = _united()
"""The columns of the frame that `folded` returns."""


def folded(inputs: Mapping[str, DataFrame], params: Params) -> DataFrame:
    """The rows of all tables about groups, from records and samples."""
    return _in_order(_history(inputs)).mapInArrow(partial(_all_rows, params=params), ddl(FOLDED))


def fold_to_files(
    inputs: Mapping[str, DataFrame], params: Params, path: Path, *, tasks: int | None = None
) -> dict[str, DataFrame]:
    """The same rows, which are written below a path, by so many tasks. Returns a frame for each table that has rows,
    and an empty one for each that has none."""
    frame = _in_order(_history(inputs), tasks)
    write_by_workers(frame, partial(_tables, params=params), path, in_driver=params.in_driver)
    spark = frame.sparkSession
    return {
        table.name: spark.read.schema(ddl(table.undated)).parquet(*files)
        if (files := [str(file) for file in (path / table.name).glob("*.parquet")])
        else spark.createDataFrame([], ddl(table.undated))
        for table in _TABLES.values()
    }


def _in_order(history: DataFrame, tasks: int | None = None) -> DataFrame:
    return parted(history, ("cluster", "group"), _ORDER, tasks=tasks)


def table_of(table: Table, inputs: Mapping[str, DataFrame], params: Params) -> DataFrame:
    """The rows of one table. A run that computes several puts the results of `fold_to_files` among the inputs."""
    return as_table(folded_rows(table, inputs, params), table, params)


def folded_rows(table: Table, inputs: Mapping[str, DataFrame], params: Params) -> DataFrame:
    if table.name in inputs:
        return inputs[table.name]
    return folded(inputs, params).where(F.col("table") == table.name)


# --- what is folded ---------------------------------------------------------------------------------------------------


def _history(inputs: Mapping[str, DataFrame]) -> DataFrame:
    """Records and samples of groups under the same columns."""
    found = []
    if "records" in inputs:
        found.append(_records(inputs["records"]))
    if "samples" in inputs:
        found.append(_samples(inputs["samples"]))
    if not found:
        raise ValueError("the history of groups needs records or samples")
    return found[0] if len(found) == 1 else found[0].unionByName(found[1])


def _records(records: DataFrame) -> DataFrame:
    return records.where(F.col("type").isin(*GROUP_RECORDS) & F.col("group").isNotNull()).select(
        "cluster",
        F.col("`group`"),
        F.lit(RECORDS_FIRST).alias("rank"),
        "partition",
        F.col("offset").alias("place"),
        F.lit(0).cast("bigint").alias("seq"),
        F.col("timestamp").alias("ts"),
        "type",
        "key",
        "value",
    )


def _samples(samples: DataFrame) -> DataFrame:
    is_group = F.col("kind") == "group"
    name = F.when(is_group, F.col("entity")).otherwise(F.get_json_object("body", "$.name"))
    is_wanted = is_group | (F.get_json_object("body", "$.what") == "group")
    return (
        samples.where(F.col("kind").isin(*SAMPLES) & F.col("error").isNull() & F.col("body").isNotNull())
        .where(is_wanted)
        .select(
            "cluster",
            name.alias("group"),
            F.lit(SAMPLES_AFTER).alias("rank"),
            F.lit(-1).alias("partition"),
            F.col("ts").alias("place"),
            F.col("seq").cast("bigint").alias("seq"),
            "ts",
            F.col("kind").alias("type"),
            F.lit(None).cast("binary").alias("key"),
            F.col("body").cast("binary").alias("value"),
        )
    )


# --- rows to columns --------------------------------------------------------------------------------------------------


class _Rows:
    """Rows of many groups, table by table, column by column."""

    def __init__(self) -> None:
        self._columns: dict[str, dict[str, list[Any]]] = {}
        self._facts = 0
        """Numbers the facts, in their order."""
        self.count = 0
        self._begin()

    def _begin(self) -> None:
        self._columns = {name: {each.name: [] for each in table.undated} for name, table in _TABLES.items()}
        self.count = 0

    def add(self, cluster: str, group: str, source: str, out: Out) -> None:
        found: tuple[Sequence[Row], ...] = (out.events, out.rebalances, out.windows, out.movements)
        for table, rows in zip(_MADE, found, strict=True):
            if not rows:
                continue
            columns = self._columns[table.name]
            for name, cells in zip(rows[0].__struct_fields__, zip(*map(astuple, rows), strict=True), strict=True):
                if name in columns:
                    columns[name].extend(cells)
            for name, value in (("cluster", cluster), ("group", group), ("source", source)):
                columns[name].extend([value] * len(rows))
        self._add_facts(cluster, group, out.facts, is_open=False)
        self._add_facts(cluster, group, out.open_facts, is_open=True)
        self.count += len(out)
        for fault in out.faults:
            warn_seldom(f"group {group}: {fault}")

    def add_end(self, cluster: str, group: str, fold: Fold) -> None:
        """The last rows of a group."""
        out = fold.end()
        self.add(cluster, group, fold.source, out)

    def _add_facts(self, cluster: str, group: str, facts: Sequence[tuple[int, Group | Gone]], *, is_open: bool) -> None:
        columns = self._columns[GROUP_FACTS.name]
        for ts, fact in facts:
            cells = (cluster, group, ts, self._facts, fact.kind, msgspec.json.encode(fact), is_open)
            for column, cell in zip(columns.values(), cells, strict=True):
                column.append(cell)
            self._facts += 1

    def take(self) -> Iterator[tuple[str, dict[str, list[Any]], int]]:
        """Each table with its columns and the number of rows, which are removed from here."""
        taken = self._columns
        self._begin()
        for name, columns in taken.items():
            if columns["cluster"]:
                yield name, columns, len(columns["cluster"])


# --- batches ----------------------------------------------------------------------------------------------------------


def _all_rows(batches: Iterable[pa.RecordBatch], params: Params) -> Iterator[pa.RecordBatch]:
    """The rows of whole histories, with the columns of all tables."""
    import pyarrow as pa

    schema = arrow_schema(FOLDED)
    for name, batch in _tables(batches, params):
        count = batch.num_rows
        has = {"table": pa.repeat(name, count), **dict(zip(batch.schema.names, batch.columns, strict=True))}
        arrays = [has[each.name] if each.name in has else pa.nulls(count, each.type) for each in schema]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _tables(batches: Iterable[pa.RecordBatch], params: Params) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The rows of whole histories, by table. The input of each group is contiguous and in order."""
    rows = _Rows()
    whose: tuple[str, str] | None = None
    fold = Fold(params)
    for batch in batches:
        history = zip(*(column.to_pylist() for column in batch.columns), strict=True)
        for (cluster, group, rank), alike in groupby(history, key=_whose_and_rank):
            if (cluster, group) != whose:
                if whose is not None:
                    rows.add_end(*whose, fold)
                whose = (cluster, group)
                fold = Fold(params, facts_of=group)
            if rank == RECORDS_FIRST:
                fold.take_records(map(_record, alike))
            else:
                for _, _, _, _, _, _, ts, kind, _, body in alike:
                    fold.take_sample(ts, kind, body)
        if whose is not None:
            rows.add(*whose, fold.source, fold.rows())
        if rows.count >= ROWS:
            yield from _arrow(rows)
    if whose is not None:
        rows.add_end(*whose, fold)
    yield from _arrow(rows)


def _arrow(rows: _Rows) -> Iterator[tuple[str, pa.RecordBatch]]:
    import pyarrow as pa

    for name, columns, _ in rows.take():
        schema = arrow_schema(_TABLES[name].undated)
        arrays = [pa.array(columns[field.name], field.type) for field in schema]
        yield name, pa.RecordBatch.from_arrays(arrays, schema=schema)
