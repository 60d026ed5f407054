"""From produce to the row: how long records wait before a stream shows them, ours beside Spark's own connector.

    python -m benchmarks.spark.bench_latency [--seconds 30] [--rate 1000] [--broker ottla] [--out FILE]

A producer sends so many records a second, each with the time of its sending as its value; foreachBatch looks at the
clock when it has the rows. The trigger has no interval: a batch follows the one before it at once.
"""

import argparse
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from confluent_kafka import Producer
from pyspark.sql import DataFrame, SparkSession

from benchmarks import runner
from benchmarks.runner import Case, Measurement
from benchmarks.spark.actions import Source
from benchmarks.spark.bench_sources import OURS, PACKAGES, THEIRS, new_session
from ottla.client import topics
from ottla.client.blocking import BlockingClient
from tests.interop.apache import ApacheKafka
from tests.interop.serving import OttlaServe

WARM_UP_S = 5.0
PARTITIONS = 4
SHARES = {"median": 0.5, "p99": 0.99}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--rate", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only", default="")
    parser.add_argument("--quick", action="store_true", help="five seconds, one round")
    parser.add_argument("--broker", default="apache", choices=("apache", "ottla"))
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(arguments)
    options.window = 0.0
    if options.quick:
        options.seconds, options.rounds = 5.0, 1
    found = measure(options)
    print("\n".join(table(found)), flush=True)
    done = [(Case(name, []), measured(found, name, share)) for name, share in SHARES.items()]
    runner.save("spark-latency", done, options, PACKAGES)
    return 0


Found = dict[str, list[list[float]]]
"""Source -> round -> seconds of each record."""


def measured(found: Found, name: str, share: float) -> list[Measurement]:
    return [
        Measurement(name, source, 1, tuple(quantile(each, share) for each in rounds))
        for source, rounds in found.items()
    ]


def measure(options: argparse.Namespace) -> Found:
    found: Found = {OURS: [], THEIRS: []}
    kind = ApacheKafka if options.broker == "apache" else OttlaServe
    with tempfile.TemporaryDirectory(prefix="ottla-bench-") as base, kind(Path(base) / "broker") as broker:
        spark = new_session("2g")
        try:
            for number in range(options.rounds):
                for name, form in ((OURS, "ottla"), (THEIRS, "kafka")):
                    topic = f"latency-{number}-{form}"
                    with BlockingClient(broker.bootstrap_servers) as client:
                        client.call(topics.create, topics.NewTopic(topic, partitions=PARTITIONS))
                    given = {"kafka.bootstrap.servers": broker.bootstrap_servers, "subscribe": topic}
                    found[name].append(delays(spark, Source(name, form, given), options))
        finally:
            spark.stop()
    return found


def delays(spark: SparkSession, source: Source, options: argparse.Namespace) -> list[float]:
    """How long each record took, without those of the first seconds."""
    seen: list[float] = []
    began_s = time.time()

    def look(rows: DataFrame, _: int) -> None:
        sent = [float(row[0]) for row in rows.selectExpr("cast(value as string)").collect()]
        now_s = time.time()
        seen.extend(now_s - each for each in sent if each - began_s > WARM_UP_S)

    with tempfile.TemporaryDirectory() as checkpoint:
        writer = source.stream(spark, startingOffsets="earliest").writeStream.foreachBatch(look)
        query = writer.option("checkpointLocation", checkpoint).start()
        to = (source.options["kafka.bootstrap.servers"], source.options["subscribe"])
        sender = threading.Thread(target=send, args=(*to, options.rate, WARM_UP_S + options.seconds))
        sender.start()
        sender.join()
        query.processAllAvailable()
        query.stop()
    return seen


def send(bootstrap_servers: str, topic: str, rate: int, seconds: float) -> None:
    producer = Producer({"bootstrap.servers": bootstrap_servers, "linger.ms": 0})
    began_s = time.time()
    for number in range(round(rate * seconds)):
        wait_s = began_s + number / rate - time.time()
        if wait_s > 0:
            time.sleep(wait_s)
        producer.produce(topic, f"{time.time():.6f}", partition=number % PARTITIONS)
        producer.poll(0)
    producer.flush(30)


def quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def table(found: Found) -> list[str]:
    lines = [f"{'from produce to the row':24}{'median':>10}{'p99':>10}"]
    for name, rounds in found.items():
        median, slow = (statistics.median(quantile(each, share) for each in rounds) for share in (0.5, 0.99))
        lines.append(f"{name:24}{median * 1000:>7.0f} ms{slow * 1000:>7.0f} ms")
    return lines


if __name__ == "__main__":
    sys.exit(main())
