"""Pictures of graphs: a layered layout of our own, drawn as SVG, in a terminal, or told as JSON. No input or output.

`describe_text` and `described` read the topology of a Kafka Streams application, from what `Topology.describe()` gives
and from a broker's answer; `topology` makes a graph of it; `layout` finds a place for everything on a grid of cells;
`svg` and `terminal` draw that. `as_json` tells the topology itself.
"""
