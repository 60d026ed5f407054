"""The Delta tables of a stream. They are copies of Parquet tables, which the stream keeps below `hours`: hours whose
file has changed are replaced in the Delta table, in one transaction for each table.

Which files were copied is noted beside them, after the transaction. So a copy that was interrupted is repeated, which
changes nothing, and a table that is made anew is copied as a whole.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.spark.jobs.params import HOUR_MS
from ottla.spark.jobs.tables import TABLES, Table
from ottla.spark.pipeline.jobs import JOBS
from ottla.spark.pipeline.table_changes import hour_of
from ottla.spark.pipeline.tables import DAY, day_of, table_path
from ottla.spark.records.types import ddl

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["HOURS", "DeltaCopy"]

HOURS: Final = "hours"
"""The directory with the Parquet tables."""
COPIED: Final = ".copied.json"
"""In the directory of a day: its files that were copied. In that of a table: it was copied as a whole once."""

Stamps = dict[str, tuple[int, int]]
"""The files of a day by their names, with time and inode: they are replaced, never changed."""


class _ChangedDay(NamedTuple):
    directory: Path
    files: Stamps
    changed: frozenset[str]
    """The names of files that are new, have changed, or are there no more."""

    def hours(self) -> Iterator[int]:
        return (hour_of(self.directory, name) for name in sorted(self.changed))

    def paths(self) -> Iterator[str]:
        return (str(self.directory / name) for name in sorted(self.changed) if name in self.files)


class DeltaCopy:
    """Copies the tables below `out/hours` to the Delta tables below `out`."""

    def __init__(self, out: Path) -> None:
        self._out = out
        self._hours = out / HOURS
        self._copied_ns: dict[Path, int] = {}
        """When days were changed last, as far as this process has copied them."""

    def copy(self, spark: SparkSession) -> None:
        """Bring all Delta tables up to date."""
        for name in JOBS:
            self._copy(spark, TABLES[name])

    def _copy(self, spark: SparkSession, table: Table) -> None:
        source, target = table_path(self._hours, table.name), table_path(self._out, table.name)
        is_first = not (source / COPIED).exists()
        days = list(self._changed_days(source, is_first=is_first))
        if not days and not (is_first and target.exists()):
            return
        files = [path for day in days for path in day.paths()]
        hours = [] if is_first else [hour for day in days for hour in day.hours()]
        if files:
            reader = spark.read.schema(ddl(table.columns)).option("basePath", str(source))
            _write(reader.parquet(*files), table, target, hours)
        else:
            _delete(spark, table, target, hours)
        for day in days:
            self._note(day)
        if is_first:
            source.mkdir(parents=True, exist_ok=True)  # a table that was made anew may have no rows
            (source / COPIED).write_text("{}")

    def _changed_days(self, source: Path, *, is_first: bool) -> Iterator[_ChangedDay]:
        """The days with files that are not copied as they are: all of them, if the table was not copied as a whole yet.
        A process may have been killed when it had noted some days of such a copy."""
        for directory in sorted(source.glob(f"{DAY}=*")):
            if not is_first and self._copied_ns.get(directory) == directory.stat().st_mtime_ns:
                continue
            files = _stamps(directory)
            copied: Mapping[str, tuple[int, int]] = {} if is_first else _copied(directory)
            names = frozenset(name for name in {**files, **copied} if files.get(name) != copied.get(name))
            if names:
                yield _ChangedDay(directory, files, names)

    def _note(self, day: _ChangedDay) -> None:
        new = day.directory / f"{COPIED}.new"
        new.write_text(json.dumps(day.files))
        new.rename(day.directory / COPIED)
        self._copied_ns[day.directory] = day.directory.stat().st_mtime_ns


def _stamps(directory: Path) -> Stamps:
    found = ((each.name, each.stat()) for each in directory.glob("*.parquet"))
    return {name: (status.st_mtime_ns, status.st_ino) for name, status in found}


def _copied(directory: Path) -> Mapping[str, tuple[int, int]]:
    try:
        told = json.loads((directory / COPIED).read_text())
    except FileNotFoundError:
        return {}
    return {name: (modified_ns, inode) for name, (modified_ns, inode) in told.items()}


def _write(rows: DataFrame, table: Table, target: Path, hours: Sequence[int]) -> None:
    """Replace these hours of a Delta table, or all of it."""
    rows = rows.repartition(DAY).sortWithinPartitions(DAY, *table.key)
    writer = rows.write.format("delta").mode("overwrite").partitionBy(DAY).option("mergeSchema", "true")
    # The session replaces partitions that have rows; here it is said what is replaced.
    writer = writer.option("partitionOverwriteMode", "static")
    if hours:
        writer = writer.option("replaceWhere", _condition(table, hours))
    writer.save(str(target))


def _delete(spark: SparkSession, table: Table, target: Path, hours: Sequence[int]) -> None:
    """Delete these hours of a Delta table, or all of its rows."""
    from delta.tables import DeltaTable  # type: ignore[import-not-found,import-untyped,unused-ignore]

    if DeltaTable.isDeltaTable(spark, str(target)):
        DeltaTable.forPath(spark, str(target)).delete(_condition(table, hours) if hours else None)


def _condition(table: Table, hours: Sequence[int]) -> str:
    """The rows of some hours, as SQL."""
    days = ", ".join(f"'{day}'" for day in sorted({day_of(hour * HOUR_MS) for hour in hours}))
    time = f"`{table.event_time}`"
    ranges = [f"({time} >= {hour * HOUR_MS} and {time} < {(hour + 1) * HOUR_MS})" for hour in hours]
    return f"`{DAY}` in ({days}) and ({' or '.join(ranges)})"
