"""Reads the acquired ranges of one partition from the network as Arrow batches, in a task."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from ottla.spark.clients import client_for
from ottla.spark.errors import OttlaSparkError
from ottla.spark.offsets import TopicPartition
from ottla.spark.share.decision_listener import COLUMNS, Address, by_partition, send
from ottla.spark.share.offsets import Acquisition
from ottla.spark.share.options import ShareOptions
from ottla.spark.share.plan import Task
from ottla.spark.topic.plan import Task as RangeTask
from ottla.spark.topic.task_reader import read_task
from ottla.wire.acknowledge_type import AcknowledgeType

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["rows_of"]

NEAR_OFFSETS: Final = 5_000


def rows_of(task: Task, options: ShareOptions, address: Address | None) -> Iterator[pa.RecordBatch]:
    """The rows of a task. Rows that match `rejectWhen` are rejected, and left out."""
    reading = options.reading()
    chooser = _Chooser(task, options)
    at = TopicPartition(task.topic, task.tp.partition)
    for start, until in _spans(task.ranges):
        span = RangeTask(at, task.tp.topic_id, start, until, -1, 0)
        for batch in read_task(lambda: client_for(reading), span, reading):
            chosen = chooser.chosen(batch)
            if chosen.num_rows and options.reject_when:
                chosen = _without_rejected(chosen, options.reject_when, address)
            if chosen.num_rows:
                yield chosen


def _spans(ranges: Sequence[Acquisition]) -> Iterator[tuple[int, int]]:
    """The ranges to fetch: near ranges are joined, because the records between them cost little."""
    start, until = ranges[0].first, ranges[0].last + 1
    for each in ranges[1:]:
        if each.first - until > NEAR_OFFSETS:
            yield start, until
            start = each.first
        until = max(until, each.last + 1)
    yield start, until


class _Chooser:
    """Selects the acquired rows, and adds the columns of a share group."""

    def __init__(self, task: Task, options: ShareOptions) -> None:
        import numpy as np

        from ottla.spark.schemas import arrow_schema

        self._first = np.array([each.first for each in task.ranges], np.int64)
        self._last = np.array([each.last for each in task.ranges], np.int64)
        self._count = np.array([each.delivery_count for each in task.ranges], np.int32)
        self._seq = task.seq
        self._schema = arrow_schema(options.types())

    def chosen(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        import numpy as np
        import pyarrow as pa

        offsets = batch.column("offset").to_numpy()
        places = np.searchsorted(self._first, offsets, side="right") - 1
        is_ours = (places >= 0) & (offsets <= self._last[np.maximum(places, 0)])
        ours = batch if is_ours.all() else batch.filter(pa.array(is_ours))
        more = [pa.array(self._count[places[is_ours]]), pa.array(np.full(ours.num_rows, self._seq, np.int64))]
        return pa.RecordBatch.from_arrays([*ours.columns, *more], schema=self._schema)


def _without_rejected(batch: pa.RecordBatch, named: str, address: Address | None) -> pa.RecordBatch:
    import pyarrow as pa
    import pyarrow.compute as pc

    marks = pa.array(_function(named)(batch), pa.bool_())
    if len(marks) != batch.num_rows:
        raise OttlaSparkError(f"option rejectWhen: {named} marked {len(marks)} of {batch.num_rows} rows")
    rejected = batch.filter(marks)
    if rejected.num_rows:
        if address is None:
            raise OttlaSparkError("option rejectWhen: the task does not know the address of the query")
        send(address, AcknowledgeType.REJECT, by_partition(rejected.select(COLUMNS).to_pylist()))
    return batch.filter(pc.invert(pc.fill_null(marks, False)))


def _function(named: str) -> Any:
    module, _, name = named.partition(":")
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise OttlaSparkError(f"option rejectWhen: {named} cannot be loaded: {error}") from None
