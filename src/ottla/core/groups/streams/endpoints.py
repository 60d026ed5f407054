"""Who answers interactive queries: for each endpoint that a member has told, the partitions whose state is there.

Members of one endpoint are one entry: clients up to 4.3.1 keep only the last of several. A partition that a topic does
not have is left out, and so is a topic that does not exist: neither makes a heartbeat fail.
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.core.coordinator.contract import Topics
from ottla.core.groups.streams.members import Current, Metadata
from ottla.core.groups.streams.tasks import Task, by_subtopology
from ottla.core.groups.streams.topology import Topology, inputs_of
from ottla.wire.types.streams_group_heartbeat import StreamsGroupHeartbeatResponse
from ottla.wire.types.streams_group_heartbeat import (
    StreamsGroupHeartbeatResponseEndpointToPartitions as EndpointToPartitions,
)
from ottla.wire.types.streams_group_heartbeat import StreamsGroupHeartbeatResponseTopicPartition as TopicPartition

__all__ = ["endpoint_map"]


def endpoint_map(
    members: Iterable[tuple[Metadata, Current]], topology: Topology, topics: Topics
) -> tuple[EndpointToPartitions, ...]:
    active: dict[tuple[str, int], set[Task]] = {}
    copies: dict[tuple[str, int], set[Task]] = {}
    for metadata, current in members:
        if metadata.user_endpoint is not None:
            endpoint = (metadata.user_endpoint.host, metadata.user_endpoint.port)
            active.setdefault(endpoint, set()).update(current.assigned.active)
            copies.setdefault(endpoint, set()).update(current.assigned.standby, current.assigned.warmup)
    inputs = {each.subtopology_id: sorted(set(inputs_of(each))) for each in topology.subtopologies}
    kind = StreamsGroupHeartbeatResponse
    return tuple(
        EndpointToPartitions(
            kind.Endpoint(*endpoint),
            _partitions(active[endpoint], inputs, topics),
            _partitions(copies[endpoint], inputs, topics),
        )
        for endpoint in sorted(active)
    )


def _partitions(tasks: Iterable[Task], inputs: dict[str, list[str]], topics: Topics) -> tuple[TopicPartition, ...]:
    entries = []
    for subtopology_id, partitions in by_subtopology(tasks).items():
        for name in inputs.get(subtopology_id, ()):
            topic = topics.by_name(name)
            present = tuple(each for each in partitions if topic is not None and each < topic.partition_count)
            if present:
                entries.append(TopicPartition(name, present))
    return tuple(entries)
