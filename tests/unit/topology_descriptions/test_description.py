"""Descriptions: equal after a way through JSON, which people can read."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.topology_descriptions import (
    GlobalStore,
    Processor,
    Sink,
    Source,
    Subtopology,
    TopologyDescription,
    from_json,
    to_json,
)

NAMES = st.text(max_size=8)
TUPLES = st.lists(NAMES, max_size=3).map(tuple)
SOURCES = st.builds(Source, NAMES, TUPLES, TUPLES)
PROCESSORS = st.builds(Processor, NAMES, TUPLES, TUPLES)
SINKS = st.builds(Sink, NAMES, st.none() | NAMES, TUPLES)
PARTS = st.builds(Subtopology, NAMES, st.lists(SOURCES | PROCESSORS | SINKS, max_size=4).map(tuple))
STORES = st.builds(GlobalStore, SOURCES, PROCESSORS)
DESCRIPTIONS = st.builds(
    TopologyDescription, st.lists(PARTS, max_size=3).map(tuple), st.lists(STORES, max_size=2).map(tuple)
)


@given(DESCRIPTIONS)
def test_json_there_and_back(description: TopologyDescription) -> None:
    assert from_json(to_json(description)) == description


def test_json_says_what_a_node_is() -> None:
    description = TopologyDescription((Subtopology("0", (Sink("out", "results"),)),))
    (node,) = json.loads(to_json(description))["subtopologies"][0]["nodes"]
    assert node == {"type": "sink", "name": "out", "topic": "results", "successors": []}


@pytest.mark.parametrize("data", [b"", b"[]", b'{"subtopologies": [{"id": 1}]}'])
def test_what_is_no_description_is_a_value_error(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"truncated|Expected"):
        from_json(data)


def test_topics_are_those_of_sources_sinks_and_global_stores() -> None:
    nodes = (Source("a", ("t", "u")), Processor("b", ("store",)), Sink("c", "v"), Sink("d"))
    store = GlobalStore(Source("e", ("w",)), Processor("f"))
    assert TopologyDescription((Subtopology("0", nodes),), (store,)).topics() == {"t", "u", "v", "w"}
