"""The settings of a node: its configuration, and the dynamic settings of the cluster."""
