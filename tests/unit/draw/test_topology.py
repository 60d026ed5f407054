"""The graph of a topology: topics and stores as nodes of their own, subtopologies as clusters."""

from ottla.draw.graph import Edge, EdgeKind, NodeKind
from ottla.draw.layout import layout
from ottla.draw.topology import Kind, Subtopology, Topology, TopologyNode, graph_of, without_stores
from tests.unit.draw.pictures import graph, topology


def test_a_topic_between_subtopologies_is_one_node_outside_of_both():
    found = graph("word-count")
    (between,) = [node for node in found.nodes if node.kind is NodeKind.REPARTITION]
    assert (between.name, between.cluster) == ("counts-repartition", None)
    around = {(edge.source, edge.target) for edge in found.edges if between.id in edge}
    assert around == {
        ("subtopology:0/node:counts-repartition-sink", between.id),
        (between.id, "subtopology:1/node:counts-repartition-source"),
    }


def test_a_topic_that_only_ends_so_is_nothing_special():
    nodes = (TopologyNode("read", Kind.SOURCE, topics=("x-repartition",)),)
    found = graph_of(Topology((Subtopology("0", nodes),)))
    assert [node.kind for node in found.nodes] == [NodeKind.SOURCE, NodeKind.TOPIC]


def test_a_shared_store_is_one_node():
    found = graph("own-processors")
    (store,) = [node for node in found.nodes if node.name == "limits"]
    users = {edge.source for edge in found.edges if edge.target == store.id}
    assert users == {"subtopology:0/node:fraud", "subtopology:0/node:balance"}
    assert {edge.kind for edge in found.edges if edge.target == store.id} == {EdgeKind.USES}


def test_the_same_name_in_two_subtopologies_is_two_nodes():
    part = (TopologyNode("a", Kind.PROCESSOR, stores=("s",)),)
    found = graph_of(Topology((Subtopology("0", part), Subtopology("1", part))))
    assert len({node.id for node in found.nodes}) == 4


def test_a_topic_with_the_name_of_a_node_is_another_node():
    nodes = (TopologyNode("x", Kind.SOURCE, topics=("x",)),)
    found = graph_of(Topology((Subtopology("0", nodes),)))
    assert found.edges == (Edge("topic:x", "subtopology:0/node:x", EdgeKind.FLOW),)


def test_topics_without_names_are_drawn_as_such():
    names = [node.name for node in graph("routing").nodes if node.kind is NodeKind.OPEN]
    assert names == ["events-[a-z]+(, old)?", "chosen per record"]


def test_a_successor_that_is_not_there_is_left_out():
    nodes = (TopologyNode("a", Kind.PROCESSOR, successors=("gone",)),)
    assert graph_of(Topology((Subtopology("0", nodes),))).edges == ()


def test_of_nodes_with_the_same_name_one_is_drawn():
    nodes = (
        TopologyNode("a", Kind.SOURCE, topics=("in",), successors=("b",)),
        TopologyNode("b", Kind.PROCESSOR, successors=("a",)),
        TopologyNode("b", Kind.SINK, sink_topic="out"),
    )
    found = graph_of(Topology((Subtopology("0", nodes),)))
    assert [node.name for node in found.nodes] == ["a", "in", "b", "out"]
    assert len(layout(found).boxes) == 4


def test_a_folded_subtopology_is_one_node_between_its_topics():
    found = graph_of(topology("word-count"), {"0"})
    (part,) = [node for node in found.nodes if node.kind is NodeKind.SUBTOPOLOGY]
    count = len(topology("word-count").subtopologies[0].nodes)
    assert (part.name, part.cluster) == (f"subtopology 0: {count} processors", None)
    assert [each.title for each in found.clusters] == ["subtopology 1"]
    around = {(edge.source, edge.target) for edge in found.edges if part.id in edge}
    assert around == {("topic:lines", part.id), (part.id, "topic:counts-repartition")}
    assert {node.kind for node in found.nodes if node.name == "counts-repartition"} == {NodeKind.REPARTITION}


def test_all_subtopologies_folded_leave_topics_with_and_without_names():
    found = graph_of(topology("routing"), {each.id for each in topology("routing").subtopologies})
    assert found.clusters == ()
    assert {"events-[a-z]+(, old)?", "chosen per record"} <= {node.name for node in found.nodes}


def test_stores_can_be_left_out():
    found = without_stores(graph("own-processors"))
    assert NodeKind.STORE not in {node.kind for node in found.nodes}
    assert {edge.kind for edge in found.edges} == {EdgeKind.FLOW}
    assert len(found.nodes) < len(graph("own-processors").nodes)
