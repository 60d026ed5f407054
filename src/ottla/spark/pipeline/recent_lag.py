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

from ottla.spark.jobs.consumer_lag import lag_of_events
from ottla.spark.jobs.lag_of_log import HISTORY_MS, LAG_EVENT
from ottla.spark.jobs.params import HOUR_MS
from ottla.spark.jobs.tables import CONSUMER_LAG
from ottla.spark.pipeline.event_decoder import COMMITS, ENDS
from ottla.spark.pipeline.in_process import INPUT
from ottla.spark.pipeline.lag_in_process import LAG_INPUTS, lag_events_in, lag_in_process
from ottla.spark.pipeline.table_changes import hour_file, hour_of
from ottla.spark.pipeline.tables import DAY, table_path
from ottla.spark.schemas import arrow_schema, ddl
from ottla.spark.worker_files import Rows, write_by_workers, write_files

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from ottla.spark.jobs.params import Isolation, Params
    from ottla.spark.pipeline.archive import Archive, Step

__all__ = ["RecentEvents", "first_hour_of", "is_ours", "write_lag"]

JOIN_FACTOR: Final = 2
"""Files are joined if the earlier one has at most so many times the rows of the later ones."""

FOLD_ROWS: Final = 1_000_000
"""So many older events are gathered before only the newest of each key are kept of them."""

ROWS_IN_PROCESS: Final = 500_000
"""Up to so many events, the driver is done before Spark would have planned the job."""

_LASTING: Final = {
    COMMITS: (["cluster", "group", "topic", "partition"], "seq"),
    ENDS: (["cluster", "topic", "topic_id", "partition"], "end"),
}
"""Of these, the newest event of each key (which is the greatest in the other column) has influence for ever, if lag is
computed with end offsets."""


def first_hour_of(new: list[Step], before: Step | None, lateness_ms: int) -> int | None:
    """The first hour that new steps may touch; None if there was nothing before them."""
    if before is None:
        return None
    watermark_ms = before.newest_ms - lateness_ms
    times = [max(each.from_ms, watermark_ms) for each in new if each.from_ms is not None]
    times += [each.ends_from_ms for each in new if each.ends_from_ms is not None]
    return min(times, default=before.newest_ms) // HOUR_MS


class RecentEvents:
    """The events since some time that the table is made of, as `lag_events` makes them, in few files: a step that
    opened each file of two hours, or read each sample again, would cost what is old. The next files of similar size are
    joined, so that each event is written a few times. Of older events, the newest ones that have influence are kept."""

    def __init__(self, archive: Archive, path: Path, isolation: Isolation = "read_uncommitted") -> None:
        self._archive = archive
        self._isolation: Isolation = isolation
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
        for name in LAG_INPUTS:
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
        older = _Newest(*_LASTING[name]) if self._is_lasting(name) else None
        if older is not None:
            for batch in _batches_in(gone):
                older.add(batch)
        events = lag_events_in(name, files, self._isolation)
        new = self._write_part(name, _since(from_ms, events, older))
        if new is not None:
            joined = [new]
            while parts and parts[-1].rows <= JOIN_FACTOR * sum(each.rows for each in joined):
                joined.insert(0, parts.pop())
            if len(joined) > 1:
                new = self._write_part(name, _since(from_ms, _batches_in(joined), older))
                assert new is not None, "it has the new events"
                gone += joined
            parts.append(new)
        if older is not None:
            self._keep_newest(name, older)
        for each in gone:
            each.file.unlink()
        return parts

    def _keep_newest(self, name: str, older: _Newest) -> None:
        """Of older events, keep the newest of each key."""
        import pyarrow.parquet as pq

        if older.is_empty:
            return
        known = self._lasting.get(name)
        if known is not None:
            for batch in pq.ParquetFile(known).read().to_batches():
                older.add(batch)
        (self._lasting[name],) = self._written((f"{INPUT}={name}", batch) for batch in older.newest())
        if known is not None:
            known.unlink()

    def _written(self, rows: Rows) -> list[Path]:
        self._number += 1
        return write_files(rows, self.path, f"part-{self._number}")

    def _write_part(self, name: str, batches: Iterable[pa.RecordBatch]) -> _Part | None:
        import pyarrow.compute as pc

        rows, to_ms = 0, 0

        def counted() -> Rows:
            nonlocal rows, to_ms
            for batch in batches:
                rows, to_ms = rows + batch.num_rows, max(to_ms, pc.max(batch.column("ts")).as_py())
                yield f"{INPUT}={name}", batch

        written = self._written(counted())
        return _Part(written[0], rows, to_ms) if written else None


class _Part(NamedTuple):
    file: Path
    rows: int
    to_ms: int


def _batches_in(parts: Sequence[_Part]) -> Iterator[pa.RecordBatch]:
    import pyarrow.dataset as ds

    if parts:
        yield from ds.dataset([str(each.file) for each in parts]).to_batches()


def _since(from_ms: int, batches: Iterable[pa.RecordBatch], older: _Newest | None) -> Iterator[pa.RecordBatch]:
    """The events from a time on. Older ones are passed on."""
    import pyarrow as pa

    for batch in batches:
        is_recent = batch.column("ts").to_numpy() >= from_ms
        if not is_recent.all() and older is not None:
            older.add(batch.filter(pa.array(~is_recent)))
        if is_recent.any():
            yield batch if is_recent.all() else batch.filter(pa.array(is_recent))


class _Newest:
    """Events of which only the newest of each key are kept."""

    def __init__(self, key: list[str], order: str) -> None:
        self._key = key
        self._order = order
        self._batches: list[pa.RecordBatch] = []
        self._added = 0

    @property
    def is_empty(self) -> bool:
        return not self._batches

    def add(self, batch: pa.RecordBatch) -> None:
        self._batches.append(batch)
        self._added += batch.num_rows
        if self._added >= FOLD_ROWS:
            self._batches, self._added = self.newest(), 0

    def newest(self) -> list[pa.RecordBatch]:
        import pyarrow as pa
        import pyarrow.compute as pc

        rows = pa.Table.from_batches(self._batches)
        rows = rows.take(pc.sort_indices(rows, [(self._order, "ascending")]))
        numbered = rows.append_column("number", pa.array(range(rows.num_rows), pa.int64()))
        last = numbered.group_by(self._key).aggregate([("number", "max")])["number_max"]
        newest: list[pa.RecordBatch] = rows.take(last).combine_chunks().to_batches()
        return newest


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
    import pyarrow.dataset as ds

    parts = [str(file) for parts in found.values() for file in parts]
    events = ds.dataset(parts, arrow_schema(LAG_EVENT)).to_table()
    return iter(lag_in_process(events, files, params).to_batches())


def _rows_by_spark(
    spark: SparkSession,
    path: Path,
    found: Mapping[str, Sequence[Path]],
    params: Params,
    files: Mapping[str, Path],
) -> DataFrame:
    reader = spark.read.schema(ddl(LAG_EVENT)).option("basePath", str(path))
    events = reader.parquet(*(str(file) for parts in found.values() for file in parts))
    inputs = {name: spark.read.parquet(str(file)) for name, file in files.items()}
    return lag_of_events(events, inputs, params).drop(DAY)


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
