"""The interface to Spark: `write` in tasks, `commit` and `abort` on the driver, each in a process of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from ottla.client.blocking import BlockingClient
from ottla.spark.clients import client_for, forget_client
from ottla.spark.errors import OttlaSparkError
from ottla.spark.query_errors import one_sentence
from ottla.spark.sink.columns import Columns
from ottla.spark.sink.exactly_once import Prepared, Task, prepare
from ottla.spark.sink.options import SinkOptions
from ottla.spark.sink.row_writer import TaskRows, write_all
from ottla.spark.sink.transaction_end import abort_all, commit_all
from ottla.spark.worker_memory import keep_modules

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark import TaskContext
    from pyspark.sql.types import StructType

__all__ = ["BatchWriter", "StreamWriter", "columns_of"]

QUERY_ID: Final = "sql.streaming.queryId"
BATCH_ID: Final = "streaming.sql.batchId"
"""The property with the batch of a task; `write` has no argument for it."""
SPECULATION: Final = "spark.speculation"
"""A task's properties include the session's settings."""


@dataclass
class Written(WriterCommitMessage):
    """The message of a task to the driver."""

    rows: int
    prepared: Prepared | None = None


def columns_of(schema: StructType, options: SinkOptions) -> Columns:
    types = {field.name: field.dataType.simpleString() for field in schema.fields}
    return Columns.of(types, has_topic_option=bool(options.topic), include_headers=options.include_headers)


class _Writer:
    """The common part of batches and streams."""

    def __init__(self, options: SinkOptions, columns: Columns) -> None:
        self._options = options
        self._columns = columns

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        with one_sentence():
            rows = TaskRows(iterator, self._columns, self._options.topic)
            task = self._exact_task() if self._options.exactly_once else None
            try:
                written = self._write(client_for(self._options), rows, task)
            except Exception:
                forget_client(self._options)  # it may have pending requests; the next attempt begins without any
                raise
        keep_modules()
        return written

    def _write(self, client: BlockingClient, rows: TaskRows, task: Task | None) -> Written:
        if task is None:
            write_all(client, self._options, rows, None)
            return Written(rows.digest.rows)
        prepared = prepare(client, self._options, task, rows)
        return Written(prepared.rows, prepared)

    def _exact_task(self) -> Task:
        if _task_context().getLocalProperty(SPECULATION) == "true" and not self._options.allow_speculation:
            raise OttlaSparkError(
                "option exactlyOnce: spark.speculation is on, and copies of a task end each other's transactions; turn "
                "it off, or set allowSpeculation=true (nothing is written twice, but batches may fail)"
            )
        return self._task()

    def _task(self) -> Task:
        raise NotImplementedError

    def _end(self, messages: Sequence[WriterCommitMessage | None], *, commit: bool) -> None:
        prepared = [each.prepared for each in messages if isinstance(each, Written) and each.prepared is not None]
        if not prepared:
            return
        with one_sentence():
            if commit:
                commit_all(client_for(self._options), self._options, prepared)
            else:
                abort_all(client_for(self._options), prepared)


class BatchWriter(_Writer, DataSourceArrowWriter):
    def _task(self) -> Task:
        return Task(self._options.write_id, 0, _task_context().partitionId())

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        self._end(messages, commit=True)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        self._end(messages, commit=False)


class StreamWriter(_Writer, DataSourceStreamArrowWriter):
    def _task(self) -> Task:
        context = _task_context()
        query_id, batch_id = context.getLocalProperty(QUERY_ID), context.getLocalProperty(BATCH_ID)
        if query_id is None or batch_id is None:
            raise OttlaSparkError("option exactlyOnce: Spark does not provide the query and batch of a task")
        return Task(query_id, int(batch_id), context.partitionId())

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        self._end(messages, commit=True)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        self._end(messages, commit=False)


def _task_context() -> TaskContext:
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None, "writers run in tasks"
    return context
