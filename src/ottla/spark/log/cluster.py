"""Log directories in the role of a cluster for planning: their partitions, with start and end offsets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ottla.spark.errors import OttlaSparkError
from ottla.spark.log.directory import PartitionFiles, find_partitions
from ottla.spark.log.view import CheckedEnd, PartitionView
from ottla.spark.notes import progress
from ottla.spark.offsets import Offsets, TopicPartition
from ottla.spark.topic.cluster import Assigned

if TYPE_CHECKING:
    from ottla.spark.log.options import PathOptions

__all__ = ["LogCluster"]


_said: set[tuple[str, str]] = set()


class LogCluster:
    """The partitions under some paths. Each call of `assigned` lists the directories again.

    `checked` has the ends of logs, by their directories. Clusters that share it read each end once.
    """

    def __init__(self, options: PathOptions, checked: dict[str, CheckedEnd] | None = None) -> None:
        self._options = options
        self._checked = {} if checked is None else checked
        self._views: dict[TopicPartition, PartitionView] = {}

    def has(self, at: TopicPartition) -> bool:
        return at in self._views

    def view(self, at: TopicPartition) -> PartitionView:
        """A partition as it was when it was last listed."""
        return self._views[at]

    def assigned(self) -> Assigned:
        found: dict[TopicPartition, list[PartitionView]] = {}
        for files in find_partitions(self._options.paths, self._options.is_wanted):
            if self._options.required_id in ("", files.topic_id):
                at = TopicPartition(*files.topic_partition)
                view = PartitionView(files, self._options.up_to, self._checked.get(files.uri))
                found.setdefault(at, []).append(view)
        for gone in self._checked.keys() - {view.files.uri for views in found.values() for view in views}:
            del self._checked[gone]
        self._views = {at: self._longest(at, views) for at, views in sorted(found.items())}
        ids = {at.topic: view.files.topic_id for at, view in self._views.items()}
        return Assigned(
            leaders=dict.fromkeys(self._views, -1),
            ids={topic: topic_id for topic, topic_id in ids.items() if topic_id is not None},
            missing=self._missing(),
        )

    def earliest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return {at: self.view(at).start_offset for at in partitions}

    def latest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return {at: self._end(self.view(at)) for at in partitions}

    def at_time(self, timestamps: Offsets) -> dict[TopicPartition, int | None]:
        return {at: self.view(at).offset_at(timestamp) for at, timestamp in timestamps.items()}

    # --- which partitions ---------------------------------------------------------------------------------------------

    def _missing(self) -> tuple[str, ...]:
        where = ", ".join(self._options.paths)
        there = {at.topic for at in self._views}
        lost = [f"topic {topic}" for topic in self._options.required_topics if topic not in there]
        if self._options.required_id and not there:
            lost.append(f"a topic with the id {self._options.required_id}")
        return tuple(f"in {where} {each}" for each in lost)

    def _longest(self, at: TopicPartition, views: list[PartitionView]) -> PartitionView:
        """The replica with the longest log."""
        ids = {view.files.topic_id: view.files.uri for view in views}
        if len(ids) > 1:
            one, two = list(ids.values())[:2]
            raise OttlaSparkError(
                f"{one} and {two} contain different topics of the same name: choose one with the option topicId"
            )
        chosen = views[0] if len(views) == 1 else max(views, key=self._end)
        self._say(chosen.files, chosen)
        return chosen

    def _end(self, view: PartitionView) -> int:
        checked = view.checked_end(is_committed=self._options.is_committed)
        if checked is not None:
            self._checked[view.files.uri] = checked
        return view.last_stable_offset if self._options.is_committed else view.end_offset

    def _say(self, files: PartitionFiles, view: PartitionView) -> None:
        """With `reportTasks`, log how far a directory is read, once in a process."""
        said = (files.directory.path, view.up_to)
        if self._options.report_tasks and said not in _said:
            _said.add(said)
            progress(source="ottla-log", directory=said[0], upTo=said[1], isClean=files.directory.is_clean)
