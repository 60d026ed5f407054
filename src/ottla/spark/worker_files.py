"""Parquet files that Spark's workers write themselves, because rows that pass the JVM take several times as long.

The files of a task get their names when all tasks are done, so what a failed task has left is never read. Workers and
the driver must see the same file system.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final
from uuid import uuid4

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

__all__ = ["Rows", "write_by_workers", "write_files"]

UNFINISHED: Final = "."
"""Files whose names begin so are not read."""

Rows = Iterable[tuple[str, "pa.RecordBatch"]]
"""Rows, and the name of the directory to which they belong."""


def write_by_workers(
    frame: DataFrame, make: Callable[[Iterator[pa.RecordBatch]], Rows], path: Path, *, in_driver: bool = False
) -> None:
    """Write what `make` turns the rows of a frame into, one file for each task and directory. What was there before is
    deleted. `in_driver`: there are so few rows that the driver is done before workers would have started."""
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    if in_driver:
        write_files(make(iter(frame.toArrow().to_batches())), path, "part-0")
        return
    for (name,) in frame.mapInArrow(_Writer(make, path), "file string").collect():
        file = Path(name)
        file.rename(file.with_name(file.name.removeprefix(UNFINISHED)))
    for left in path.glob(f"*/{UNFINISHED}*"):
        left.unlink()


class _Writer:
    def __init__(self, make: Callable[[Iterator[pa.RecordBatch]], Rows], path: Path) -> None:
        self._make = make
        self._path = path

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        files = write_files(self._make(batches), self._path, f"{UNFINISHED}part-{uuid4().hex}")
        yield pa.RecordBatch.from_pydict({"file": pa.array(map(str, files), pa.string())})


def write_files(rows: Rows, path: Path, name: str) -> list[Path]:
    """Write one file of this name in each directory that has rows; gives the files."""
    import pyarrow.parquet as pq

    writers: dict[Path, pq.ParquetWriter] = {}
    try:
        for directory, batch in rows:
            file = path / directory / f"{name}.parquet"
            if file not in writers:
                file.parent.mkdir(parents=True, exist_ok=True)
                writers[file] = pq.ParquetWriter(file, batch.schema)
            writers[file].write_batch(batch)
    finally:
        for writer in writers.values():
            writer.close()
    return list(writers)
