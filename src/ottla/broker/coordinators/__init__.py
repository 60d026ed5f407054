"""The coordinator runtime: cores without input or output, and the partitions that hold what they decide."""
