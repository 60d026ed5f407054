"""From produce to the row: how long records wait before a stream shows them, ours beside Spark's own connector.

    python -m benchmarks.spark.bench_latency [--seconds 30] [--rate 1000] [--quick] [--broker ottla] [--out FILE]

A producer sends so many records a second, each with the time of its sending as its value; foreachBatch looks at the
clock when it has the rows. The trigger has no interval: a batch follows the one before it at once. The first round of
each is not counted: the JVM is three to four times slower then. Nor are the first seconds of a round, in which a query
and its workers start.
"""

import argparse
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Sequence

from confluent_kafka import Producer
from pyspark.sql import DataFrame, SparkSession

from benchmarks import runner
from benchmarks.runner import Case, Size
from benchmarks.spark import windows
from benchmarks.spark.actions import Source
from benchmarks.spark.windows import OURS, PACKAGES, THEIRS
from ottla.client import topics
from ottla.client.blocking import BlockingClient

ROUNDS = {Size.FULL: 2, Size.QUICK: 1, Size.SMOKE: 1}
SECONDS = {Size.FULL: 30.0, Size.QUICK: 5.0, Size.SMOKE: 0.2}
WARM_UP_S = {Size.FULL: 5.0, Size.QUICK: 5.0, Size.SMOKE: 0.0}
PARTITIONS = 4
SHARES = {"median": 0.5, "p99": 0.99}

Found = dict[str, list[list[float]]]
"""Source -> round -> seconds of each record."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = windows.parser(__doc__)
    parser.add_argument("--seconds", type=float, help="how long records are sent (30)")
    parser.add_argument("--rate", type=int, default=1000, help="records in a second (%(default)s)")
    options = runner.read_options(parser, arguments, rounds=ROUNDS, seconds=SECONDS, warm_up_s=WARM_UP_S)
    found = measure(options)
    print("\n".join(table(found)), flush=True)
    done = []
    for name, share in SHARES.items():
        seconds = {source: [quantile(each, share) for each in rounds] for source, rounds in found.items()}
        done.append((Case(name, []), windows.measurements(name, seconds)))
    runner.save("spark-latency", done, options, PACKAGES)
    return 0


def measure(options: argparse.Namespace) -> Found:
    found: Found = {OURS: [], THEIRS: []}
    with windows.running(options) as setup:
        for number in range(options.rounds + 1):
            for name, form in ((OURS, "ottla"), (THEIRS, "kafka")):
                topic = f"latency-{number}-{form}"
                with BlockingClient(setup.servers) as client:
                    client.call(topics.create, topics.NewTopic(topic, partitions=PARTITIONS))
                given = {"kafka.bootstrap.servers": setup.servers, "subscribe": topic}
                waited = delays(setup.spark, Source(name, form, given), options)
                if number:
                    found[name].append(waited)
    return found


def delays(spark: SparkSession, source: Source, options: argparse.Namespace) -> list[float]:
    """How long each record took, without those of the first seconds."""
    seen: list[float] = []
    began_s = time.time()

    def look(rows: DataFrame, _: int) -> None:
        sent = [float(row[0]) for row in rows.selectExpr("cast(value as string)").collect()]
        now_s = time.time()
        seen.extend(now_s - each for each in sent if each - began_s > options.warm_up_s)

    with tempfile.TemporaryDirectory() as checkpoint:
        writer = source.stream(spark, startingOffsets="earliest").writeStream.foreachBatch(look)
        query = writer.option("checkpointLocation", checkpoint).start()
        to = (source.options["kafka.bootstrap.servers"], source.options["subscribe"])
        sender = threading.Thread(target=send, args=(*to, options.rate, options.warm_up_s + options.seconds))
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
