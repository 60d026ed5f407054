"""Spark's stream reader of a share group."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from ottla.client.client import Client
from ottla.client.errors import ClientError
from ottla.client.metadata import TopicPartition
from ottla.client.offsets import LATEST, list_offsets
from ottla.spark.clients import client_for
from ottla.spark.offsets import SourceOffset
from ottla.spark.query_errors import one_sentence
from ottla.spark.share.decisions import Decisions
from ottla.spark.share.offsets import ShareOffset, TopicIdPartition
from ottla.spark.share.options import ShareOptions
from ottla.spark.share.plan import Limits, SharePlan, Task, tasks_of
from ottla.spark.topic.ranges import join_parts
from ottla.wire import uuid_text

if TYPE_CHECKING:
    import pyarrow as pa

    from ottla.spark.share.decision_listener import Address, Listener

__all__ = ["ShareStreamReader"]

SECOND_MS: Final = 1000


class Work(NamedTuple):
    """What a task reads, one after the other, and where it tells its decisions."""

    parts: tuple[Task, ...]
    address: Address | None


class ShareStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """One object lives on the driver while the query runs; others only carry `read` to executors."""

    def __init__(self, options: ShareOptions) -> None:
        self._options = options
        self._made_plan: SharePlan | None = None
        self._listener: Listener | None = None
        self._decisions = Decisions(options.decision_dir)
        self._stops = False

    def __getstate__(self) -> dict[str, Any]:
        return ShareStreamReader(self._options).__dict__ if self._made_plan or self._listener else self.__dict__

    # --- on the driver ------------------------------------------------------------------------------------------------

    def initialOffset(self) -> dict[str, Any]:
        return ShareOffset(0, self._options.group).to_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._options.max_records_per_trigger)

    def prepareForTriggerAvailableNow(self) -> None:
        self._stops = True

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        with one_sentence():
            known = ShareOffset.from_json(start, self._options.group)
            max_records = limit.max_rows if isinstance(limit, ReadMaxRows) else self._options.max_records_per_trigger
            end = self._plan.next_end(known, max_records)
            return start if end is known else end.to_json()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """The ends of the logs, for Spark's progress; what is acquired ends before them."""
        try:
            return SourceOffset({at: end for at, (_, end) in self._log_ends().items()}).to_json() or None
        except ClientError:
            return None

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        with one_sentence():
            batch = ShareOffset.from_json(end, self._options.group)
            self._decisions.expect(batch)
            tasks = tasks_of(batch, self._options.max_records_per_partition)
            address = self._decisions_at() if self._options.reject_when else None
            return [InputPartition(Work(parts, address)) for parts in join_parts(tasks, self._options.joined_records)]

    def commit(self, end: dict[str, Any]) -> None:
        with one_sentence():
            self._plan.settle(ShareOffset.from_json(end, self._options.group))

    @property
    def _plan(self) -> SharePlan:
        if self._made_plan is None:
            from ottla.spark.share.group_member import GroupMember

            self._decisions_at()
            options = self._options
            self._made_plan = SharePlan(
                GroupMember(options),
                options.group,
                self._decisions,
                lambda: time.monotonic() * SECOND_MS,
                Limits(options.max_bytes_per_trigger, options.acquire_time_ms),
            )
            if self._stops:
                ends = self._log_ends()
                self._made_plan.stop_at({TopicIdPartition(id_, at.partition): end for at, (id_, end) in ends.items()})
        return self._made_plan

    def _decisions_at(self) -> Address:
        if self._listener is None:
            from ottla.spark.share.decision_listener import Listener

            self._listener = Listener(self._options.group, self._decisions)
        return self._listener.address

    def _log_ends(self) -> dict[TopicPartition, tuple[str, int]]:
        """The ids of the topics and the present end offsets of the logs, of those topics that exist."""
        client = client_for(self._options)
        missing = client.call(Client.unknown_topics, self._options.subscribe)
        topics = client.call(Client.topics, [name for name in self._options.subscribe if name not in missing])
        every = [TopicPartition(name, number) for name, topic in topics.items() for number in topic.partitions]
        found = client.call(list_offsets, dict.fromkeys(every, LATEST))
        return {at: (uuid_text(topics[at.topic].topic_id), each.offset) for at, each in found.items()}

    # --- in executors -------------------------------------------------------------------------------------------------

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if partition.value is None:  # Spark gives None for an empty plan
            return
        from ottla.spark.share.task_reader import rows_of

        with one_sentence():
            for each in partition.value.parts:
                yield from rows_of(each, self._options, partition.value.address)
