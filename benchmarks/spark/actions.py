"""What is timed: each takes a session and a source and gives seconds."""

import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from ottla.spark import explain_error


class Source(NamedTuple):
    """A format and its options."""

    name: str
    format: str
    options: Mapping[str, str]

    def frame(self, spark: SparkSession) -> DataFrame:
        return spark.read.format(self.format).options(**self.options).load()

    def stream(self, spark: SparkSession, **more: str) -> DataFrame:
        return spark.readStream.format(self.format).options(**{**self.options, **more}).load()


Action = Callable[[SparkSession, Source, int], float]


def aggregate(spark: SparkSession, source: Source, records: int) -> float:
    """All bytes read, nothing written."""
    began_s = time.perf_counter()
    row = source.frame(spark).selectExpr("count(*)", "sum(length(value))", "max(offset)").first()
    seconds = time.perf_counter() - began_s
    assert row is not None
    assert row[0] == records, f"{source.name} gave {row[0]} of {records} rows"
    return seconds


def parquet(spark: SparkSession, source: Source, records: int) -> float:
    """Every column into Parquet files with Spark's usual compression."""
    folder = tempfile.mkdtemp(prefix="ottla-bench-parquet-")
    try:
        began_s = time.perf_counter()
        source.frame(spark).write.mode("overwrite").parquet(folder)
        return time.perf_counter() - began_s
    finally:
        shutil.rmtree(folder)


def catch_up(spark: SparkSession, source: Source, records: int) -> float:
    """A stream from the first record to the last, into nothing."""
    seconds, query = drain(source.stream(spark, startingOffsets="earliest"))
    rows = sum(progress.numInputRows for progress in query.recentProgress)
    assert rows == records, f"{source.name} gave {rows} of {records} rows"
    return seconds


def drain(stream: DataFrame) -> tuple[float, StreamingQuery]:
    """All that a stream has now, into nothing: the seconds, and the query, which is over."""
    with tempfile.TemporaryDirectory(prefix="ottla-bench-stream-") as folder:
        writer = stream.writeStream.format("noop").option("checkpointLocation", folder)
        began_s = time.perf_counter()
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        seconds = time.perf_counter() - began_s
    error = query.exception()
    assert error is None, explain_error(error)
    return seconds, query


ACTIONS: dict[str, Action] = {"aggregate": aggregate, "parquet": parquet, "catch-up": catch_up}
