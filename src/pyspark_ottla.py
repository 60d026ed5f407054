"""Spark finds the format `ottla` here by itself."""

from ottla.spark.topic.source import TopicDataSource as DefaultSource

__all__ = ["DefaultSource"]
