"""The table consumer_lag in a stream: the hours that new events touch are computed again, from the events of these
hours and of the hour before them. What is older has no influence on them, except the newest commit of each group and
partition and the newest end offset of each log: these are kept.

Offset commits are by far the most events. They stay in columns here, too, so this is no fold.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.spark.jobs.consumer_lag import consumer_lag, lag_table
from ottla.spark.jobs.lag_of_log import HISTORY_MS
from ottla.spark.jobs.params import HOUR_MS
from ottla.spark.jobs.tables import CONSUMER_LAG
from ottla.spark.pipeline.event_decoder import COMMITS, ENDS, EVENT_COLUMNS, EVENT_DDL, LOG_END, SAMPLES
from ottla.spark.pipeline.events import frames_of, tables_of
from ottla.spark.pipeline.in_process import INPUT
from ottla.spark.pipeline.table_changes import hour_file, hour_of
from ottla.spark.pipeline.tables import DAY, table_path
from ottla.spark.records.types import arrow_schema as table_schema
from ottla.spark.schemas import arrow_schema
from ottla.spark.worker_files import Rows, write_by_workers, write_files

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from ottla.spark.jobs.params import Params
    from ottla.spark.pipeline.archive import Archive, Step

__all__ = ["RecentEvents", "first_hour_of", "is_ours", "write_lag"]

JOIN_FACTOR: Final = 2
"""Files are joined if the earlier one has at most so many times the rows of the later ones."""

FOLD_ROWS: Final = 1_000_000
"""So many older events are gathered before only the newest of each key are kept of them."""

ROWS_IN_PROCESS: Final = 500_000
"""Up to so many events, the driver is done before Spark would have planned the job."""

_KINDS: Final = {SAMPLES: ("lag",), COMMITS: ("OffsetCommit",), ENDS: (LOG_END,)}
"""What the table is made of."""
_LASTING: Final = {
    COMMITS: ["cluster", "group", "commit_topic", "commit_partition"],
    ENDS: ["cluster", "topic", "share_topic_id", "partition"],
}
"""Of these, the newest event of each key has influence for ever, if lag is computed with end offsets."""
_SCHEMA: Final = arrow_schema({name: kind for name, kind in EVENT_COLUMNS.items() if name != INPUT})


def first_hour_of(new: list[Step], before: Step | None, lateness_ms: int) -> int | None:
    """The first hour that new steps may touch; None if there was nothing before them."""
    if before is None:
        return None
    watermark_ms = before.newest_ms - lateness_ms
    times = [max(each.from_ms, watermark_ms) for each in new if each.from_ms is not None]
    times += [each.ends_from_ms for each in new if each.ends_from_ms is not None]
    return min(times, default=before.newest_ms) // HOUR_MS


class RecentEvents:
    """The events since some time that the table is made of, in few files: a step that opened each file of two hours
    would cost what is old. The next files of similar size are joined, so that each event is written a few times. Of
    older events, the newest ones that have influence are kept."""

    def __init__(self, archive: Archive, path: Path) -> None:
        self._archive = archive
        self.path = path
        self._parts: dict[str, list[_Part]] = {}
        self._lasting: dict[str, Path] = {}
        """The newest events of what is older."""
        self._has_ends = False
        self._from_ms: int | None = None
        """All events from this time on are kept; None if nothing is."""
        self._last_step = -1
        self._number = 0

    def write(self, from_ms: int) -> dict[str, list[Path]]:
        """The files of the events from this time on, by the names of the inputs. They have some older ones, too."""
        has_ends = bool(self._archive.describe().rows[ENDS])
        if self._from_ms is None or from_ms < self._from_ms or from_ms == 0 or has_ends != self._has_ends:
            self._begin()
            self._from_ms, self._has_ends, self._last_step = from_ms, has_ends, -1
        else:
            # An hour more is kept, because late events may go back to the hour before.
            self._from_ms = max(self._from_ms, from_ms - HOUR_MS)
        steps = self._archive.after(self._last_step)
        recent = self._archive.since(from_ms) if self._last_step < 0 else steps
        for name in _KINDS:
            chosen = steps if self._is_lasting(name) else recent
            directories = (self._archive.step_path(each.number) / f"{INPUT}={name}" for each in chosen)
            new = [file for directory in directories for file in sorted(directory.glob("*.parquet"))]
            self._parts[name] = self._with_new(name, new, self._from_ms)
        last = self._archive.last
        self._last_step = -1 if last is None else last.number
        if from_ms == 0:
            self._from_ms = None  # all that there is would be too much to keep
        found = {name: [each.file for each in parts] for name, parts in self._parts.items()}
        for name, file in self._lasting.items():
            found[name].append(file)
        return {name: files for name, files in found.items() if files}

    def _begin(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        self._parts, self._lasting = {}, {}

    def _is_lasting(self, name: str) -> bool:
        return self._has_ends and name in _LASTING

    def _with_new(self, name: str, files: Sequence[Path], from_ms: int) -> list[_Part]:
        """The files of an input, without those that are too old, and with one that has the events of new files."""
        before = self._parts.get(name, [])
        parts = [each for each in before if each.to_ms >= from_ms]
        gone = [each for each in before if each.to_ms < from_ms]
        new = self._write_part(name, files, from_ms)
        if new is not None:
            joined = [new]
            while parts and parts[-1].rows <= JOIN_FACTOR * sum(each.rows for each in joined):
                joined.insert(0, parts.pop())
            if len(joined) > 1:
                new = self._write_part(name, [each.file for each in joined], from_ms)
                assert new is not None, "it has the new events"
                gone += joined
            parts.append(new)
        if self._is_lasting(name):
            self._keep_newest(name, [*files, *(each.file for each in gone)], from_ms)
        for each in gone:
            each.file.unlink()
        return parts

    def _keep_newest(self, name: str, files: Sequence[Path], from_ms: int) -> None:
        """Of the events in files that are older, keep the newest of each key."""
        import pyarrow as pa
        import pyarrow.dataset as ds
        import pyarrow.parquet as pq

        known = self._lasting.get(name)
        older: list[pa.Table] = []
        added = 0
        wanted = ds.field("type").isin(_KINDS[name]) & (ds.field("ts") < from_ms)
        for batch in ds.dataset([str(each) for each in files], _SCHEMA).to_batches(filter=wanted) if files else ():
            if batch.num_rows:
                older.append(pa.Table.from_batches([batch]))
                added += batch.num_rows
            if added >= FOLD_ROWS:
                older, added = [_newest(older, _LASTING[name])], 0
        if not older:
            return
        if known is not None:
            older.append(pq.ParquetFile(known).read())
        newest = _newest(older, _LASTING[name]).combine_chunks().to_batches()
        (self._lasting[name],) = self._written((f"{INPUT}={name}", batch) for batch in newest)
        if known is not None:
            known.unlink()

    def _written(self, rows: Rows) -> list[Path]:
        self._number += 1
        return write_files(rows, self.path, f"part-{self._number}")

    def _write_part(self, name: str, files: Sequence[Path], from_ms: int) -> _Part | None:
        import pyarrow.compute as pc
        import pyarrow.dataset as ds

        if not files:
            return None
        rows, to_ms = 0, 0

        def batches() -> Rows:
            nonlocal rows, to_ms
            wanted = ds.field("type").isin(_KINDS[name]) & (ds.field("ts") >= from_ms)
            for batch in ds.dataset([str(each) for each in files], _SCHEMA).to_batches(filter=wanted):
                if batch.num_rows:
                    rows, to_ms = rows + batch.num_rows, max(to_ms, pc.max(batch.column("ts")).as_py())
                    yield f"{INPUT}={name}", batch

        written = self._written(batches())
        return _Part(written[0], rows, to_ms) if written else None


class _Part(NamedTuple):
    file: Path
    rows: int
    to_ms: int


def _newest(tables: Sequence[pa.Table], key: list[str]) -> pa.Table:
    """The event with the greatest offset of each key."""
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = pa.concat_tables(tables)
    rows = rows.take(pc.sort_indices(rows, [("offset", "ascending")]))
    numbered = rows.append_column("number", pa.array(range(rows.num_rows), pa.int64()))
    return rows.take(numbered.group_by(key).aggregate([("number", "max")])["number_max"])


def write_lag(
    spark: SparkSession,
    recent: RecentEvents,
    params: Params,
    files: Mapping[str, Path],
    first_hour: int | None,
    out: Path,
    work: Path,
) -> None:
    """Write the hours from this one on, or all of them."""
    from_ms = 0 if first_hour is None else first_hour * HOUR_MS - HISTORY_MS
    found = recent.write(from_ms)
    hours = work / "lag"
    shutil.rmtree(hours, ignore_errors=True)
    params = replace(params, from_ms=None if first_hour is None else first_hour * HOUR_MS)
    if _row_count(found) <= ROWS_IN_PROCESS:
        write_files(_by_hour(_rows_in_process(found, params, files)), hours, "part-0")
    else:
        write_by_workers(_rows_by_spark(spark, recent.path, found, params, files), _by_hour, hours)
    _replace(out, hours, first_hour)


def _row_count(files: Mapping[str, Sequence[Path]]) -> int:
    import pyarrow.parquet as pq

    return sum(pq.read_metadata(file).num_rows for parts in files.values() for file in parts)


def _rows_in_process(
    found: Mapping[str, Sequence[Path]], params: Params, files: Mapping[str, Path]
) -> Iterator[pa.RecordBatch]:
    import pyarrow.parquet as pq

    inputs = tables_of(found) | {name: pq.read_table(path) for name, path in files.items()}
    schema = table_schema(tuple(each for each in CONSUMER_LAG.columns if each.name != DAY))
    return iter(lag_table(inputs, params).select(schema.names).cast(schema).to_batches())


def _rows_by_spark(
    spark: SparkSession,
    path: Path,
    found: Mapping[str, Sequence[Path]],
    params: Params,
    files: Mapping[str, Path],
) -> DataFrame:
    reader = spark.read.schema(EVENT_DDL).option("basePath", str(path))
    events = reader.parquet(*(str(file) for parts in found.values() for file in parts))
    inputs = frames_of(events, dict.fromkeys(found, 1))
    inputs |= {name: spark.read.parquet(str(file)) for name, file in files.items()}
    return consumer_lag(inputs, params).drop(DAY)


def _by_hour(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Rows with their hours."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for batch in batches:
        hours = pc.divide(batch.column(CONSUMER_LAG.event_time), pa.scalar(HOUR_MS, pa.int64()))
        for hour in sorted(set(hours.to_pylist())):
            yield str(hour), batch.filter(pc.equal(hours, hour))


def _replace(out: Path, hours: Path, first_hour: int | None) -> None:
    """Put the new hours in the place of the old ones. A table that is made anew is there as a whole or not at all: the
    next step takes the hours before its own for granted."""
    path = table_path(out, CONSUMER_LAG.name)
    if first_hour is None:
        anew, old = hours.with_name("lag_anew"), hours.with_name("lag_before")
        for left in (anew, old):
            shutil.rmtree(left, ignore_errors=True)
        _write_hours(hours, anew)
        if path.exists():
            path.rename(old)
        if anew.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            table_path(anew, CONSUMER_LAG.name).rename(path)
        return
    written = _write_hours(hours, out)
    for day in path.glob(f"{DAY}=*"):
        for file in day.glob("hour-*.parquet"):
            if hour_of(day, file.name) >= first_hour and file not in written:
                file.unlink()  # the only group with a row was deleted


def _write_hours(hours: Path, out: Path) -> frozenset[Path]:
    """Write the rows of hours to their files below a directory; gives the files."""
    import pyarrow.dataset as ds
    import pyarrow.parquet as pq

    found = {hour_file(out, CONSUMER_LAG, int(each.name)): each for each in hours.glob("*")}
    for file, directory in sorted(found.items()):
        rows = ds.dataset([str(each) for each in directory.glob("*.parquet")]).to_table()
        file.parent.mkdir(parents=True, exist_ok=True)
        new = file.with_name(f".{file.name}.new")
        pq.write_table(rows.sort_by([(name, "ascending") for name in CONSUMER_LAG.key]), new)
        new.rename(file)
    return frozenset(found)


def is_ours(out: Path) -> bool:
    """Whether the table is there and has a file for each hour, not for each day, as a run has written it."""
    path = table_path(out, CONSUMER_LAG.name)
    return path.exists() and not any(path.glob(f"{DAY}=*/part-*.parquet"))
