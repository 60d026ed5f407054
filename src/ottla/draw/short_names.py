"""Short names of what Kafka Streams has named itself: `KSTREAM-AGGREGATE-0000000003` is `aggregate 3`.

Names that somebody chose stay as they are, and so do topics, which have the same name everywhere else.
"""

from __future__ import annotations

import re
from typing import Final

from ottla.draw.graph import Graph, NodeKind

GENERATED: Final = re.compile(r"K[A-Z]+-(?P<what>[A-Z-]+)-(?P<number>\d{10})(?:-(?P<rest>.+))?")
SHORTENED: Final = frozenset({NodeKind.SOURCE, NodeKind.PROCESSOR, NodeKind.SINK, NodeKind.STORE})


def short_name(name: str) -> str:
    found = GENERATED.fullmatch(name)
    if found is None:
        return name
    what = found["what"].lower().replace("-", " ")
    return " ".join(filter(None, (what, str(int(found["number"])), found["rest"])))


def with_short_names(graph: Graph) -> Graph:
    """The graph with short names on its boxes. The nodes keep their names."""
    nodes = (node._replace(label=short_name(node.name)) if node.kind in SHORTENED else node for node in graph.nodes)
    return graph._replace(nodes=tuple(nodes))
