"""Spark's readers of ranges of offsets, in batches and as a stream, for all formats.

A format implements planning and the reading of a task. It must not do anything in its constructor: Spark creates these
objects often and in several processes, which share no state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from ottla.spark.filters import EVERYTHING, Bounds, bounds_of, values_of
from ottla.spark.offsets import SourceOffset
from ottla.spark.query_errors import one_sentence
from ottla.spark.range_options import RangeOptions
from ottla.spark.worker_memory import keep_modules

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import Filter

    from ottla.spark.topic.stream_plan import StreamPlan

__all__ = ["OptionsT", "RangeReader", "RangeStreamReader", "TakesFilters"]

OptionsT = TypeVar("OptionsT", bound=RangeOptions)


class RangeReader(DataSourceReader, Generic[OptionsT]):
    """Reads everything between start and end."""

    def __init__(self, options: OptionsT) -> None:
        self._options = options
        self._bounds = EVERYTHING
        self._values: Mapping[str, frozenset[str | int]] = {}
        """The only values of some columns; a format may leave out rows with others."""

    def partitions(self) -> Sequence[InputPartition]:
        with one_sentence():
            return [InputPartition(each) for each in self._tasks(self._bounds)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return _rows_of(self, partition)

    def _tasks(self, bounds: Bounds) -> Iterable[object]:
        """The tasks; called in the planner."""
        raise NotImplementedError

    def _rows(self, task: Any) -> Iterator[pa.RecordBatch]:
        """The rows of a task; called in an executor's worker."""
        raise NotImplementedError


class TakesFilters:
    """Narrows the plan by the query's filters. A class of its own, because Spark rejects readers with this method when
    `spark.sql.python.filterPushdown.enabled` is off."""

    _bounds: Bounds
    _values: Mapping[str, frozenset[str | int]]
    _column_prefix = ""
    """What the names of the columns for topic, partition, offset and time begin with."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        self._bounds = bounds_of(filters, self._column_prefix)
        self._values = values_of(filters)
        return filters  # Spark applies them again, because a plan may be too wide


class RangeStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow, Generic[OptionsT]):
    """One object lives on the driver while the query runs; others only carry `read` to executors."""

    def __init__(self, options: OptionsT) -> None:
        self._options = options
        self._made_plan: StreamPlan | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_options": self._options, "_made_plan": None}

    # --- on the driver ------------------------------------------------------------------------------------------------

    def initialOffset(self) -> dict[str, Any]:
        with one_sentence():
            return self._plan.initial().to_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        limit = self._options.max_offsets_per_trigger
        return ReadAllAvailable() if limit is None else ReadMaxRows(limit)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        with one_sentence():
            known = SourceOffset.from_json(start)
            self._settle(known)
            end = self._plan.next_end(known, limit.max_rows if isinstance(limit, ReadMaxRows) else None)
            # Spark compares texts: an offset that has not moved must keep its text, even if another source wrote it.
            return start if end == known else end.to_json()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        reported = self._plan.reported
        return None if reported is None else reported.to_json()

    def prepareForTriggerAvailableNow(self) -> None:
        self._plan.stop_at_what_is_there()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        with one_sentence():
            tasks = self._tasks_between(SourceOffset.from_json(start), SourceOffset.from_json(end))
            return [InputPartition(each) for each in tasks]

    def commit(self, end: dict[str, Any]) -> None:
        with one_sentence():
            self._settle(SourceOffset.from_json(end))

    def _settle(self, done: SourceOffset) -> None:
        """Everything before this is done: a batch is planned only after the one before it is in Spark's commit log."""

    def _tasks_between(self, start: SourceOffset, end: SourceOffset) -> Iterable[object]:
        return self._plan.tasks_between(start, end)

    @property
    def _plan(self) -> StreamPlan:
        if self._made_plan is None:
            self._made_plan = self._make_plan()
        return self._made_plan

    def _make_plan(self) -> StreamPlan:
        raise NotImplementedError

    # --- in executors -------------------------------------------------------------------------------------------------

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return _rows_of(self, partition)

    def _rows(self, task: Any) -> Iterator[pa.RecordBatch]:
        raise NotImplementedError


def _rows_of(
    reader: RangeReader[OptionsT] | RangeStreamReader[OptionsT], partition: InputPartition
) -> Iterator[pa.RecordBatch]:
    if partition.value is not None:  # Spark gives None for an empty plan
        with one_sentence():
            yield from reader._rows(partition.value)
    keep_modules()
