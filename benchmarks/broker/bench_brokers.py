"""ottla, Apache Kafka 4.3.1 and kfake as brokers, one after the other in each round, with the same clients.

    python -m benchmarks broker [--quick] [--rounds 3] [--only TEXT] [--brokers ottla] [--out FILE]

Each round starts every broker anew in an empty directory; the order turns from round to round. Figures are seconds
(for a record, a request or the start) and bytes of memory; a ratio says how many times ottla's figure a rival's is, so
above 1 ottla does better. Java and Maven are needed. Processor time and memory come from /proc: Linux only.

kfake is franz-go's fake broker for tests, written in Go; it keeps its records in memory. Without Go it is left out.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks import rounds, runner
from benchmarks.broker import kfake, loads, raw
from benchmarks.broker.brokers import TICK_S, Broker, cpu_seconds, resident_bytes, under_load
from benchmarks.rounds import Figures
from benchmarks.runner import Size
from tests.interop.apache import free_ports

PACKAGES = ("confluent-kafka", "msgspec")
MEGABYTE = 1 << 20
PING_EVERY_S = 0.005
SETTLE_S = 1.0


class Scale(NamedTuple):
    """How much is done. Records are counted so that each load moves about the same bytes."""

    load_bytes: int
    java_bytes: int
    requests: int
    end_to_end: int


SCALES = {
    Size.FULL: Scale(100 * MEGABYTE, 100 * MEGABYTE, 20_000, 500),
    Size.QUICK: Scale(20 * MEGABYTE, 20 * MEGABYTE, 3_000, 100),
    Size.SMOKE: Scale(MEGABYTE // 4, MEGABYTE // 4, 10, 2),
}


# --- one broker, one round


def measure_start(broker: Broker) -> Figures:
    broker.prepare()
    begin = time.perf_counter()
    broker.exec()
    raw.first_produce(broker.port, "first")
    seconds = time.perf_counter() - begin
    time.sleep(SETTLE_S)
    yield "start: exec to first acknowledged produce", seconds
    yield "start: processor time", max(cpu_seconds(broker.pid), TICK_S)
    yield "start: memory", resident_bytes(broker.pid)


def warm_up(broker: Broker, scale: Scale) -> None:
    """Both ways, so that what compiles or caches while it runs has done so; it does not count."""
    with_topic(broker, "warm")
    count = scale.load_bytes // 1024
    loads.produce(broker.port, "warm", count, 1024, 16 * 1024)
    loads.fetch(broker.port, "warm", count)
    raw.synchronous_produces(broker.port, "warm", scale.requests)


def measure_latency(broker: Broker, options: argparse.Namespace) -> Figures:
    scale: Scale = options.scale
    with_topic(broker, "latency")
    single = raw.synchronous_produces(broker.port, "latency", scale.requests)
    through = raw.end_to_end(broker.port, "latency", scale.end_to_end)
    yield "one produce at a time: mean", statistics.fmean(single)
    yield "one produce at a time: p50", statistics.median(single)
    yield "one produce at a time: p99", percentile(single, 99)
    yield "end to end: p50", statistics.median(through)
    yield "end to end: p99", percentile(through, 99)


def measure_load(broker: Broker, options: argparse.Namespace, value_bytes: int, batch_kib: int) -> Figures:
    """Produce and fetch of one size of records and of batches, by librdkafka and by the Java producer."""
    scale: Scale = options.scale
    name = f"{value_bytes} B records, {batch_kib} KiB batches"
    topic = f"load-{value_bytes}-{batch_kib}"
    count = scale.load_bytes // value_bytes
    with_topic(broker, topic)
    pinger = Pinger(broker.port)
    seconds, cpu = under_load(broker, lambda: loads.produce(broker.port, topic, count, value_bytes, batch_kib * 1024))
    yield f"librdkafka produce, {name}", seconds / count
    yield f"librdkafka produce, {name}: broker's processor time", cpu / count
    yield f"librdkafka produce, {name}: longest stall", max(pinger.end())
    pinger = Pinger(broker.port)
    seconds, cpu = under_load(broker, lambda: loads.fetch(broker.port, topic, count))
    yield f"librdkafka fetch, {name}", seconds / count
    yield f"librdkafka fetch, {name}: broker's processor time", cpu / count
    yield f"librdkafka fetch, {name}: longest stall", max(pinger.end())
    if options.no_java:
        return
    count = scale.java_bytes // value_bytes
    with_topic(broker, f"java-{topic}")
    java = loads.java_produce
    seconds, cpu = under_load(broker, lambda: java(broker.port, f"java-{topic}", count, value_bytes, batch_kib * 1024))
    yield f"Java produce, {name}", seconds / count
    yield f"Java produce, {name}: broker's processor time", cpu / count


PARTS: dict[str, Callable[[Broker, argparse.Namespace], Figures]] = {
    "latency": measure_latency,
    **{
        f"load {value_bytes} B, {batch_kib} KiB": partial(measure_load, value_bytes=value_bytes, batch_kib=batch_kib)
        for value_bytes in (100, 1024)
        for batch_kib in (16, 128)
    },
}


def measure_all(broker: Broker, _: Path, options: argparse.Namespace) -> Figures:
    yield from measure_start(broker)
    warm_up(broker, options.scale)
    yield from rounds.run_parts(PARTS, options, broker, options)
    yield "after the load: memory", resident_bytes(broker.pid)


def with_topic(broker: Broker, name: str) -> None:
    client = raw.RawClient(broker.port)
    raw.create_topic(client, name)
    client.close()


def percentile(values: Sequence[float], percent: int) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]


class Pinger:
    """A process with a connection of its own that asks the broker for little, over and over, while a load runs."""

    def __init__(self, port: int) -> None:
        command = [sys.executable, "-m", "benchmarks.broker.raw", str(port), str(PING_EVERY_S)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=runner.ROOT
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"

    def end(self) -> list[float]:
        output, _ = self._process.communicate(timeout=60)
        times: list[float] = json.loads(output)
        assert times, "no ping was answered"
        return times


def is_rate(case: str) -> bool:
    return case.endswith(" KiB batches")


def subjects(options: argparse.Namespace) -> list[str]:
    """The brokers that can be measured here, of those that are asked for."""
    if options.brokers not in kfake.Kfake.name:
        return [*rounds.SUBJECTS]
    try:
        kfake.build()
    except kfake.NotBuiltError as error:
        print(f"kfake is left out: {error}", file=sys.stderr, flush=True)
        return [*rounds.SUBJECTS]
    return [*rounds.SUBJECTS, kfake.Kfake.name]


def new_broker(name: str, directory: Path, settings: Mapping[str, str] | None, bytecode: Path | None) -> Broker:
    if name == kfake.Kfake.name:
        return kfake.Kfake(directory, free_ports(1)[0])
    return rounds.make_broker(name, directory, settings, bytecode)


def main(arguments: Sequence[str] | None = None) -> int:
    parts = f"part of one of: {'; '.join(PARTS)}. The start always counts"
    options = rounds.read_options(__doc__, parts, arguments, SCALES)
    measure = partial(measure_all, options=options)
    names = subjects(options)
    return rounds.run("broker", options, [measure], PACKAGES, is_rate=is_rate, new_broker=new_broker, subjects=names)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
