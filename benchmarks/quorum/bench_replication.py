"""Three nodes of ottla and three of Apache Kafka 4.3.1, with a partition that all of them have.

    python -m benchmarks.quorum.bench_replication [--quick] [--rounds 3] [--only TEXT] [--brokers ottla] [--out FILE]

Records are acknowledged when all that are in sync have them (acks=all), and all three are. Each round starts every
cluster anew in an empty directory. Processor time and memory are those of all three nodes; Apache
Kafka's have a heap of 1 GB each. A ratio says how many times ottla's figure Apache Kafka's is, so above 1 ottla does
better. Java and Maven are needed. Processor time and memory come from /proc: Linux only.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks import rounds
from benchmarks.broker import loads, raw
from benchmarks.broker.bench_brokers import is_rate, percentile
from benchmarks.quorum.three_nodes import ThreeNodes
from benchmarks.rounds import Figures
from benchmarks.runner import Size

PACKAGES = ("confluent-kafka", "msgspec")
MEGABYTE = 1 << 20
SETTINGS = {"min.insync.replicas": "2"}


class Scale(NamedTuple):
    """How much is done. Records are counted so that each load moves about the same bytes."""

    load_bytes: int
    requests: int
    end_to_end: int


SCALES = {
    Size.FULL: Scale(100 * MEGABYTE, 5_000, 500),
    Size.QUICK: Scale(20 * MEGABYTE, 1_000, 100),
    Size.SMOKE: Scale(MEGABYTE // 4, 10, 2),
}


def new_cluster(name: str, directory: Path, _settings: Mapping[str, str] | None, _bytecode: Path | None) -> ThreeNodes:
    return ThreeNodes(name, directory, SETTINGS)


# --- one cluster, one round


def warm_up(cluster: ThreeNodes, scale: Scale) -> None:
    """Both ways, so that what compiles or caches while it runs has done so; it does not count."""
    cluster.make_topic("warm")
    count = scale.load_bytes // 1024
    loads.produce(cluster.port, "warm", count, 1024, 16 * 1024)
    loads.fetch(cluster.port, "warm", count)
    raw.synchronous_produces(cluster.port, "warm", scale.requests)


def measure_latency(cluster: ThreeNodes, scale: Scale) -> Figures:
    cluster.make_topic("latency")
    single = raw.synchronous_produces(cluster.port, "latency", scale.requests)
    through = raw.end_to_end(cluster.port, "latency", scale.end_to_end)
    yield "one produce at a time: p50", statistics.median(single)
    yield "one produce at a time: p99", percentile(single, 99)
    yield "end to end: p50", statistics.median(through)
    yield "end to end: p99", percentile(through, 99)


def measure_load(cluster: ThreeNodes, scale: Scale, value_bytes: int, batch_kib: int) -> Figures:
    name = f"{value_bytes} B records, {batch_kib} KiB batches"
    topic = f"load-{value_bytes}-{batch_kib}"
    count = scale.load_bytes // value_bytes
    cluster.make_topic(topic)
    seconds, cpu = cluster.under_load(lambda: loads.produce(cluster.port, topic, count, value_bytes, batch_kib * 1024))
    yield f"produce, {name}", seconds / count
    yield f"produce, {name}: processor time of all nodes", cpu / count
    seconds, cpu = cluster.under_load(lambda: loads.fetch(cluster.port, topic, count))
    yield f"fetch, {name}", seconds / count
    yield f"fetch, {name}: processor time of all nodes", cpu / count


PARTS: dict[str, Callable[[ThreeNodes, Scale], Figures]] = {
    "latency": measure_latency,
    **{
        f"load {value_bytes} B, {batch_kib} KiB": partial(measure_load, value_bytes=value_bytes, batch_kib=batch_kib)
        for value_bytes in (100, 1024)
        for batch_kib in (16, 128)
    },
}


def measure_all(cluster: ThreeNodes, _: Path, options: argparse.Namespace) -> Figures:
    begin = time.perf_counter()
    cluster.exec()
    yield "start: three nodes, formatted and serving", time.perf_counter() - begin
    cluster.make_topic("first")
    raw.synchronous_produces(cluster.port, "first", 1)
    yield "start: until the first acknowledged produce", time.perf_counter() - begin
    yield "start: memory of all nodes", cluster.memory_bytes()
    warm_up(cluster, options.scale)
    yield from rounds.run_parts(PARTS, options, cluster, options.scale)
    yield "after the load: memory of all nodes", cluster.memory_bytes()


def main(arguments: Sequence[str] | None = None) -> int:
    options = rounds.read_options(__doc__, f"part of one of: {'; '.join(PARTS)}", arguments, SCALES)
    measure = partial(measure_all, options=options)
    return rounds.run("replication", options, [measure], PACKAGES, is_rate=is_rate, new_broker=new_cluster)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
