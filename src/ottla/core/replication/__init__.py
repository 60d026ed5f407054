"""Replicated partitions without input or output: what a leader knows of its followers, and what a follower does."""
