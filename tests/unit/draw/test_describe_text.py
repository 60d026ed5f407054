"""The text of Topology.describe(), as the real library writes it, and as people paste it."""

import pytest

from ottla.draw.describe_text import DescribeTextError, parse_describe_text
from ottla.draw.topology import Kind, Topology, TopologyNode
from tests.unit.draw.pictures import GOLDEN, NAMES, topology


def written(topology: Topology) -> str:
    """The text again, after the rules of the original: what was read must be enough to write it."""
    rows = ["Topologies:"]
    for number, part in enumerate(topology.subtopologies):
        suffix = " for global store (will not generate tasks)" if part.is_global else ""
        rows.append(f"{'  ' if number else '   '}Sub-topology: {part.id}{suffix}")
        for node in part.nodes:
            before = [each.name for each in part.nodes if node.name in each.successors]
            rows += _node(node, before)
        rows.append("")
    return "\n".join(rows)


def _node(node: TopologyNode, before: list[str]) -> list[str]:
    after = ", ".join(sorted(node.successors)) or "none"
    if node.kind is Kind.SOURCE:
        topics = node.pattern if node.pattern is not None else f"[{', '.join(node.topics)}]"
        return [f"    Source: {node.name} (topics: {topics})", f"      --> {after}"]
    entering = f"      <-- {', '.join(sorted(before)) or 'none'}"
    if node.kind is Kind.SINK:
        topic = f"topic: {node.sink_topic}" if node.sink_topic is not None else "extractor class: ByKey@1"
        return [f"    Sink: {node.name} ({topic})", entering]
    return [f"    Processor: {node.name} (stores: [{', '.join(node.stores)}])", f"      --> {after}", entering]


def _sorted_lists(text: str) -> list[str]:
    """Lists of successors come in any order."""
    return [_sorted_list(row.rstrip()) for row in text.splitlines() if row.strip()]


def _sorted_list(row: str) -> str:
    arrow, found, names = row.partition("--> " if "      --> " in row else "<-- ")
    return arrow + found + ", ".join(sorted(names.split(", "))) if found else row


@pytest.mark.parametrize("name", NAMES)
def test_what_was_read_is_all_that_there_was(name: str):
    text = (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")
    assert _sorted_lists(written(parse_describe_text(text))) == _sorted_lists(text)


def test_names_that_look_like_the_text_around_them():
    (part,) = topology("strange-names").subtopologies
    after = {node.name: set(node.successors) for node in part.nodes}
    assert after == {
        "read, then": {"count (stores: [none])", "größer als 数える"},
        "count (stores: [none])": {"none", "--> <script>\"&'"},
        "größer als 数える": {"--> <script>\"&'"},
        "none": set(),
        "--> <script>\"&'": set(),
    }


def test_global_stores_patterns_and_topics_chosen_per_record():
    assert [part.is_global for part in topology("shop").subtopologies] == [False, True, False]
    source, sink = topology("routing").subtopologies[0].nodes
    assert (source.topics, source.pattern) == ((), "events-[a-z]+(, old)?")
    assert sink.sink_topic is None


def test_a_pattern_in_brackets_is_no_list():
    text = "Topologies:\n   Sub-topology: 0\n    Source: s (topics: [a-z]+[0-9])\n      --> none\n"
    assert parse_describe_text(text).subtopologies[0].nodes[0].pattern == "[a-z]+[0-9]"


def test_lines_of_a_log_before_it_and_the_ends_of_windows_lines_do_not_matter():
    text = (GOLDEN / "shop.txt").read_text()
    pasted = "12:00 INFO starting\n12:00 INFO " + text.replace("\n", "\r\n")
    assert parse_describe_text(pasted) == topology("shop")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "the line 'Topologies:' is missing"),
        ("Topologies:\n  Source: a (topics: [b])", "line 2: expected 'Sub-topology: 0'"),
        ("Topologies:\n Sub-topology: 0\n  Source: a", "line 3: a source without its topics: 'a'"),
        ("Topologies:\n Sub-topology: 0\n  Sink: a (topic: b", "line 3: a sink without its topic"),
        ("Topologies:\n Sub-topology: 0\n  --> a", "line 3: expected a source"),
        (
            "Topologies:\n Sub-topology: 0\n  Source: a (topics: [t])\n   --> b",
            "line 4: names a node that is not in this subtopology: 'b'",
        ),
    ],
)
def test_anything_else_is_refused_with_its_line(text: str, problem: str):
    with pytest.raises(DescribeTextError, match=problem.replace("(", r"\(")):
        parse_describe_text(text)
