"""Reads a range of one partition from the network as Arrow batches, in a task and in bounded memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from ottla.client.blocking import BlockingClient, ReadOptions, read_range
from ottla.client.blocking.range_reader import ReadStats
from ottla.client.errors import ResponseError
from ottla.client.offsets import EARLIEST, LATEST, list_offsets
from ottla.spark.errors import OttlaSparkError
from ottla.spark.notes import progress, warn
from ottla.spark.offsets import TopicPartition, named
from ottla.spark.topic.chunk_decoder import ChunkDecoder
from ottla.spark.topic.loss import Loss
from ottla.spark.topic.options import TopicOptions
from ottla.spark.topic.plan import Task
from ottla.wire import WireError, uuid_bytes
from ottla.wire.errors import ErrorCode

if TYPE_CHECKING:
    from ottla.wire.columns import Columns

__all__ = ["columns_of", "read_task", "task_columns"]

CORRUPT_ATTEMPTS: Final = 3
GONE: Final = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.INCONSISTENT_TOPIC_ID,
)


@dataclass
class _Figures:
    rows: int = 0
    read: ReadStats = field(default_factory=ReadStats)
    decode_s: float = 0.0
    began_s: float = field(default_factory=time.monotonic)


def read_task(client: Callable[[], BlockingClient], task: Task, options: TopicOptions) -> Iterator[Any]:
    """The rows of a task as Arrow batches; with `reportTasks`, logs one line about them at the end."""
    from ottla.spark.rows import RowMaker

    maker = RowMaker(
        *task.at,
        options.columns,
        task.topic_id,
        batch_rows=options.arrow_batch_rows,
        batch_bytes=options.arrow_batch_bytes,
    )
    figures = _Figures()
    for columns in task_columns(client, task, options, figures):
        began_s = time.monotonic()
        for batch in maker.batches(columns, task.start, task.until):
            figures.rows += batch.num_rows
            figures.decode_s += time.monotonic() - began_s
            yield batch
            began_s = time.monotonic()
    if options.report_tasks:
        _report(task, figures)


def task_columns(
    client: Callable[[], BlockingClient], task: Task, options: TopicOptions, figures: _Figures | None = None
) -> Iterator[Columns]:
    """The records of a task; the first and the last columns may have records outside of its range."""
    check_crc = options.kafka.get("check.crcs", "true").lower() != "false"
    decoding = ChunkDecoder(check_crc, is_committed=options.isolation == "read_committed")
    how = options.read_options(uuid_bytes(task.topic_id) if task.topic_id else None)
    return _without_lost(client, task, how, decoding, Loss(options.fail_on_data_loss), figures or _Figures())


def _report(task: Task, figures: _Figures) -> None:
    progress(
        task="ottla",
        topic=task.at.topic,
        partition=task.at.partition,
        start=task.start,
        until=task.until,
        rows=figures.rows,
        bytes=figures.read.bytes,
        fetches=figures.read.fetches,
        retries=figures.read.retries,
        wait_ms=round(figures.read.wait_s * 1000),
        decode_ms=round(figures.decode_s * 1000),
        total_ms=round((time.monotonic() - figures.began_s) * 1000),
    )


# --- what is not there any more ---------------------------------------------------------------------------------------


def _without_lost(
    client: Callable[[], BlockingClient],
    task: Task,
    how: ReadOptions,
    decoding: ChunkDecoder,
    loss: Loss,
    figures: _Figures,
) -> Iterator[Columns]:
    """Go on after records that were deleted in the meantime, if that is allowed."""
    position = task.start
    while position < task.until:
        try:
            for columns, next_position in columns_of(client, task.at, position, task.until, how, decoding, figures):
                yield columns
                position = next_position
        except ResponseError as error:
            position = _behind_loss(client(), task, position, error, loss)
        else:
            return


def _behind_loss(client: BlockingClient, task: Task, position: int, error: ResponseError, loss: Loss) -> int:
    if error.code in GONE:
        gone = "was recreated" if error.code == ErrorCode.INCONSISTENT_TOPIC_ID else "was deleted while it was read"
        loss.report(task.at, f"the topic {gone}; offsets {position}..{task.until - 1} cannot be read")
        return task.until
    if error.code != ErrorCode.OFFSET_OUT_OF_RANGE:
        raise error
    log_start = client.call(list_offsets, {task.at: EARLIEST})[task.at].offset
    if log_start > position:
        return loss.start_in_log(task.at, position, task.until, log_start)
    end = client.call(list_offsets, {task.at: LATEST})[task.at].offset
    if position <= end:
        raise error
    loss.report(task.at, f"the log ends at offset {end}, before {position}")
    return task.until


# --- bytes to columns -------------------------------------------------------------------------------------------------


def columns_of(
    client: Callable[[], BlockingClient],
    at: TopicPartition,
    start: int,
    until: int,
    how: ReadOptions,
    decoding: ChunkDecoder,
    figures: _Figures | None = None,
) -> Iterator[tuple[Columns, int]]:
    """The records of a range in columns, piece by piece, each with the offset after it.

    A piece may have records outside the range. Damaged bytes are fetched again, because the network may have damaged
    them; if they stay damaged, OttlaSparkError says where they are.
    """
    figures = figures or _Figures()
    position = start
    attempts = 0
    while position < until:
        try:
            for chunk in read_range(client(), at, position, until, how, figures.read):
                for columns, next_position in _timed(decoding.columns_of(chunk), figures):
                    yield columns, next_position
                    position = next_position
                    attempts = 0
                    if position >= until:
                        return
        except WireError as error:
            attempts += 1
            text = f"corrupt record batch at {named(at)} offset {position}: {error}"
            if attempts >= CORRUPT_ATTEMPTS:
                raise OttlaSparkError(text) from None
            warn(f"{text}; fetching it again")
        else:
            return


def _timed(decoded: Iterator[tuple[Columns, int]], figures: _Figures) -> Iterator[tuple[Columns, int]]:
    while True:
        began_s = time.monotonic()
        found = next(decoded, None)
        figures.decode_s += time.monotonic() - began_s
        if found is None:
            return
        yield found
