"""Files of an observer (`kind=K/date=D/NODE-SEQ.jsonl.zst`) as events."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ottla.spark.errors import OttlaSparkError
from ottla.wire.compress import zstd_frames

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["FileDecoder", "files_frame", "observation_files"]

SUFFIX: Final = ".jsonl.zst"
LINES: Final = 20_000
PART: Final = ".part"
"""The suffix of a file that is being written, or whose observer was killed."""


def observation_files(directory: str) -> list[str]:
    """The files below a directory. OttlaSparkError if there is none."""
    if not Path(directory).is_dir():
        raise OttlaSparkError(f"{directory} is not a directory of observations")
    found = sorted(str(path) for path in Path(directory).rglob("*") if path.name.endswith((SUFFIX, SUFFIX + PART)))
    if not found:
        raise OttlaSparkError(f"{directory} contains no observations (files that end with {SUFFIX})")
    return found


def files_frame(spark: SparkSession, files: list[str]) -> DataFrame:
    """The names of files, for tasks that open them, so they must see the same file system."""
    slices = max(1, min(len(files), 2 * spark.sparkContext.defaultParallelism))
    return spark.createDataFrame([(path,) for path in files], "path string").repartition(slices)


class FileDecoder:
    """Reads files and decodes their samples, in a worker."""

    def __init__(self, from_ms: int = 0) -> None:
        self._from_ms = from_ms

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from ottla.spark.pipeline.event_decoder import sample_events

        for batch in batches:
            for path in batch.column("path").to_pylist():
                for lines in _lines(path):
                    events = sample_events(lines, {}, self._from_ms)
                    if events.num_rows:
                        yield events


def _lines(path: str) -> Iterator[list[bytes | None]]:
    """The lines of a file, some at a time."""
    lines: list[bytes | None] = list(zstd_frames(_content(Path(path))).splitlines())
    for start in range(0, len(lines), LINES):
        yield lines[start : start + LINES]


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:  # it is complete by now
        return path.with_name(path.name.removesuffix(PART)).read_bytes()
