"""Pictures of graphs: a layered layout, drawn as SVG or in a terminal. No input or output.

`describe_text` and `described` read the topology of a Kafka Streams application, from the text of
`Topology.describe()` and from a broker's response; `topology` makes a graph of it; `layout` places nodes and edges on a
grid of cells; `svg` and `terminal` draw the layout. `as_json` writes the topology as JSON.
"""
