"""Spark's sources: ours beside Spark's own Kafka connector, in one session, on one broker."""
