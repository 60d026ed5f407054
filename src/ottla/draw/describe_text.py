"""Reads the text of Kafka Streams' `Topology.describe()`.

The text is made for people: names are not quoted, though a name may contain ", " or " (stores: [". So a list of names
is split with the help of the names in the subtopology, and since each edge is listed at both of its ends, one line
resolves what the other leaves ambiguous.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ottla.draw.topology import Kind, Subtopology, Topology, TopologyNode

HEADING = re.compile(r"(Topologies|Sub-topologies):\s*$")
PART = re.compile(r"\s*Sub-topology: (\S+)(?P<is_global> for global store .*)?\s*$")
NODE = re.compile(r"\s*(Source|Processor|Sink): (.+)$")
ARROW = re.compile(r"\s*(-->|<--) (.*)$")
ENDS = {
    Kind.SOURCE: (" (topics: ",),
    Kind.PROCESSOR: (" (stores: ",),
    Kind.SINK: (" (topic: ", " (extractor class: "),
}
NOBODY = "none"


class DescribeTextError(ValueError):
    """The text is not that of Topology.describe(); the message says where."""

    def __init__(self, problem: str, line_number: int | None = None) -> None:
        super().__init__(problem if line_number is None else f"line {line_number}: {problem}")


class _Line(NamedTuple):
    number: int
    text: str


class _RawNode:
    def __init__(self, node: TopologyNode) -> None:
        self.node = node
        self.successors: _Line | None = None
        self.predecessors: _Line | None = None


class _RawPart(NamedTuple):
    id: str
    is_global: bool
    nodes: list[_RawNode]


def parse_describe_text(text: str) -> Topology:
    """Raises DescribeTextError if it is something else. Log lines before the heading are ignored."""
    return Topology(tuple(_subtopology(part) for part in _parts(_body(text))))


def _body(text: str) -> list[_Line]:
    lines = [_Line(number, line.rstrip()) for number, line in enumerate(text.splitlines(), 1)]
    for at, line in enumerate(lines):
        if HEADING.search(line.text):
            return [each for each in lines[at + 1 :] if each.text]
    raise DescribeTextError("the line 'Topologies:' is missing, with which the output of Topology.describe() begins")


def _parts(lines: Iterable[_Line]) -> list[_RawPart]:
    parts: list[_RawPart] = []
    for line in lines:
        if found := PART.match(line.text):
            parts.append(_RawPart(found[1], found["is_global"] is not None, []))
        elif not parts:
            raise DescribeTextError(f"expected 'Sub-topology: 0', found {line.text.strip()!r}", line.number)
        else:
            _take(line, parts[-1].nodes)
    return parts


def _take(line: _Line, nodes: list[_RawNode]) -> None:
    # Look for an arrow first: a name may look like a node's line, an arrow cannot.
    if (found := ARROW.match(line.text)) and nodes:
        listed = _Line(line.number, found[2])
        if found[1] == "-->":
            nodes[-1].successors = listed
        else:
            nodes[-1].predecessors = listed
    elif found := NODE.match(line.text):
        nodes.append(_RawNode(_node(Kind(found[1].lower()), found[2], line.number)))
    else:
        raise DescribeTextError(f"expected a source, a processor or a sink, found {line.text.strip()!r}", line.number)


def _node(kind: Kind, rest: str, number: int) -> TopologyNode:
    at, end = max((rest.rfind(end), end) for end in ENDS[kind])
    if at <= 0 or not rest.endswith(")"):
        raise DescribeTextError(f"a {kind.value} without its {ENDS[kind][0].strip(' (:')}: {rest!r}", number)
    name, inner = rest[:at], rest[at + len(end) : -1]
    if kind is Kind.SINK:
        return TopologyNode(name, kind, sink_topic=inner if "topic:" in end else None)
    if kind is Kind.SOURCE and not (inner.startswith("[") and inner.endswith("]") and _are_topics(inner[1:-1])):
        return TopologyNode(name, kind, pattern=inner)
    listed = tuple(inner[1:-1].split(", ")) if inner != "[]" else ()
    return TopologyNode(name, kind, **{"topics" if kind is Kind.SOURCE else "stores": listed})  # type: ignore[arg-type]


def _are_topics(inner: str) -> bool:
    """Whether the brackets hold a list of topics, and not a pattern with characters that topic names lack."""
    return re.fullmatch(r"([A-Za-z0-9._-]+(, [A-Za-z0-9._-]+)*)?", inner) is not None


def _subtopology(part: _RawPart) -> Subtopology:
    nodes = {raw.node.name: raw for raw in part.nodes}
    found = tuple(raw.node._replace(successors=tuple(_successors(raw, nodes))) for raw in part.nodes)
    return Subtopology(part.id, found, part.is_global)


def _successors(raw: _RawNode, nodes: dict[str, _RawNode]) -> Iterator[str]:
    for name in _names(raw.successors, nodes):
        # "none" is a name only if a node is really called so.
        if name != NOBODY or raw.node.name in _names(nodes[name].predecessors, nodes):
            yield name


def _names(listed: _Line | None, nodes: dict[str, _RawNode]) -> tuple[str, ...]:
    if listed is None or (listed.text == NOBODY and NOBODY not in nodes):
        return ()
    found = _split(listed.text, nodes)
    if found is None:
        raise DescribeTextError(f"names a node that is not in this subtopology: {listed.text!r}", listed.number)
    return found


def _split(text: str, nodes: dict[str, _RawNode]) -> tuple[str, ...] | None:
    """Split at those ", " that leave only names of nodes; tries long names first, from the right."""
    ends: dict[int, tuple[str, ...]] = {0: ()}
    words = text.split(", ")
    for end in range(1, len(words) + 1):
        for start in range(end):
            name = ", ".join(words[start:end])
            if start in ends and name in nodes:
                ends[end] = (*ends[start], name)
                break
    return ends.get(len(words))
