"""The description of a large topology, as a Kafka Streams application would push it."""

from __future__ import annotations

from tests.component.broker.description_requests import Push

Node = Push.TopologyDescriptionNode
STEPS = ("FILTER", "MAPVALUES", "AGGREGATE", "KEY-SELECT", "PEEK")


def large_description(source: str, parts: int, per_part: int) -> Push.TopologyDescription:
    """Subtopologies in a row, each of them with so many processors, two of them side by side here and there."""
    found = [Push.TopologyDescriptionSubtopology(str(part), _nodes(source, part, per_part)) for part in range(parts)]
    return Push.TopologyDescription(tuple(found), ())


def _nodes(source: str, part: int, count: int) -> tuple[Node, ...]:
    names = [f"KSTREAM-{STEPS[at % len(STEPS)]}-{part * count + at:010}" for at in range(count)]
    reads = source if part == 0 else _between(part)
    nodes = [Node(names[0], 1, source_topics=(reads,), successors=tuple(names[1:3]))]
    for at in range(1, count - 1):
        stores = (f"KSTREAM-AGGREGATE-STATE-STORE-{part * count + at:010}",) if "AGGREGATE" in names[at] else ()
        following = tuple(names[at + 2 : at + 3]) if at % 3 == 1 and at + 2 < count else (names[at + 1],)
        nodes.append(Node(names[at], 2, stores=stores, successors=following))
    return (*nodes, Node(names[-1], 3, sink_topic=_between(part + 1)))


def _between(part: int) -> str:
    return f"app-KSTREAM-AGGREGATE-STATE-STORE-{part:010}-repartition"
