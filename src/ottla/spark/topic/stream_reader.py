"""Spark's stream reader of topics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ottla.spark.clients import client_for
from ottla.spark.offsets import SourceOffset
from ottla.spark.topic.batch_reader import rows_of
from ottla.spark.topic.options import TopicOptions
from ottla.spark.topic.prefetch import JoiningStreamReader

if TYPE_CHECKING:
    import pyarrow as pa

    from ottla.client.blocking import BlockingClient
    from ottla.spark.topic.group_commits import GroupCommits
    from ottla.spark.topic.plan import JoinedTask
    from ottla.spark.topic.stream_plan import StreamPlan

__all__ = ["TopicStreamReader"]


class TopicStreamReader(JoiningStreamReader[TopicOptions]):
    def __init__(self, options: TopicOptions) -> None:
        super().__init__(options)
        self._made_commits: GroupCommits | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_made_commits": None}

    def _make_plan(self) -> StreamPlan:
        from ottla.spark.topic.cluster import LiveCluster
        from ottla.spark.topic.stream_plan import StreamPlan

        return StreamPlan(LiveCluster(self._client, self._options), self._options)

    def _rows(self, task: JoinedTask) -> Iterator[pa.RecordBatch]:
        for each in task.parts:
            yield from rows_of(each, self._options)

    def _settle(self, done: SourceOffset) -> None:
        if self._commits is not None:
            self._commits.commit(done.offsets)

    def _client(self) -> BlockingClient:
        return client_for(self._options)

    @property
    def _commits(self) -> GroupCommits | None:
        if self._made_commits is None and self._options.commit_offsets_to_group:
            from ottla.spark.topic.group_commits import GroupCommits

            self._made_commits = GroupCommits(self._options.commit_offsets_to_group, self._client)
        return self._made_commits
