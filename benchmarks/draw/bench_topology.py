"""Drawing a large topology: over 200 boxes, in every form that `ottla streams topology` has.

    python -m benchmarks.draw.bench_topology [--rounds 15]

Nobody else draws such topologies in Python; the first subject is the terminal at its own width, the others stand beside
it.
"""

import sys
from collections.abc import Sequence

from benchmarks import runner
from benchmarks.runner import ROOT, Case, Subject
from ottla.draw.as_json import topology_json
from ottla.draw.describe_text import parse_describe_text
from ottla.draw.layout import layout
from ottla.draw.svg import svg_text
from ottla.draw.terminal import terminal_text
from ottla.draw.topology import Topology, graph_of

LARGE = ROOT / "tests" / "golden" / "topologies" / "large.txt"


def terminal(topology: Topology, width: int | None) -> str:
    return terminal_text(graph_of(topology), width=width)


def svg(topology: Topology) -> str:
    return svg_text(layout(graph_of(topology)), "large")


def main(arguments: Sequence[str] | None = None) -> int:
    options = runner.read_windows(runner.parser(__doc__), arguments)
    topology = parse_describe_text(LARGE.read_text(encoding="utf-8"))
    boxes = len(graph_of(topology).nodes)
    subjects = [
        Subject("terminal", terminal, [(topology, None)]),
        Subject("terminal, 120 columns", terminal, [(topology, 120)]),
        Subject("terminal, 80 columns", terminal, [(topology, 80)]),
        Subject("SVG", svg, [(topology,)]),
        Subject("JSON", topology_json, [(topology,)]),
    ]
    runner.run("draw-topology", [Case(f"topology of {boxes} boxes", subjects, {"boxes": boxes})], options, ("msgspec",))
    return 0


if __name__ == "__main__":
    sys.exit(main())
