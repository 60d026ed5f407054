"""Spark reads and writes Kafka through Python, without a connector jar.

    from ottla.spark import session

    spark = session("local[2]")
    options = {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "orders"}
    spark.read.format("ottla").options(**options).load().groupBy("partition").count().show()

The formats are `ottla` (topics, both ways), `ottla-log` (segment files), `ottla-records` (internal topics as tables)
and `ottla-share` (share groups). `register(spark)` adds them to an existing session. Importing this package imports
neither pyspark nor pyarrow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.spark.errors import OttlaSparkError, explain_error

if TYPE_CHECKING:
    from ottla.spark.sessions import register, session

__all__ = ["OttlaSparkError", "explain_error", "register", "session"]


def __getattr__(name: str) -> object:
    if name in ("register", "session"):
        from ottla.spark import sessions

        return getattr(sessions, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
