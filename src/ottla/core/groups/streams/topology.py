"""What an application declares: its subtopologies with the topics that they read, write and keep state in.

The value of the group's topology record serves as the topology itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject
from ottla.wire.types.group_streams import StreamsGroupTopologyValue as Topology
from ottla.wire.types.group_streams import StreamsGroupTopologyValueSubtopology as Subtopology
from ottla.wire.types.group_streams import StreamsGroupTopologyValueTopicInfo as TopicInfo
from ottla.wire.types.streams_group_heartbeat import StreamsGroupHeartbeatRequestTopology as DeclaredTopology

__all__ = [
    "Subtopology",
    "TopicInfo",
    "Topology",
    "check_topology",
    "inputs_of",
    "is_same_topology",
    "required_topics",
    "source_topics_of",
    "subtopology_by_source",
    "topics_named",
    "topology_of",
]


def topology_of(declared: DeclaredTopology) -> Topology:
    """As it is kept. Lists stay in the order in which they were sent."""
    return Topology(declared.epoch, tuple(_subtopology(each) for each in declared.subtopologies))


def _subtopology(declared: Any) -> Subtopology:  # noqa: ANN401 - the request's class of the same shape
    return Subtopology(
        declared.subtopology_id,
        tuple(declared.source_topics),
        tuple(declared.source_topic_regex),
        tuple(map(_topic_info, declared.state_changelog_topics)),
        tuple(declared.repartition_sink_topics),
        tuple(map(_topic_info, declared.repartition_source_topics)),
        tuple(
            Topology.CopartitionGroup(
                tuple(each.source_topics), tuple(each.source_topic_regex), tuple(each.repartition_source_topics)
            )
            for each in declared.copartition_groups
        ),
    )


def _topic_info(declared: Any) -> TopicInfo:  # noqa: ANN401
    configs = tuple(Topology.TopicConfig(each.key, each.value) for each in declared.topic_configs)
    return TopicInfo(declared.name, declared.partitions, declared.replication_factor, configs)


def is_same_topology(one: Topology, other: Topology) -> bool:
    """The order of subtopologies says nothing; that of the lists in them does, since clients sort them."""
    return one.epoch == other.epoch and _by_id(one) == _by_id(other)


def _by_id(topology: Topology) -> dict[str, Subtopology]:
    return {each.subtopology_id: each for each in topology.subtopologies}


def check_topology(declared: DeclaredTopology) -> None:
    """Defects that Apache Kafka 4.3 answers with an unknown server error, which ends the client's thread."""
    if declared.epoch < 0:
        raise _invalid(f"the topology epoch {declared.epoch} is negative")
    ids = [each.subtopology_id for each in declared.subtopologies]
    if len(set(ids)) < len(ids):
        raise _invalid("two subtopologies have the same id")
    for each in declared.subtopologies:
        for topic in each.state_changelog_topics:
            if topic.partitions != 0:
                raise _invalid(f"changelog topic {topic.name} comes with a partition count, which the broker decides")
        _check_copartition_groups(each)


def _check_copartition_groups(subtopology: Any) -> None:  # noqa: ANN401
    source_count, repartition_count = len(subtopology.source_topics), len(subtopology.repartition_source_topics)
    for group in subtopology.copartition_groups:
        if not (_all_below(group.source_topics, source_count) and not group.source_topic_regex) or not _all_below(
            group.repartition_source_topics, repartition_count
        ):
            raise _invalid(f"a copartition group of subtopology {subtopology.subtopology_id} names a topic not in it")


def _all_below(indexes: Iterable[int], count: int) -> bool:
    return all(0 <= each < count for each in indexes)


def _invalid(text: str) -> Reject:
    return Reject(ErrorCode.STREAMS_INVALID_TOPOLOGY, text)


def inputs_of(subtopology: Subtopology) -> Iterator[str]:
    """Topics whose partitions make its tasks."""
    yield from subtopology.source_topics
    for topic in subtopology.repartition_source_topics:
        yield topic.name


def source_topics_of(topology: Topology) -> frozenset[str]:
    """Those that the application reads and that nobody creates for it."""
    return frozenset(name for each in topology.subtopologies for name in each.source_topics)


def subtopology_by_source(topology: Topology) -> dict[str, str]:
    """By topic, the id of the subtopology that reads it."""
    return {name: each.subtopology_id for each in topology.subtopologies for name in inputs_of(each)}


def required_topics(topology: Topology) -> frozenset[str]:
    """Topics whose change may change the assignment."""
    changelogs = (topic.name for each in topology.subtopologies for topic in each.state_changelog_topics)
    return frozenset(subtopology_by_source(topology)).union(changelogs)


def topics_named(topology: Topology | DeclaredTopology) -> frozenset[str]:
    """All topics in it, of all four kinds."""
    names: set[str] = set()
    for each in topology.subtopologies:
        names.update(each.source_topics, each.repartition_sink_topics)
        names.update(topic.name for topic in each.state_changelog_topics)
        names.update(topic.name for topic in each.repartition_source_topics)
    return frozenset(names)
