"""Spark finds the format `ottla-log` here by itself."""

from ottla.spark.log.source import LogDataSource as DefaultSource

__all__ = ["DefaultSource"]
