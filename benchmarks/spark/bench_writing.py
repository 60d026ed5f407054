"""Writing to a topic with Spark, plain and exactly once, beside Spark's own sink; and reading a share group.

    python -m benchmarks.spark.bench_writing [--quick] [--rounds 5] [--only TEXT] [--broker ottla] [--out FILE]

write   rows of 100 bytes from memory into four partitions, as a batch
share   a share group from the first record to the last, into nothing (Trigger.AvailableNow), acknowledged
"""

import argparse
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks import runner
from benchmarks.runner import Case, Measurement
from benchmarks.spark.bench_sources import OURS, PACKAGES, PARTITIONS, THEIRS, Windows, new_session, read_options, table
from benchmarks.spark.filling import fill
from benchmarks.spark.machine import Busy, WorkerMemory
from ottla.client import topics
from ottla.client.blocking import BlockingClient
from ottla.client.configs import Change, Operation, Resource, ResourceType, alter
from ottla.client.share.offsets import describe_offsets
from ottla.spark import explain_error
from tests.interop.apache import ApacheKafka
from tests.interop.serving import OttlaServe

EXACTLY = f"{OURS}, exactly once"
ROWS = {"write": 1_000_000, "share": 200_000}
VALUE_BYTES = 100
QUICK = 10
Run = Callable[[SparkSession, str, int], float]


def write(form: str, **options: str) -> Run:
    """So many rows into a new topic."""

    def run(spark: SparkSession, servers: str, rows: int) -> float:
        topic = _new_topic(servers)
        frame = spark.range(rows, numPartitions=PARTITIONS).selectExpr(
            f"lpad(cast(id as string), {VALUE_BYTES}) as value"
        )
        given = {"kafka.bootstrap.servers": servers, "topic": topic, **options}
        if "exactlyOnce" in options:
            given["writeId"] = topic
        began_s = time.perf_counter()
        frame.write.format(form).options(**given).mode("append").save()
        return time.perf_counter() - began_s

    return run


def share(spark: SparkSession, servers: str, rows: int) -> float:
    """A new group from the first record to the last, until all are acknowledged."""
    topic, group = f"share-{uuid.uuid4().hex[:8]}", uuid.uuid4().hex
    fill(servers, topic, records=rows, value_bytes=VALUE_BYTES, partitions=PARTITIONS, codec="none")
    given = {"kafka.bootstrap.servers": servers, "subscribe": topic, "group": group}
    with BlockingClient(servers) as client, tempfile.TemporaryDirectory(prefix="ottla-bench-share-") as folder:
        first = [Change(Operation.SET, "share.auto.offset.reset", "earliest")]
        client.call(alter, Resource(ResourceType.GROUP, group), first)
        writer = spark.readStream.format("ottla-share").options(**given).load().writeStream.format("noop")
        began_s = time.perf_counter()
        query = writer.option("checkpointLocation", folder).trigger(availableNow=True).start()
        query.awaitTermination()
        seconds = time.perf_counter() - began_s
        error = query.exception()
        assert error is None, explain_error(error)
        left = sum(each.lag or 0 for each in client.call(describe_offsets, group).values())
        assert left == 0, f"{left} records are not acknowledged"
    return seconds


def _new_topic(servers: str) -> str:
    name = f"write-{uuid.uuid4().hex[:8]}"
    with BlockingClient(servers) as client:
        client.call(topics.create, topics.NewTopic(name, partitions=PARTITIONS))
    return name


ACTIONS: dict[str, dict[str, Run]] = {
    "write": {OURS: write("ottla"), EXACTLY: write("ottla", exactlyOnce="true"), THEIRS: write("kafka")},
    "share": {"ottla-share": share},
}


def measure(options: argparse.Namespace) -> list[tuple[Case, list[Measurement]]]:
    done = []
    kind = ApacheKafka if options.broker == "apache" else OttlaServe
    with tempfile.TemporaryDirectory(prefix="ottla-bench-") as base, kind(Path(base) / "broker") as broker:
        spark = new_session(options.memory)
        try:
            for action, runs in ACTIONS.items():
                rows = options.records or ROWS[action] // (QUICK if options.quick else 1)
                name = f"{action}, {rows:,} x {VALUE_BYTES} B"
                if options.only in name:
                    windows = _windows(spark, broker.bootstrap_servers, runs, rows, options.rounds)
                    print("\n".join(table(name, windows, rows)), flush=True)
                    measured = [Measurement(name, each, 1, tuple(values)) for each, values in windows.seconds.items()]
                    done.append((Case(name, [], {"rows": rows}), measured))
        finally:
            spark.stop()
    return done


def _windows(spark: SparkSession, servers: str, runs: dict[str, Run], rows: int, rounds: int) -> Windows:
    windows = Windows()
    for number in range(rounds + 1):
        for name, run in runs.items():
            with Busy() as others, WorkerMemory() as workers:
                seconds = run(spark, servers, rows)
            if number:  # the first is for the JVM
                windows.add(name, seconds, workers.peak_bytes, others.share)
    return windows


def main(arguments: Sequence[str] | None = None) -> int:
    options = read_options(arguments)
    runner.save("spark-writing", measure(options), options, PACKAGES)
    return 0


if __name__ == "__main__":
    sys.exit(main())
