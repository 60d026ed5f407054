"""The partitions of a node and the directories they live in."""
