"""A topology against the topics that exist: how many partitions its internal topics must have, how many tasks there
are, and what stands in the way.

The count of a topic that exists is taken as it is in every computation; if it is not what was decided, that is the
result, since topics are never enlarged or made anew behind their owner's back. Topic settings are never compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Final, NamedTuple

from ottla.core.coordinator.contract import Topics
from ottla.core.groups.metadata_hash import group_hash
from ottla.core.groups.streams.effects import InternalTopic
from ottla.core.groups.streams.topology import (
    Subtopology,
    TopicInfo,
    Topology,
    inputs_of,
    required_topics,
    source_topics_of,
)
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject

__all__ = ["Configured", "Problem", "Status", "configure"]

_NAMED_AT_MOST: Final = 3
"""Topics named in a status; the others are counted."""


class Status(IntEnum):
    """What a heartbeat's answer can say beside its error code."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5
    MISSING_CLIENT_TAGS = 6


class Problem(NamedTuple):
    """Why no tasks can be handed out."""

    status: Status
    detail: str


class Configured(NamedTuple):
    metadata_hash: int
    task_counts: Mapping[str, int] = {}
    """By subtopology; empty if they are not known."""
    decided_counts: Mapping[str, int] = {}
    """Partitions that internal topics have or should have."""
    missing: tuple[InternalTopic, ...] = ()
    problem: Problem | None = None

    @property
    def is_ready(self) -> bool:
        return self.problem is None


class _Wrong(Exception):
    """Partition counts do not go together. The text is for the application's people."""


def configure(topology: Topology, topics: Topics) -> Configured:
    """Reject if no set of topics could ever serve this topology."""
    found = {name: topic for name in required_topics(topology) if (topic := topics.by_name(name)) is not None}
    metadata_hash = group_hash(found.values())
    missing_sources = sorted(source_topics_of(topology) - found.keys())
    if missing_sources:
        detail = f"Source topics {_names(missing_sources)} are missing."
        return Configured(metadata_hash, problem=Problem(Status.MISSING_SOURCE_TOPICS, detail))
    counts = _Counts(topology, {name: topic.partition_count for name, topic in found.items()})
    try:
        counts.decide()
    except _Wrong as wrong:
        return Configured(metadata_hash, problem=Problem(Status.INCORRECTLY_PARTITIONED_TOPICS, str(wrong)))
    missing = tuple(counts.missing())
    problem = _missing_internal(missing) if missing else None
    return Configured(metadata_hash, counts.task_counts, counts.decided, missing, problem)


def _missing_internal(missing: Iterable[InternalTopic]) -> Problem:
    names = sorted(each.name for each in missing)
    return Problem(Status.MISSING_INTERNAL_TOPICS, f"Internal topics {_names(names)} are missing.")


def _names(names: list[str]) -> str:
    rest = len(names) - _NAMED_AT_MOST
    return ", ".join(names[:_NAMED_AT_MOST]) + (f" and {rest} more" if rest > 0 else "")


class _Counts:
    """Decides the partition counts of one topology."""

    def __init__(self, topology: Topology, existing: Mapping[str, int]) -> None:
        self._subtopologies = topology.subtopologies
        self._existing = existing
        self._repartition = {
            topic.name: topic for each in self._subtopologies for topic in each.repartition_source_topics
        }
        self.decided: dict[str, int] = {}
        self.task_counts: dict[str, int] = {}

    def decide(self) -> None:
        self._decide_repartition_topics()
        for each in self._subtopologies:
            self._decide_copartition_groups(each)
        for each in self._subtopologies:
            self._decide_tasks(each)
        self._compare()

    def _count(self, topic: str) -> int | None:
        count = self._existing.get(topic)
        return self.decided.get(topic) if count is None else count

    def _inputs_count(self, subtopology: Subtopology) -> int | None:
        return max((count for each in inputs_of(subtopology) if (count := self._count(each)) is not None), default=None)

    def _decide_repartition_topics(self) -> None:
        """Those with a fixed count have it; the others follow from the inputs of who writes them, round by round."""
        self.decided.update({each.name: each.partitions for each in self._repartition.values() if each.partitions > 0})
        while open_sinks := [
            (sink, each)
            for each in self._subtopologies
            for sink in each.repartition_sink_topics
            if sink not in self.decided
        ]:
            found = [(sink, count) for sink, each in open_sinks if (count := self._inputs_count(each)) is not None]
            if not found:
                raise _invalid(
                    f"repartition topics {_names(sorted(sink for sink, _ in open_sinks))} depend on each other"
                )
            self.decided.update(found)
        orphans = sorted(name for name in self._repartition if name not in self.decided)
        if orphans:
            raise _invalid(f"nothing writes repartition topics {_names(orphans)}")

    def _decide_copartition_groups(self, subtopology: Subtopology) -> None:
        for group in subtopology.copartition_groups:
            sources = [subtopology.source_topics[index] for index in group.source_topics]
            repartition = [
                subtopology.repartition_source_topics[index].name for index in group.repartition_source_topics
            ]
            count = self._copartitioned_count(sources, repartition)
            for name in repartition:
                fixed = self._repartition[name].partitions
                if fixed > 0 and fixed != count:
                    raise _Wrong(
                        f"Repartition topic {name} must have {fixed} partitions, its copartition group {count}."
                    )
                self.decided[name] = count

    def _copartitioned_count(self, sources: list[str], repartition: list[str]) -> int:
        """Only the fixed topics of the group itself bind it; Kafka looks at those of the whole topology."""
        if sources:
            return self._common({name: self._count(name) or 0 for name in sources})
        fixed = {
            name: self._repartition[name].partitions for name in repartition if self._repartition[name].partitions > 0
        }
        if fixed:
            return self._common(fixed)
        count = max((self._count(name) or 0 for name in repartition), default=0)
        if count == 0:
            raise _invalid(f"the copartition group of {_names(sorted(repartition))} has no partition count")
        return count

    def _common(self, counts: Mapping[str, int]) -> int:
        if len(set(counts.values())) > 1:
            listed = ", ".join(f"{name} has {count}" for name, count in sorted(counts.items())[:_NAMED_AT_MOST])
            raise _Wrong(f"Copartitioned topics differ in their partition counts: {listed}.")
        return next(iter(counts.values()))

    def _decide_tasks(self, subtopology: Subtopology) -> None:
        count = self._inputs_count(subtopology)
        if count is None:
            raise _invalid(f"subtopology {subtopology.subtopology_id} reads no topic")
        self.task_counts[subtopology.subtopology_id] = count
        for changelog in subtopology.state_changelog_topics:
            self.decided[changelog.name] = count

    def _compare(self) -> None:
        for name in sorted(self._internal_topics()):
            count = self.decided[name]
            existing = self._existing.get(name, count)
            if existing != count:
                raise _Wrong(f"Existing internal topic {name} has {existing} partitions, not {count}.")

    def missing(self) -> Iterable[InternalTopic]:
        for name, topic in sorted(self._internal_topics().items()):
            if name not in self._existing:
                configs = tuple((each.key, each.value) for each in topic.topic_configs)
                yield InternalTopic(name, self.decided[name], topic.replication_factor, configs)

    def _internal_topics(self) -> dict[str, TopicInfo]:
        changelogs = {topic.name: topic for each in self._subtopologies for topic in each.state_changelog_topics}
        return self._repartition | changelogs


def _invalid(text: str) -> Reject:
    return Reject(ErrorCode.STREAMS_INVALID_TOPOLOGY, text)
