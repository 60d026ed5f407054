"""The table consumer_lag in a stream: the hours that new events touch are computed again, from the events of these
hours and of the hour before them. What is older has no influence on them.

Offset commits are by far the most events. They stay in columns here, too, so this is no fold.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ottla.spark.jobs.consumer_lag import consumer_lag
from ottla.spark.jobs.lag_seconds import HISTORY_MS
from ottla.spark.jobs.params import HOUR_MS
from ottla.spark.jobs.tables import CONSUMER_LAG
from ottla.spark.pipeline.event_decoder import COMMITS, SAMPLES
from ottla.spark.pipeline.events import frames_of
from ottla.spark.pipeline.in_process import INPUT
from ottla.spark.pipeline.table_changes import hour_file
from ottla.spark.pipeline.tables import DAY, table_path
from ottla.spark.worker_files import write_by_workers, write_files

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from ottla.spark.jobs.params import Params
    from ottla.spark.pipeline.archive import Archive, Step

__all__ = ["first_hour_of", "is_ours", "write_lag"]

_KINDS: Final = {SAMPLES: ("lag", "group"), COMMITS: ("OffsetCommit",)}
"""What the table is made of. Records of groups tell their types only, as do samples of groups."""


def first_hour_of(new: list[Step], before: Step | None, lateness_ms: int) -> int | None:
    """The first hour that new steps may touch; None if there was nothing before them."""
    if before is None:
        return None
    oldest_ms = min((each.from_ms for each in new if each.from_ms is not None), default=before.newest_ms)
    return max(oldest_ms, before.newest_ms - lateness_ms) // HOUR_MS


def write_lag(
    spark: SparkSession,
    archive: Archive,
    params: Params,
    files: Mapping[str, Path],
    first_hour: int | None,
    out: Path,
    work: Path,
) -> None:
    """Write the hours from this one on, or all of them."""
    from_ms = 0 if first_hour is None else first_hour * HOUR_MS - HISTORY_MS
    recent = work / "recent"
    shutil.rmtree(recent, ignore_errors=True)
    steps = [each for each in archive.after(-1) if each.to_ms is not None and each.to_ms >= from_ms]
    written = write_files(_events(archive, steps, from_ms), recent, "part-0")
    hours = work / "lag"
    shutil.rmtree(hours, ignore_errors=True)
    if written:
        events = spark.read.parquet(str(recent))
        inputs = frames_of(events, {path.parent.name.partition("=")[2]: 1 for path in written})
        inputs |= {name: spark.read.parquet(str(path)) for name, path in files.items()}
        write_by_workers(_rows(inputs, params, first_hour), _by_hour, hours)
    _replace(out, hours, first_hour)


def _events(archive: Archive, steps: Sequence[Step], from_ms: int) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The events of some steps that the table is made of, with the names of their inputs."""
    import pyarrow.dataset as ds

    for name, kinds in _KINDS.items():
        paths = (archive.step_path(each.number) for each in steps)
        files = [str(file) for path in paths for file in path.glob(f"{INPUT}={name}/*.parquet")]
        wanted = ds.field("type").isin(kinds) & (ds.field("ts") >= from_ms)
        for batch in ds.dataset(files).to_batches(filter=wanted) if files else ():
            if batch.num_rows:
                yield f"{INPUT}={name}", batch


def _rows(inputs: Mapping[str, DataFrame], params: Params, first_hour: int | None) -> DataFrame:
    from dataclasses import replace

    from_ms = None if first_hour is None else first_hour * HOUR_MS
    return consumer_lag(inputs, replace(params, from_ms=from_ms)).drop(DAY)


def _by_hour(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Rows with their hours. In a worker."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for batch in batches:
        hours = pc.divide(batch.column(CONSUMER_LAG.event_time), pa.scalar(HOUR_MS, pa.int64()))
        for hour in sorted(set(hours.to_pylist())):
            yield str(hour), batch.filter(pc.equal(hours, hour))


def _replace(out: Path, hours: Path, first_hour: int | None) -> None:
    """Put the new hours in the place of the old ones."""
    import pyarrow.dataset as ds
    import pyarrow.parquet as pq

    if first_hour is None:
        shutil.rmtree(table_path(out, CONSUMER_LAG.name), ignore_errors=True)
    for directory in sorted(hours.glob("*")):
        rows = ds.dataset([str(file) for file in directory.glob("*.parquet")]).to_table()
        file = hour_file(out, CONSUMER_LAG, int(directory.name))
        file.parent.mkdir(parents=True, exist_ok=True)
        new = file.with_name(f".{file.name}.new")
        pq.write_table(rows.sort_by([(name, "ascending") for name in CONSUMER_LAG.key]), new)
        new.rename(file)


def is_ours(out: Path) -> bool:
    """Whether the table has a file for each hour, not for each day, as a run has written it."""
    return not any(table_path(out, CONSUMER_LAG.name).glob(f"{DAY}=*/part-*.parquet"))
