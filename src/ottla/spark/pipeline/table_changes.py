"""Applies the changes of a stream to tables of Parquet files, one file for each hour: `run_date=D/hour-HH.parquet`.

Only the files of hours that changed are read and written. A file is written beside the old one and renamed, and the
same changes give the same file again, so a batch may be interrupted and repeated.

Changes hold the ids of topics. Names are filled in here, because they may be learned later than the records that need
them: rows that still have an id are noted, and written again when its name is known.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain, groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ottla.spark.jobs.folds.tracker import listed
from ottla.spark.jobs.params import DAY_MS, HOUR_MS
from ottla.spark.jobs.stream_fold import ALL_OF_GROUP, Change, row_key
from ottla.spark.jobs.tables import CONSUMER_LAG, GROUP_TIMELINE, SHARE_DELIVERY, TABLES, Table
from ottla.spark.pipeline.jobs import FOLDED
from ottla.spark.pipeline.tables import DAY, day_of, table_path
from ottla.spark.records.types import arrow_schema

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["STREAMED", "TableChanges", "changes_by_hour", "changes_in", "hour_file", "hour_of"]

STREAMED: Final = (*FOLDED, "share_delivery", "quorum_lag", "findings")
"""The tables that a stream keeps up to date."""
HOURS_PER_DAY: Final = DAY_MS // HOUR_MS
ID_CHARACTERS: Final = 22
"""The length of a topic id as text."""
_unpack: Final = msgspec.msgpack.Decoder().decode
Cells = dict[str, Any]
Key = tuple[Any, ...]


def changes_by_hour(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Changes with the names of directories, one for each table and hour. In a worker."""
    import pyarrow.compute as pc

    for batch in batches:
        places = set(zip(batch.column("table").to_pylist(), batch.column("hour").to_pylist(), strict=True))
        for table, hour in sorted(places):
            is_here = pc.and_(pc.equal(batch.column("table"), table), pc.equal(batch.column("hour"), hour))
            yield f"{table}={hour}", batch.filter(is_here)


class TableChanges:
    """Applies changes to the tables below an output directory."""

    def __init__(self, out: Path) -> None:
        self._out = out
        self._unnamed = _Unnamed(out / "tables" / ".unnamed.json")

    def begin(self) -> None:
        """Delete all rows: the changes that follow make the tables anew, as does the next computation of lag."""
        for name in (*STREAMED, CONSUMER_LAG.name):
            shutil.rmtree(table_path(self._out, name), ignore_errors=True)
        self._unnamed.clear()

    def apply(self, changes: Path, names: Mapping[str, str]) -> None:
        """Apply changes that were written below a path, as `changes_by_hour` has them."""
        found = {each.name: each for each in sorted(changes.glob("*=*"))}
        if f"{ALL_OF_GROUP}=0" in found:
            self._delete_groups({tuple(_unpack(key)) for key, _ in changes_in(found[f"{ALL_OF_GROUP}=0"])})
        for place, directory in found.items():
            name, _, hour = place.partition("=")
            if name in TABLES:
                self._apply(TABLES[name], int(hour), changes_in(directory), names)

    def apply_some(self, changes: Iterable[Change], names: Mapping[str, str]) -> None:
        """Apply a few changes."""
        in_order = sorted(changes, key=lambda each: (each.table, each.hour))
        for (name, hour), some in groupby(in_order, key=lambda each: (each.table, each.hour)):
            self._apply(TABLES[name], hour, ((each.key, each.body) for each in some), names)

    def withdraw(self, table: Table, hours: Iterable[int], source: str, clusters: Collection[str]) -> None:
        """Delete the rows of some hours and clusters that come from a source."""
        for file in (self._file(table, hour) for hour in set(hours)):
            rows = _rows_in(file) if file.exists() else []
            kept = [row for row in rows if row["source"] != source or row["cluster"] not in clusters]
            if len(kept) < len(rows):
                _replace(file, table, kept)

    def name_topics(self, names: Mapping[str, str]) -> None:
        """Fill in names that were learned after their rows were written."""
        for name, hour in sorted(self._unnamed.places_with(names)):
            table, file = TABLES[name], self._file(TABLES[name], hour)
            if file.exists():
                _replace(file, table, self._named(table, hour, _rows_in(file), names))
        self._unnamed.forget(names)

    def _apply(
        self, table: Table, hour: int, changes: Iterable[tuple[bytes, bytes | None]], names: Mapping[str, str]
    ) -> None:
        columns = [name for name in table.names if name != DAY]
        new: dict[Key, Cells | None] = {}
        for key, body in changes:
            new[tuple(_unpack(key))] = None if body is None else dict(zip(columns, _unpack(body), strict=True))
        rows = self._named(table, hour, [row for row in new.values() if row is not None], names)
        file = self._file(table, hour)
        _replace(file, table, rows, _kept(file, table, new.keys()) if file.exists() else None)

    def _delete_groups(self, groups: set[Key]) -> None:
        """Delete the rows from samples of some groups, whenever they were."""
        import pyarrow.dataset as ds

        theirs = ds.field("group").isin([group for _, group in groups]) & (ds.field("source") == "samples")
        for table in (TABLES[name] for name in FOLDED):
            for file in sorted(table_path(self._out, table.name).glob(f"{DAY}=*/*.parquet")):
                if ds.dataset(file).count_rows(filter=theirs):
                    rows = _rows_in(file)
                    kept = [each for each in rows if not (each["source"] == "samples" and _group(each) in groups)]
                    _replace(file, table, kept)

    def _named(self, table: Table, hour: int, rows: list[Cells], names: Mapping[str, str]) -> list[Cells]:
        """Rows with the names of topics. Those that are not known yet are noted."""
        if table.name not in _NAMED:
            return rows
        named, topic_ids = _NAMED[table.name]
        rows = [named(row, names) for row in rows]
        self._unnamed.note(table.name, hour, chain.from_iterable(map(topic_ids, rows)), names)
        return rows

    def _file(self, table: Table, hour: int) -> Path:
        return hour_file(self._out, table, hour)


def hour_file(out: Path, table: Table, hour: int) -> Path:
    """The file of an hour, counted from 1970."""
    day = table_path(out, table.name) / f"{DAY}={day_of(hour * HOUR_MS)}"
    return day / f"hour-{hour % HOURS_PER_DAY:02d}.parquet"


def hour_of(day: Path, name: str) -> int:
    """The hour of a file in the directory of a day, counted from 1970."""
    date = datetime.fromisoformat(day.name.partition("=")[2]).replace(tzinfo=UTC)
    return int(date.timestamp()) * 1000 // HOUR_MS + int(name.removeprefix("hour-").removesuffix(".parquet"))


def changes_in(directory: Path) -> Iterator[tuple[bytes, bytes | None]]:
    """The keys and bodies of changes in a directory, which need not exist."""
    import pyarrow.parquet as pq

    for file in sorted(directory.glob("*.parquet")):
        rows = pq.read_table(file, columns=["key", "body"])
        yield from zip(rows["key"].to_pylist(), rows["body"].to_pylist(), strict=True)


def _rows_in(file: Path) -> list[Cells]:
    import pyarrow.parquet as pq

    found: list[Cells] = pq.ParquetFile(file).read().to_pylist()
    return found


def _kept(file: Path, table: Table, changed: Collection[Key]) -> pa.Table:
    """The rows of a file whose keys are not among those that have changed. Rows stay in columns: there may be many, and
    few of them have the time of a change."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.dataset as ds

    rows = ds.dataset(file, schema=_schema(table)).to_table()
    at = row_key(table).index(table.event_time)
    has_time = pc.is_in(rows[table.event_time], pa.array({key[at] for key in changed}, pa.int64()))
    candidates = rows.filter(has_time)
    keys = zip(*(candidates[name].to_pylist() for name in row_key(table)), strict=True)
    is_kept = pa.array([key not in changed for key in keys], pa.bool_())
    return pa.concat_tables([rows.filter(pc.invert(has_time)), candidates.filter(is_kept)])


def _replace(file: Path, table: Table, rows: Sequence[Cells], kept: pa.Table | None = None) -> None:
    """Write a file with these rows, and with those that are kept of the old one."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    found = pa.Table.from_pylist(list(rows), schema=_schema(table))
    if kept is not None:
        found = pa.concat_tables([kept, found])
    if not found.num_rows:
        file.unlink(missing_ok=True)
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_name(f".{file.name}.new")
    pq.write_table(found.sort_by([(name, "ascending") for name in row_key(table)]), new)
    new.rename(file)


def _schema(table: Table) -> pa.Schema:
    """The columns of a table's files."""
    return arrow_schema(table.undated)


def _group(row: Cells) -> Key:
    return row["cluster"], row["group"]


# --- names of topics --------------------------------------------------------------------------------------------------


class _Unnamed:
    """The ids of topics that rows have instead of names, with the tables and hours of these rows."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._places: dict[str, list[tuple[str, int]]] = {}
        if path.exists():
            self._places = {
                key: [(name, hour) for name, hour in each] for key, each in json.loads(path.read_text()).items()
            }

    def clear(self) -> None:
        self._places = {}
        self._path.unlink(missing_ok=True)

    def note(self, table: str, hour: int, topic_ids: Iterable[str], names: Mapping[str, str]) -> None:
        place, is_new = (table, hour), False
        for topic_id in set(topic_ids) - names.keys():
            if place not in self._places.setdefault(topic_id, []):
                self._places[topic_id].append(place)
                is_new = True
        if is_new:
            self._save()

    def places_with(self, names: Mapping[str, str]) -> set[tuple[str, int]]:
        return {place for topic_id in self._places.keys() & names.keys() for place in self._places[topic_id]}

    def forget(self, names: Mapping[str, str]) -> None:
        if self._places.keys() & names.keys():
            self._places = {topic_id: each for topic_id, each in self._places.items() if topic_id not in names}
            self._save()

    def _save(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        new = self._path.with_name(f"{self._path.name}.new")
        new.write_text(json.dumps(self._places))
        new.rename(self._path)


_PARTITIONS: Final = frozenset(("partition_gained", "partition_revoking", "partition_revoked"))
"""The events whose `old` or `new` is a list of partitions."""


def _partitions(row: Cells) -> Iterator[tuple[str, list[str]]]:
    if row["event"] in _PARTITIONS:
        for name in ("old", "new"):
            if row[name] is not None:
                yield name, json.loads(row[name])


def _named(row: Cells, names: Mapping[str, str]) -> Cells:
    """A row of group_timeline with the names of topics instead of their ids."""
    return row | {cell: listed(_with_name(each, names) for each in found) for cell, found in _partitions(row)}


def _with_name(partition: str, names: Mapping[str, str]) -> str:
    topic, dash, number = partition.rpartition("-")
    return f"{names.get(topic, topic)}{dash}{number}"


def _topic_ids(row: Cells) -> Iterator[str]:
    """The topics of a row that may be ids."""
    for _, found in _partitions(row):
        for each in found:
            topic = each.rpartition("-")[0]
            if len(topic) == ID_CHARACTERS:
                yield topic


def _share_named(row: Cells, names: Mapping[str, str]) -> Cells:
    """A row of share_delivery. Records have the ids of topics only, samples have names."""
    return row if row["topic"] is not None else row | {"topic": names.get(row["topic_id"])}


def _share_topic_ids(row: Cells) -> Iterator[str]:
    if row["topic"] is None and row["topic_id"]:
        yield row["topic_id"]


_NAMED: Final[Mapping[str, tuple[Callable[[Cells, Mapping[str, str]], Cells], Callable[[Cells], Iterator[str]]]]] = {
    GROUP_TIMELINE.name: (_named, _topic_ids),
    SHARE_DELIVERY.name: (_share_named, _share_topic_ids),
}
"""The tables with names of topics: how names are filled in, and which ids have none."""
