"""Topologies in descriptions that brokers keep."""

from __future__ import annotations

from ottla.draw.described import topology_of
from ottla.wire.types.streams_group_describe import StreamsGroupDescribeResponseTopologyDescription as Description
from ottla.wire.types.streams_group_describe import (
    StreamsGroupDescribeResponseTopologyDescriptionGlobalStore as GlobalStore,
)
from ottla.wire.types.streams_group_describe import StreamsGroupDescribeResponseTopologyDescriptionNode as Node
from ottla.wire.types.streams_group_describe import (
    StreamsGroupDescribeResponseTopologyDescriptionSubtopology as Subtopology,
)


def test_global_stores_get_the_numbers_that_no_subtopology_has():
    parts = tuple(Subtopology(each, (Node(f"source-{each}", 1),)) for each in ("0", "2"))
    stores = tuple(GlobalStore(Node(f"read-{each}", 1), Node(f"fill-{each}", 2)) for each in "ab")
    found = topology_of(Description(parts, stores)).subtopologies
    assert [(each.id, each.is_global, each.nodes[0].name) for each in found] == [
        ("0", False, "source-0"),
        ("2", False, "source-2"),
        ("1", True, "read-a"),
        ("3", True, "read-b"),
    ]
