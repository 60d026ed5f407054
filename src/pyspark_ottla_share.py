"""Spark finds the format `ottla-share` here by itself."""

from ottla.spark.share.source import ShareDataSource as DefaultSource

__all__ = ["DefaultSource"]
