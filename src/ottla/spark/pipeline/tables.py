"""Tables on disk: Parquet with a directory for each day, or Delta.

A run replaces the days that it has computed and no others. With Delta, rows are merged by the table's key and obsolete
rows of these days are deleted: readers see the table either before or after the run.

Days that an earlier version of ottla has written may lack columns. They are read as nulls; Delta adds the columns.
"""

from __future__ import annotations

import shutil
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from ottla.spark.jobs.tables import Table
from ottla.spark.records.types import Column, arrow_schema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "DAY",
    "Days",
    "Format",
    "TableFigures",
    "dataset_of",
    "day_of",
    "table_path",
    "write_day",
    "write_few",
    "write_parts",
    "write_table",
]

Format = Literal["parquet", "delta"]
DAY: Final = "run_date"
ROWS_IN_ORDER: Final = 250_000
"""The rows of a day are sorted, and put into one file, up to about so many."""


def day_of(ms: int) -> str:
    """The UTC date of a time in milliseconds."""
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d")


class Days(NamedTuple):
    """The range of days that a run has computed; None for no bound."""

    first: str | None = None
    last: str | None = None

    def has(self, day: str) -> bool:
        return (self.first is None or day >= self.first) and (self.last is None or day <= self.last)

    def condition(self, column: str) -> str:
        """The same as SQL."""
        parts = [f"{column} >= '{self.first}'"] * (self.first is not None)
        parts += [f"{column} <= '{self.last}'"] * (self.last is not None)
        return " and ".join(parts) or "true"


def table_path(out: Path, name: str) -> Path:
    return out / "tables" / name


def write_few(rows: pa.Table, table: Table, out: Path, days: Days) -> None:
    """Write rows in memory as `write_table` does, as Parquet, without Spark."""
    import pyarrow.compute as pc

    path = table_path(out, table.name)
    path.mkdir(parents=True, exist_ok=True)
    written = set(rows[DAY].unique().to_pylist())
    for day in written:
        of_day = rows.filter(pc.equal(rows[DAY], day)).drop_columns([DAY])
        _replace_day(path / f"{DAY}={day}", [of_day], table)
    _delete_others(path, days, written)


def write_parts(spark: SparkSession, parts: Path, table: Table, out: Path, days: Days) -> None:
    """Write rows as `write_table` does, as Parquet. They are in files below a path, in a directory for each day. Spark
    only gives the days to workers."""
    path = table_path(out, table.name)
    path.mkdir(parents=True, exist_ok=True)
    written = {each.name for each in parts.iterdir()}
    if written:
        frame = spark.createDataFrame([(day,) for day in sorted(written)], f"{DAY} string").repartition(len(written))
        frame.mapInArrow(partial(_write_days, parts=parts, path=path, table=table), f"{DAY} string").collect()
    _delete_others(path, days, written)


def _write_days(batches: Iterator[pa.RecordBatch], parts: Path, path: Path, table: Table) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for day in batch.column(0).to_pylist():
            write_day(day, parts, path, table)
        yield batch


def write_day(day: str, parts: Path, path: Path, table: Table) -> None:
    """Write the rows of a day, which are in files of a directory below `parts`, in place of those that were there."""
    _replace_day(path / f"{DAY}={day}", _pieces(sorted((parts / day).glob("*.parquet"))), table)


def _pieces(files: Sequence[Path]) -> Iterator[pa.Table]:
    """The rows of some files, about so many at a time as are sorted together."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    held: list[pa.Table] = []
    for file in files:
        held.append(pq.read_table(file))
        if sum(each.num_rows for each in held) >= ROWS_IN_ORDER:
            yield pa.concat_tables(held)
            held = []
    if held:
        yield pa.concat_tables(held)


def _replace_day(directory: Path, pieces: Iterable[pa.Table], table: Table) -> None:
    """Write the rows of a day, each piece to a file, and delete the files that were there before."""
    import pyarrow.parquet as pq

    directory.mkdir(exist_ok=True)
    before = {*directory.iterdir()}
    written = []
    for number, piece in enumerate(pieces):
        new = directory / f".part-{number}.parquet"
        pq.write_table(piece.sort_by([(name, "ascending") for name in table.key]), new)
        written.append(new)
    files = {each.replace(directory / each.name.removeprefix(".")) for each in written}
    for each in before - files:
        each.unlink(missing_ok=True)


def _delete_others(path: Path, days: Days, written: Container[str]) -> None:
    """Delete the days of a range that have no rows any more."""
    for day in _days_on_disk(path):
        if days.has(day) and day not in written:
            shutil.rmtree(path / f"{DAY}={day}")


def write_table(rows: DataFrame, table: Table, out: Path, days: Days, form: Format) -> None:
    """Write the rows of some days, and delete all other rows of these days."""
    path = table_path(out, table.name)
    in_order = rows.repartition(DAY).sortWithinPartitions(DAY, *table.key)
    if form == "delta":
        _merge(in_order, table, path, days)
        return
    before = _days_on_disk(path)
    in_order.write.mode("overwrite").option("partitionOverwriteMode", "dynamic").partitionBy(DAY).parquet(str(path))
    after = _days_on_disk(path)
    for day, files in before.items():
        if days.has(day) and after.get(day) == files:  # no row of this day was written
            shutil.rmtree(path / f"{DAY}={day}")


def _days_on_disk(path: Path) -> Mapping[str, frozenset[str]]:
    return {
        each.name.partition("=")[2]: frozenset(file.name for file in each.iterdir()) for each in path.glob(f"{DAY}=*")
    }


def _merge(rows: DataFrame, table: Table, path: Path, days: Days) -> None:
    from delta.tables import DeltaTable  # type: ignore[import-not-found,import-untyped,unused-ignore]

    spark = rows.sparkSession
    if not DeltaTable.isDeltaTable(spark, str(path)):
        rows.write.format("delta").partitionBy(DAY).save(str(path))
        return
    rows = rows.persist()
    old = spark.read.format("delta").load(str(path)).where(days.condition(DAY))
    try:
        if not _are_same(rows, old):
            _replace_rows(DeltaTable.forPath(spark, str(path)), rows, table, days)
    finally:
        rows.unpersist()


def _are_same(rows: DataFrame, old: DataFrame) -> bool:
    if set(rows.columns) - set(old.columns):  # an earlier version of ottla has written them
        return False
    old = old.select(*rows.columns)
    return rows.exceptAll(old).isEmpty() and old.exceptAll(rows).isEmpty()


def _replace_rows(target: Any, rows: DataFrame, table: Table, days: Days) -> None:
    is_same_key = " and ".join(f"old.`{name}` <=> new.`{name}`" for name in table.key)
    merge = target.alias("old").merge(rows.alias("new"), is_same_key).withSchemaEvolution()
    merge = merge.whenMatchedUpdateAll().whenNotMatchedInsertAll()
    merge.whenNotMatchedBySourceDelete(condition=days.condition(f"old.{DAY}")).execute()


def dataset_of(path: Path, columns: tuple[Column, ...] = ()) -> Any:
    """A table of Parquet files, for readers without Spark; None if it has no rows. With `columns` it has exactly these,
    whichever version of ottla has written its files."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    if not any(path.glob(f"{DAY}=*/*.parquet")):
        return None
    partitioning = ds.partitioning(pa.schema([(DAY, pa.string())]), flavor="hive")
    schema = arrow_schema(columns) if columns else None
    return ds.dataset(path, schema=schema, format="parquet", partitioning=partitioning)


class TableFigures:
    """The number of rows of tables, and their sources: records, samples or both. Days and files that did not change are
    not looked at again."""

    def __init__(self, out: Path) -> None:
        self._out = out
        self._days: dict[Path, _DayFigures] = {}

    def rows(self, name: str) -> int:
        return sum(each.rows for each in self._of(name))

    def source(self, name: str) -> str | None:
        """None if the table has no rows."""
        found = frozenset[str]().union(*(each.sources for each in self._of(name)))
        return "both" if len(found) > 1 else next(iter(found), None)

    def _of(self, name: str) -> list[_DayFigures]:
        return [self._day(day) for day in table_path(self._out, name).glob(f"{DAY}=*")]

    def _day(self, path: Path) -> _DayFigures:
        modified_ns = path.stat().st_mtime_ns
        known = self._days.get(path)
        if known is None or known.modified_ns != modified_ns:
            before = {} if known is None else known.files
            files = {file: _figures(file, before.get(file)) for file in path.glob("*.parquet")}
            rows = sum(each.rows for each in files.values())
            sources = frozenset[str]().union(*(each.sources for each in files.values()))
            known = self._days[path] = _DayFigures(modified_ns, rows, sources, files)
        return known


class _DayFigures(NamedTuple):
    modified_ns: int
    rows: int
    sources: frozenset[str]
    files: Mapping[Path, _FileFigures]


class _FileFigures(NamedTuple):
    modified: tuple[int, int]
    """The time of the file, and its inode: a file is replaced, never changed."""
    rows: int
    sources: frozenset[str]


def _figures(file: Path, known: _FileFigures | None) -> _FileFigures:
    """The rows of a file and their sources, from its footer."""
    import pyarrow.parquet as pq

    status = file.stat()
    modified = (status.st_mtime_ns, status.st_ino)
    if known is not None and known.modified == modified:
        return known
    sources = set[str]()
    metadata = pq.read_metadata(file)
    column = metadata.schema.names.index("source")
    for index in range(metadata.num_row_groups):
        stats = metadata.row_group(index).column(column).statistics
        sources |= {stats.min, stats.max} if stats is not None and stats.has_min_max else set()
    return _FileFigures(modified, metadata.num_rows, frozenset(sources))
