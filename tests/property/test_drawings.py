"""Drawings of any topology, sound or not: a broker hands out whatever a client has pushed."""

from xml.etree import ElementTree

from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.draw.layout import Drawing, layout
from ottla.draw.outline import outline
from ottla.draw.svg import svg_text
from ottla.draw.terminal import drawn_text, terminal_text
from ottla.draw.text import cells, printable
from ottla.draw.topology import Kind, Subtopology, Topology, TopologyNode, graph_of
from tests.property.drawing_rules import check_drawing

TOPICS = ("topic-0", "topic-1", "topic-2", "topic-3", "x-repartition", "数")
STORES = ("store", "another-store", "s")
WORDS = ("a", "KSTREAM-MAP-0000000001", "größer", "数える", "a b, c", "x" * 50, "\x1b[31m", "<&\"'>", "-->")


@st.composite
def subtopologies(draw: st.DrawFn, number: int) -> Subtopology:
    """Some are as Kafka Streams makes them; others have circles, sinks that lead on, and sources that are led to."""
    count = draw(st.integers(0, 9))
    names = [f"{draw(st.sampled_from(WORDS))}{at}" for at in range(count)]
    nodes = []
    for at, name in enumerate(names):
        kind = draw(st.sampled_from(Kind))
        sound = draw(st.booleans())
        later = names[at + 1 :] if sound else names
        successors = draw(st.lists(st.sampled_from(later), max_size=3, unique=True)) if later else []
        nodes.append(
            TopologyNode(
                name,
                kind,
                topics=tuple(draw(st.lists(st.sampled_from(TOPICS), max_size=4, unique=True))),
                sink_topic=draw(st.none() | st.sampled_from(TOPICS)),
                stores=tuple(draw(st.lists(st.sampled_from(STORES), max_size=3, unique=True)))
                if kind is Kind.PROCESSOR
                else (),
                successors=tuple(successors),
            )
        )
    return Subtopology(str(number), tuple(nodes), is_global=draw(st.booleans()))


@st.composite
def topologies(draw: st.DrawFn) -> Topology:
    return Topology(tuple(draw(subtopologies(number)) for number in range(draw(st.integers(0, 4)))))


@settings(max_examples=150, deadline=None)
@given(topologies(), st.integers(1, 40), st.integers(1, 200), st.sets(st.sampled_from("012")))
def test_every_drawing_keeps_the_rules(topology: Topology, name_width: int, width: int, folded: set[str]):
    check_drawing(layout(graph_of(topology, folded), name_width=name_width, width=width))


@settings(max_examples=40, deadline=None)
@given(topologies())
def test_the_same_topology_gives_the_same_drawing(topology: Topology):
    assert layout(graph_of(topology)) == layout(graph_of(topology))
    assert terminal_text(graph_of(topology)) == terminal_text(graph_of(topology))


@settings(max_examples=60, deadline=None)
@given(topologies(), st.booleans())
def test_text_stays_in_its_box_and_in_its_terminal(topology: Topology, ascii_only: bool):
    drawing = layout(graph_of(topology))
    rows = drawn_text(drawing, ascii_only=ascii_only).splitlines()
    assert all(cells(row) <= drawing.width for row in rows)
    assert all(row.isprintable() for row in rows)
    if not ascii_only:
        for box in drawing.boxes:
            for number, line in enumerate(box.lines):
                assert line in rows[box.y + 1 + number]


@settings(max_examples=60, deadline=None)
@given(topologies())
def test_svg_is_well_formed_and_has_every_node(topology: Topology):
    drawing: Drawing = layout(graph_of(topology))
    root = ElementTree.fromstring(svg_text(drawing, "a <title> & more"))
    boxes = [each for each in root.iter() if (each.get("class") or "").startswith("box ")]
    assert len(boxes) == len(drawing.boxes)
    shown = ["".join(text.text or "" for text in box if text.get("class") == "label") for box in boxes]
    assert shown == ["".join(box.lines) for box in drawing.boxes]


@settings(max_examples=60, deadline=None)
@given(topologies())
def test_the_outline_tells_every_node(topology: Topology):
    text = outline(graph_of(topology))
    for part in topology.subtopologies:
        for node in part.nodes:
            assert f"{node.kind.value} {printable(node.name)}" in text
