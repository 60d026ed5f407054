"""The replicas of a node and its log directories."""
