"""Spark finds the format `ottla-records` here by itself."""

from ottla.spark.records.source import RecordsDataSource as DefaultSource

__all__ = ["DefaultSource"]
