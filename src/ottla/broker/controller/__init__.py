"""The controller of a node: the metadata log, its snapshots, and the registration of the node."""
