"""The driver's part of exactly-once writes: ends the open transactions of a batch's tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ottla.client.blocking import BlockingClient
from ottla.client.errors import ClientError, ResponseError
from ottla.client.transactions import end
from ottla.spark.errors import OttlaSparkError
from ottla.spark.notes import warn
from ottla.spark.sink.exactly_once import Prepared, read_markers
from ottla.spark.sink.options import SinkOptions
from ottla.wire.errors import ErrorCode

__all__ = ["abort_all", "commit_all"]

_OVER: Final = frozenset((ErrorCode.INVALID_TXN_STATE, ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED))
"""The transaction has ended, or another producer has taken over its id."""


def commit_all(client: BlockingClient, options: SinkOptions, prepared: Sequence[Prepared]) -> None:
    """Commit every transaction. One that has ended already is fine, if its marker says that it was committed."""
    _check_tasks(client, options, prepared)
    for each in prepared:
        if each.identity is None:
            continue
        try:
            client.call(end, each.identity, commit=True)
        except ResponseError as error:
            if error.code not in _OVER or not _is_committed(client, options, each):
                raise _failed(each, options, error) from None


def _check_tasks(client: BlockingClient, options: SinkOptions, prepared: Sequence[Prepared]) -> None:
    """If a batch was partly committed, its committed tasks must be among these: else their rows are in others now."""
    task = prepared[0].task
    markers = read_markers(client, options, task.query_id)
    done = {number for number, each in markers.items() if each.offset == task.batch_id + 1}
    if missing := sorted(done - {each.task.partition_id for each in prepared}):
        raise OttlaSparkError(
            f"batch {task.batch_id} was partly committed with other tasks: task {missing[0]} has written its rows, and "
            f"now there are {len(prepared)} tasks; run it again with as many as before"
        )


def _is_committed(client: BlockingClient, options: SinkOptions, prepared: Prepared) -> bool:
    # Its own transaction has ended; do not wait for one that another producer has begun for the same task.
    marker = read_markers(client, options, prepared.task.query_id).get(prepared.task.partition_id)
    return marker is not None and marker.offset > prepared.task.batch_id


def _failed(prepared: Prepared, options: SinkOptions, error: ResponseError) -> OttlaSparkError:
    task = prepared.task
    if error.code not in _OVER:
        return OttlaSparkError(str(error))
    return OttlaSparkError(
        f"the transaction of task {task.partition_id} in batch {task.batch_id} was ended by somebody else: the batch "
        f"took longer than transactionTimeoutMs={options.transaction_timeout_ms} (brokers allow no more than their "
        "transaction.max.timeout.ms), or another driver or a speculative copy runs the same query; it has to run again"
    )


def abort_all(client: BlockingClient, prepared: Sequence[Prepared]) -> None:
    """Abort the open transactions. Spark also aborts after a failed commit, so some may have ended already."""
    for each in prepared:
        if each.identity is None:
            continue
        try:
            client.call(end, each.identity, commit=False)
        except ClientError as error:
            if not isinstance(error, ResponseError) or error.code not in _OVER:
                warn(f"a transaction was not aborted and will end with its timeout: {error}")
