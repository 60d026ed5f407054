"""Topics as a stream: Spark's side of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from ottla.spark.clients import client_for, one_sentence
from ottla.spark.offsets import SourceOffset
from ottla.spark.topic.batch_reader import read_partition

if TYPE_CHECKING:
    from ottla.client.blocking import BlockingClient
    from ottla.spark.topic.group_commits import GroupCommits
    from ottla.spark.topic.options import TopicOptions
    from ottla.spark.topic.stream_plan import StreamPlan

__all__ = ["TopicStreamReader"]


class TopicStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """One object lives on the driver as long as the query runs; others are made only to send `read` to executors. So
    nothing happens before it is asked for."""

    def __init__(self, options: TopicOptions) -> None:
        self._options = options
        self._made_plan: StreamPlan | None = None
        self._made_commits: GroupCommits | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_options": self._options, "_made_plan": None, "_made_commits": None}

    # --- on the driver ------------------------------------------------------------------------------------------------

    def initialOffset(self) -> dict[str, Any]:
        with one_sentence():
            return self._plan.initial().to_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        limit = self._options.max_offsets_per_trigger
        return ReadAllAvailable() if limit is None else ReadMaxRows(limit)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        with one_sentence():
            self._settle(start)
            known = SourceOffset.from_json(start)
            end = self._plan.next_end(known, limit.max_rows if isinstance(limit, ReadMaxRows) else None)
            # Spark compares texts: what has not moved has to look as it did, whoever has written it.
            return start if end == known else end.to_json()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        reported = self._plan.reported
        return None if reported is None else reported.to_json()

    def prepareForTriggerAvailableNow(self) -> None:
        self._plan.stop_at_what_is_there()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        with one_sentence():
            tasks = self._plan.tasks_between(SourceOffset.from_json(start), SourceOffset.from_json(end))
            return [InputPartition(each) for each in tasks]

    def commit(self, end: dict[str, Any]) -> None:
        with one_sentence():
            self._settle(end)

    def _settle(self, done: dict[str, Any]) -> None:
        """All before this is done: a batch is planned only after the one before it is in Spark's commit log."""
        if self._commits is not None:
            self._commits.commit(SourceOffset.from_json(done).offsets)

    # --- in executors -------------------------------------------------------------------------------------------------

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return read_partition(partition, self._options)

    # --- made when needed ---------------------------------------------------------------------------------------------

    def _client(self) -> BlockingClient:
        return client_for(self._options)

    @property
    def _plan(self) -> StreamPlan:
        if self._made_plan is None:
            from ottla.spark.topic.cluster import LiveCluster
            from ottla.spark.topic.stream_plan import StreamPlan

            self._made_plan = StreamPlan(LiveCluster(self._client, self._options), self._options)
        return self._made_plan

    @property
    def _commits(self) -> GroupCommits | None:
        if self._made_commits is None and self._options.commit_offsets_to_group:
            from ottla.spark.topic.group_commits import GroupCommits

            self._made_commits = GroupCommits(self._options.commit_offsets_to_group, self._client)
        return self._made_commits
