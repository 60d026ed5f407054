"""`ottla pipeline follow`: the stream, its session and the report after each step."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ottla.spark.errors import OttlaSparkError
from ottla.spark.pipeline.archive import Archive
from ottla.spark.pipeline.options import RunOptions, Say
from ottla.spark.pipeline.report_files import write_report
from ottla.spark.pipeline.run_directory import RunDirectory
from ottla.spark.pipeline.stream import Follower, start_stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ottla.spark.pipeline.origins import Origin

__all__ = ["follow"]


def follow(
    start_spark: Callable[[], SparkSession], origin: Origin, options: RunOptions, interval_s: float | None, say: Say
) -> None:
    """Run until interrupted; without an interval, until everything that exists now is read."""
    if not origin.topics:
        raise OttlaSparkError(f"{origin.where} has no topic to follow: {'; '.join(origin.notes)}")
    Archive(options.out).require_readable()
    with RunDirectory(options.out) as work:
        spark = start_spark()
        try:
            _stream(spark, Follower(origin, options, work, say, _reporter(options.out, spark, options)), interval_s)
        finally:
            spark.stop()


def _stream(spark: SparkSession, follower: Follower, interval_s: float | None) -> None:
    follower.say(f"following {follower.origin.where}: {', '.join(follower.origin.topics)}")
    query = start_stream(spark, follower, interval_s)
    try:
        query.awaitTermination()
    finally:
        query.stop()


def _reporter(out: Path, spark: SparkSession, options: RunOptions) -> Callable[[], object]:
    return lambda: write_report(out, spark if options.format == "delta" else None)
