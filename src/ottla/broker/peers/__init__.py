"""Connections from this node to the other nodes of its cluster."""
