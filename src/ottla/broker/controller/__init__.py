"""The controller of a node and its metadata log: append, replay, snapshots, and the node's own registration."""
