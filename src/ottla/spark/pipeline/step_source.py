"""The steps of an archive as a stream of Spark: its offset is the number of the last step.

Planning looks at the new steps only, however many there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit

from ottla.spark.jobs.stream_history import HISTORY_COLUMNS, TYPES, history_of
from ottla.spark.pipeline.archive import Archive
from ottla.spark.pipeline.in_process import INPUT
from ottla.spark.schemas import arrow_schema, ddl

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

__all__ = ["STEP_FORMAT", "StepSource"]

STEP_FORMAT: Final = "ottla-steps"
STEP: Final = "step"
BEFORE_ALL: Final = -1
TASKS_MAX: Final = 64
ROWS: Final = 10_000
_COLUMNS: Final = {**HISTORY_COLUMNS, "newest_ms": "bigint"}
_EVENT: Final = [
    "cluster", "partition", "offset", "ts", "type", "group", "key", "value", "share_topic_id", "share_partition",
    "body", "entity", "seq", "error",
]  # fmt: skip


class StepSource(DataSource):
    """The events of an archive as rows of the folds, with the newest time that was seen when their batch ends
    (`newest_ms`). Option: `out`, the output directory."""

    @classmethod
    def name(cls) -> str:
        return STEP_FORMAT

    def schema(self) -> str:
        return ddl(_COLUMNS)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return StepReader(Path(self.options["out"]))


class StepReader(DataSourceStreamReader):
    def __init__(self, out: Path) -> None:
        self._archive = Archive(out)

    def initialOffset(self) -> dict[str, int]:
        return {STEP: BEFORE_ALL}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        return {STEP: max(start[STEP], self._archive.last_number())}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        files = [
            str(file)
            for number in range(start[STEP] + 1, end[STEP] + 1)
            for file in sorted(self._archive.step_path(number).glob(f"{INPUT}=*/*.parquet"))
        ]
        newest_ms = self._archive.step(end[STEP]).newest_ms
        return [InputPartition((files[at::TASKS_MAX], newest_ms)) for at in range(min(len(files), TASKS_MAX))]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        files, newest_ms = partition.value or ((), 0)  # Spark gives None for an empty plan
        for file in files:
            yield from _history(Path(file), newest_ms)


def _history(file: Path, newest_ms: int) -> Iterator[pa.RecordBatch]:
    """The history rows of the events in a file."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    schema = arrow_schema(_COLUMNS)
    name = file.parent.name.partition("=")[2]
    dataset = ds.dataset(str(file), format="parquet")
    for batch in dataset.to_batches(columns=_EVENT, filter=ds.field("type").isin(sorted(TYPES)), batch_size=ROWS):
        rows = [(*key, *row, newest_ms) for key, row in history_of({INPUT: name, **each} for each in batch.to_pylist())]
        if rows:
            columns = zip(*rows, strict=True)
            arrays = [pa.array(cells, field.type) for cells, field in zip(columns, schema, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)
