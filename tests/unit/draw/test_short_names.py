"""Short names of what Kafka Streams has named itself."""

import pytest

from ottla.draw.graph import NodeKind
from ottla.draw.layout import layout
from ottla.draw.short_names import short_name, with_short_names
from ottla.draw.svg import svg_text
from tests.unit.draw.pictures import graph


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("KSTREAM-AGGREGATE-0000000003", "aggregate 3"),
        ("KSTREAM-KEY-SELECT-0000000010", "key select 10"),
        ("KTABLE-TOSTREAM-0000000000", "tostream 0"),
        ("KSTREAM-REDUCE-STATE-STORE-0000000007", "reduce state store 7"),
        ("KSTREAM-REDUCE-STATE-STORE-0000000007-repartition-sink", "reduce state store 7 repartition-sink"),
        ("counts", "counts"),
        ("KSTREAM-AGGREGATE", "KSTREAM-AGGREGATE"),
        ("my-KSTREAM-AGGREGATE-0000000003", "my-KSTREAM-AGGREGATE-0000000003"),
        ("", ""),
    ],
)
def test_only_generated_names_are_shortened(name: str, short: str):
    assert short_name(name) == short


def test_boxes_have_short_names_and_hints_have_whole_ones():
    text = svg_text(layout(with_short_names(graph("stateless"))), "stateless")
    assert ">filter 1</text>" in text
    assert "<title>processor KSTREAM-FILTER-0000000001</title>" in text
    assert ">KSTREAM-FILTER-0000000001<" not in text


def test_topics_keep_their_names():
    topics = (NodeKind.TOPIC, NodeKind.REPARTITION, NodeKind.OPEN)
    found = with_short_names(graph("windowed-join"))
    assert {node.words for node in found.nodes if node.kind in topics} == {
        node.name for node in graph("windowed-join").nodes if node.kind in topics
    }
