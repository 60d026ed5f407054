"""Reads small inputs in this process, while Spark still starts.

It uses the readers and decoders that Spark's workers use.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ottla.spark.formats import format_class
from ottla.spark.pipeline.event_decoder import SAMPLES
from ottla.spark.worker_files import Rows, write_files

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["INPUT", "GrowingSource", "Plan", "by_input", "plan_of", "rows_of", "samples_once", "write_events"]

INPUT: Final = "input"
BYTES_MAX: Final = 256 << 20
RECORDS_MAX: Final = 2_000_000
"""As much as is read while Spark starts."""


class Plan(NamedTuple):
    """The reader of a format, and its tasks."""

    reader: Any
    partitions: Sequence[Any]

    @property
    def is_small(self) -> bool:
        values = [part for each in self.partitions if each.value is not None for part in _parts(each.value)]
        sizes: list[int] = [value.size_bytes for value in values if hasattr(value, "size_bytes")]
        counts: list[int] = [value.until - value.start for value in values if hasattr(value, "until")]
        return sum(sizes) <= BYTES_MAX and sum(counts) <= RECORDS_MAX


def _parts(task: Any) -> Sequence[Any]:
    """The ranges of a task; it may read several."""
    return getattr(task, "parts", (task,))


def plan_of(name: str, options: Mapping[str, str]) -> Plan:
    """The tasks of a batch query, as Spark would plan them."""
    reader = _format(name, options).reader(None)
    return Plan(reader, reader.partitions())


class GrowingSource:
    """Plans what is new in a source, step by step. As a stream of Spark does, it keeps the reader of a format, which
    remembers how far it has checked the logs."""

    def __init__(self) -> None:
        self._asked: tuple[str, Mapping[str, str]] | None = None
        self._reader: Any = None

    def plan_after(
        self, name: str, options: Mapping[str, str], start: dict[str, Any] | None
    ) -> tuple[Plan, dict[str, Any]]:
        """The tasks that read what came after some offsets (None: everything), and the offsets after them. Offsets have
        the form in which a stream keeps them in its checkpoint."""
        if self._asked != (name, options):
            self._reader = _format(name, {**options, "startingOffsets": "earliest"}).streamReader(None)
            self._asked = (name, options)
        reader = self._reader
        before = reader.initialOffset() if start is None else start
        end = reader.latestOffset(before, reader.getDefaultReadLimit())
        return Plan(reader, reader.partitions(before, end) if end != before else ()), end


def _format(name: str, options: Mapping[str, str]) -> Any:
    return format_class(name)({key.lower(): value for key, value in options.items()})


def rows_of(plan: Plan) -> Iterator[pa.RecordBatch]:
    for partition in plan.partitions:
        yield from plan.reader.read(partition)


def write_events(batches: Iterable[pa.RecordBatch], path: Path) -> None:
    """Write events as Parquet, in one directory for each input, as Spark would."""
    shutil.rmtree(path, ignore_errors=True)  # left by an attempt that failed
    write_files(by_input(batches), path, "part-0")


def by_input(batches: Iterable[pa.RecordBatch]) -> Rows:
    """Events with the directories of their inputs."""
    for batch in batches:
        yield f"{INPUT}={batch.column(INPUT)[0].as_py()}", batch.drop_columns([INPUT])


def samples_once(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Events without samples that came before."""
    seen: set[tuple[Any, ...]] = set()
    for batch in batches:
        fresh = _unseen(batch, seen) if batch.column(INPUT)[0].as_py() == SAMPLES else batch
        if fresh.num_rows:
            yield fresh


def _unseen(batch: pa.RecordBatch, seen: set[tuple[Any, ...]]) -> pa.RecordBatch:
    """The samples that were not written before: an observer may write the same ones to a topic and to files."""
    import pyarrow as pa

    keys = list(zip(*(batch.column(name).to_pylist() for name in ("cluster", "observer", "seq")), strict=True))
    is_new = []
    for key in keys:
        is_new.append(key not in seen)
        seen.add(key)
    return batch if all(is_new) else batch.filter(pa.array(is_new))
