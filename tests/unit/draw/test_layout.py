"""Where things are: what a reader of a drawing takes for granted."""

from collections import Counter

import pytest

from ottla.draw.graph import Cluster, Edge, EdgeKind, Graph, Node, NodeKind, Rank
from ottla.draw.layout import layout
from tests.property.drawing_rules import check_drawing
from tests.unit.draw.pictures import NAMES, graph, plain


@pytest.mark.parametrize("name", NAMES)
def test_real_topologies_are_drawn_by_the_rules(name: str):
    check_drawing(layout(graph(name)))


@pytest.mark.parametrize("width", [14, 24])
def test_also_with_short_lines(width: int):
    check_drawing(layout(graph("large"), name_width=width, width=80))


def test_a_chain_is_a_straight_line():
    drawing = layout(plain("a>b", "b>c", "c>d"))
    assert {len(line.points) for line in drawing.lines} == {2}
    assert [box.y for box in drawing.boxes] == sorted(box.y for box in drawing.boxes)


def test_lines_that_need_not_cross_do_not():
    drawing = layout(plain("a>y", "b>x", "c>z"))
    middle = {box.node.id: box.x + box.width // 2 for box in drawing.boxes}
    order = sorted("abc", key=middle.__getitem__), sorted("xyz", key=middle.__getitem__)
    partners = {"a": "y", "b": "x", "c": "z"}
    assert [partners[each] for each in order[0]] == order[1]


def test_a_circle_has_one_edge_back():
    drawing = layout(plain("a>b", "b>c", "c>a"))
    assert [line.edge.source + line.edge.target for line in drawing.lines if line.is_back] == ["ca"]
    check_drawing(drawing)


def test_an_edge_to_itself_goes_round_the_box():
    drawing = layout(plain("a>a"))
    (line,) = drawing.lines
    assert line.is_back
    assert line.points[0][1] > line.points[-1][1]
    check_drawing(drawing)


def test_sources_are_first_and_sinks_last_in_their_cluster():
    drawing = layout(graph("large"))
    for frame in drawing.frames:
        boxes = [box for box in drawing.boxes if box.node.cluster == frame.cluster.id]
        first, last = min(box.y for box in boxes), max(box.y for box in boxes)
        assert {box.y for box in boxes if box.node.rank is Rank.FIRST} == {first}
        assert {box.y for box in boxes if box.node.rank is Rank.LAST} <= {last}


def test_parts_that_have_nothing_in_common_stand_in_rows():
    drawing = layout(graph("many-parts"), width=120)
    assert drawing.width <= 120
    rows = Counter(frame.y for frame in drawing.frames)
    assert len(rows) > 1
    assert max(rows.values()) > 1


def test_an_edge_into_the_middle_of_a_cluster_is_refused():
    nodes = (Node("t", "t", NodeKind.TOPIC), Node("p", "p", NodeKind.PROCESSOR, "c"))
    with pytest.raises(ValueError, match="in the middle of a cluster"):
        layout(Graph(nodes, (Edge("t", "p", EdgeKind.FLOW),), (Cluster("c", "c"),)))
    with pytest.raises(ValueError, match="no node at one end"):
        layout(Graph(nodes, (Edge("t", "q", EdgeKind.FLOW),)))


def test_a_cluster_without_nodes_is_an_empty_frame():
    drawing = layout(Graph((), (), (Cluster("c", "subtopology 7"),)))
    assert [frame.cluster.title for frame in drawing.frames] == ["subtopology 7"]
    check_drawing(drawing)


def test_two_hundred_nodes():
    found = graph("large")
    assert len(found.nodes) > 200
    check_drawing(layout(found))
