"""A task that writes exactly once. It prepares a transaction; the driver commits those of all tasks, or none.

Theory of operation. Each task of a query has a transactional id of its own, the same in every batch and every attempt.

1. The task initializes the producer. That fences every earlier attempt, and ends its transaction.
2. It reads its *marker*: the offset that the query's own group has committed for it in the marker topic, which holds no
   data. A marker is the last committed batch plus one. Only after step 1 is it final.
3. If the marker says that this batch was committed already (the driver died between two commits), the task writes
   nothing, but reads its rows and compares their number and checksum with the marker. If they differ, rows would be
   lost or duplicated, so the batch fails.
4. Otherwise it writes its rows and the new marker, in one transaction, and leaves that open.
5. The driver ends all transactions (see `transaction_end`). If it dies before, the next attempt's step 1 aborts them.

So a batch is partly written only while the driver ends transactions, and only then must a batch that runs again have
the same rows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, NamedTuple

from ottla.client.blocking import BlockingClient
from ottla.client.client import Client
from ottla.client.errors import ResponseError
from ottla.client.group_offsets import Committed, committed
from ottla.client.metadata import TopicPartition
from ottla.client.topics import NewTopic, add_partitions, create, is_unknown
from ottla.client.transactions import Identity, Mark, begin, commit_offsets
from ottla.spark.errors import OttlaSparkError
from ottla.spark.notes import warn
from ottla.spark.sink.digest import Digest
from ottla.spark.sink.options import SinkOptions
from ottla.spark.sink.row_writer import TaskRows, write_all
from ottla.wire.errors import ErrorCode

__all__ = ["Prepared", "Task", "marker_group", "prepare", "read_marker", "read_markers"]

MARKER_PARTITIONS: Final = 64
_LOST_RACES: Final = frozenset((ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.INVALID_PARTITIONS))
"""Another task was faster."""


class Task(NamedTuple):
    """One task of one batch of a query."""

    query_id: str
    batch_id: int
    partition_id: int

    def transactional_id(self, options: SinkOptions) -> str:
        return f"{options.transactional_id_prefix}-{self.query_id}-{options.sink_tag}-{self.partition_id}"

    def marker_at(self, options: SinkOptions) -> TopicPartition:
        return TopicPartition(options.marker_topic, self.partition_id)


class Prepared(NamedTuple):
    """The data that the driver needs of a successful task."""

    task: Task
    rows: int
    identity: Identity | None
    """None if there is no transaction to end: an earlier attempt committed the rows."""


def marker_group(query_id: str, options: SinkOptions) -> str:
    return f"{options.transactional_id_prefix}-sink-{query_id}-{options.sink_tag}"


def prepare(client: BlockingClient, options: SinkOptions, task: Task, rows: TaskRows) -> Prepared:
    """Write a task's rows in a transaction and leave it open."""
    client.call(_ensure_marker_topic, options.marker_topic, task.partition_id + 1)
    identity = client.call(begin, task.transactional_id(options), timeout_ms=options.transaction_timeout_ms)
    marker = read_marker(client, options, task)
    if marker is None:
        _check_missing(task, read_markers(client, options, task.query_id), options)
    elif _is_written(task, marker, options):
        _compare(task, marker, rows.read_on())
        return Prepared(task, rows.digest.rows, None)
    write_all(client, options, rows, identity)
    mark = Mark(task.batch_id + 1, json.dumps(rows.digest._asdict()))
    client.call(commit_offsets, identity, marker_group(task.query_id, options), {task.marker_at(options): mark})
    return Prepared(task, rows.digest.rows, identity)


def read_marker(client: BlockingClient, options: SinkOptions, task: Task) -> Committed | None:
    """A task's marker, after all its transactions have ended."""
    at = task.marker_at(options)
    return client.call(committed, marker_group(task.query_id, options), [at], require_stable=True).get(at)


def read_markers(client: BlockingClient, options: SinkOptions, query_id: str) -> Mapping[int, Committed]:
    """The present markers of all tasks of a query, whose transactions may be open."""
    found = client.call(committed, marker_group(query_id, options))
    return {at.partition: each for at, each in found.items() if at.topic == options.marker_topic}


def _is_written(task: Task, marker: Committed, options: SinkOptions) -> bool:
    """Whether the batch was committed for this task before."""
    if marker.offset > task.batch_id + 1 and options.on_ahead == "fail":
        raise OttlaSparkError(
            f"the sink is ahead of the checkpoint: task {task.partition_id} has written batch {marker.offset - 1} "
            f"already, and is to write batch {task.batch_id}; if the checkpoint was restored on purpose, set "
            "exactlyOnce.onAhead=skip"
        )
    return marker.offset > task.batch_id


def _check_missing(task: Task, markers: Mapping[int, Committed], options: SinkOptions) -> None:
    """Every task writes a marker with every batch; if only some are missing, they have expired."""
    is_lost = any(number > task.partition_id and each.offset >= task.batch_id for number, each in markers.items())
    if not is_lost or not task.batch_id:
        return
    text = (
        f"the marker of task {task.partition_id} is gone from group {marker_group(task.query_id, options)}, as offsets "
        "are that nobody has committed for days; whether its rows of the last batch are written is not known"
    )
    if options.on_missing_marker == "fail":
        raise OttlaSparkError(f"{text}; look, and set onMissingMarker=warn to write them")
    warn(text)


def _compare(task: Task, marker: Committed, found: Digest) -> None:
    if marker.offset != task.batch_id + 1:
        return  # a restored checkpoint: the digest of these rows is gone
    known = Digest(**json.loads(marker.metadata or "{}"))
    if found != known:
        raise OttlaSparkError(
            f"batch {task.batch_id} was partly committed with other rows: task {task.partition_id} has written "
            f"{known.rows} and now has {found.rows} rows or others; the input is not deterministic, or is split into "
            "another number of tasks; run it again as it ran before"
        )


async def _ensure_marker_topic(client: Client, name: str, count: int) -> None:
    try:
        topic = (await client.topics([name]))[name]
        if len(topic.partitions) < count:
            await add_partitions(client, name, count)
    except ResponseError as error:
        if is_unknown(error):
            await _create_marker_topic(client, name, max(count, MARKER_PARTITIONS))
        elif error.code not in _LOST_RACES:
            raise


async def _create_marker_topic(client: Client, name: str, count: int) -> None:
    try:
        await create(client, NewTopic(name, count))
    except ResponseError as error:
        if error.code not in _LOST_RACES:
            raise
    client.metadata.expire(name)
