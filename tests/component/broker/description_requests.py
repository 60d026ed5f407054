"""Descriptions of topologies, pushed and asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ottla.broker.loop.clock import ManualClock
from ottla.wire.types import StreamsGroupDescribeRequest, StreamsGroupTopologyDescriptionUpdateRequest
from tests.component.broker.raw_client import RunningNode, running_node

PLUGIN = "group_streams_topology_description_plugin_class"
IN_MEMORY = "org.apache.kafka.server.streams.InMemoryTopologyDescriptionPlugin"
IN_TOPIC = "ottla.topology_descriptions.TopicPlugin"
Push = StreamsGroupTopologyDescriptionUpdateRequest


def node(directory: Path, plugin: str, clock: ManualClock | None = None, **settings: Any) -> Any:
    patience_ms = 100_000_000
    timeouts = {f"group_streams_{each}session_timeout_ms": patience_ms for each in ("", "max_")}
    settings = {PLUGIN: plugin, "group_streams_initial_rebalance_delay_ms": 0} | timeouts | settings
    return running_node(directory, clock or ManualClock(), **settings)


def description(*topics: str) -> Push.TopologyDescription:
    kind = Push.TopologyDescriptionNode
    nodes = (
        kind("in", 1, source_topics=topics, successors=("count",)),
        kind("count", 2, stores=("counts",), successors=("out",)),
        kind("out", 3, sink_topic="results"),
    )
    store = Push.TopologyDescriptionGlobalStore(kind("all", 1, source_topics=("facts",)), kind("fill", 2))
    return Push.TopologyDescription((Push.TopologyDescriptionSubtopology("0", nodes),), (store,))


def push(running: RunningNode, group: str, **fields: Any) -> tuple[int, str | None]:
    request = Push(**({"group_id": group, "member_id": "A", "topology_description": description("t")} | fields))
    answer = running.client.ask(request, 0)
    return answer.error_code, answer.error_message


def described(running: RunningNode, *group_ids: str) -> list[Any]:
    request = StreamsGroupDescribeRequest(group_ids, include_topology_description=True)
    return list(running.client.ask(request, 1).groups)
