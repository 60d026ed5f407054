"""A cluster of real nodes on this machine, each in a process of its own, with links that can be cut.

`layout` knows where a cluster lies on the disk, and formats it; `nodes` runs one node; `relay` stands between them;
`cluster` puts them together. `ottla.testing.cluster` and `ottla cluster` are made of these.
"""
