"""Three nodes of ottla and three of Apache Kafka 4.3.1 with 3,000 partitions on each of them, of which ten are written.

    python -m benchmarks.quorum.bench_quiet [--quick] [--rounds 1] [--brokers ottla] [--out FILE]

Every partition has a replica on every node. First nobody writes: the processor time of an idle cluster is given for
each node and second, so 0.02 is two hundredths of a core. Then ten partitions get records one at a time, with acks=all;
then a node is killed, ten partitions get records without it, and it is started again: the time is that until it is in
sync for all partitions. Time-outs are the defaults of Apache Kafka at both. A ratio says how many times ottla's figure
Apache Kafka's is, so above 1 ottla does better. Java and Maven are needed; Linux only.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks import rounds
from benchmarks.broker import loads, raw
from benchmarks.quorum.three_nodes import NODES, ThreeNodes
from benchmarks.rounds import Figures
from benchmarks.runner import Size

PACKAGES = ("confluent-kafka", "msgspec")
BUSY = 10
VALUE_BYTES = 1024
BATCH_BYTES = 16 * 1024


class Scale(NamedTuple):
    partitions: int
    rest_s: float
    """After the partitions are made, before the cluster is called idle."""
    idle_s: float
    load_bytes: int
    requests: int


SCALES = {
    Size.FULL: Scale(3_000, 10.0, 60.0, 20 << 20, 1_000),
    Size.QUICK: Scale(300, 5.0, 10.0, 2 << 20, 100),
    Size.SMOKE: Scale(BUSY, 0.0, 0.1, 1 << 16, 2),
}


def new_cluster(name: str, directory: Path, _settings: Mapping[str, str] | None, _bytecode: Path | None) -> ThreeNodes:
    return ThreeNodes(name, directory, {})


def measure_all(cluster: ThreeNodes, _: Path, options: argparse.Namespace) -> Figures:
    scale: Scale = options.scale
    cluster.exec()
    for number in range(BUSY):
        cluster.make_topic(f"busy-{number}")
    begin = time.perf_counter()
    cluster.make_topic("quiet", scale.partitions - BUSY)
    yield "create the quiet partitions, until all are in sync", time.perf_counter() - begin
    time.sleep(scale.rest_s)
    seconds, cpu = cluster.under_load(partial(_wait, scale.idle_s))
    yield "idle: processor time of a node in a second", cpu / seconds / len(NODES)
    yield "idle: memory of all nodes", cluster.memory_bytes()
    times = raw.synchronous_produces(cluster.port, "busy-0", scale.requests)
    yield "one produce at a time beside quiet partitions: p50", statistics.median(times)
    lost = NODES[-1]
    cluster.kill(lost)
    count = scale.load_bytes // VALUE_BYTES // BUSY
    for number in range(BUSY):
        loads.produce(cluster.port, f"busy-{number}", count, VALUE_BYTES, BATCH_BYTES)
    begin = time.perf_counter()
    cluster.restart(lost)
    yield "a node is started again, until all are in sync", time.perf_counter() - begin


def _wait(seconds: float) -> float:
    began = time.perf_counter()
    time.sleep(seconds)
    return time.perf_counter() - began


def main(arguments: Sequence[str] | None = None) -> int:
    options = rounds.read_options(__doc__, "", arguments, SCALES)
    measure = partial(measure_all, options=options)
    return rounds.run("quiet", options, [measure], PACKAGES, new_broker=new_cluster)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
