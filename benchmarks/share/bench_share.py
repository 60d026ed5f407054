"""Share groups of ottla and of Apache Kafka 4.3.1, with Java's share consumers and with our own.

    python -m benchmarks share [--quick] [--rounds 3] [--only TEXT] [--brokers ottla] [--out FILE]

records    from the first record to the last: 1, 4 and 16 consumers on 1 and 4 partitions, 100 bytes each, accepted
           implicitly; by KafkaShareConsumer in one virtual machine, and by our consumer in one process
start      from the consumers' start to the first record, with the defaults of both brokers
tool       kafka-share-consumer-perf-test, which counts its joining along
latency    one record accepted, its answer awaited: the median; and the same with 100,000 records in flight, every
           second one of a window accepted, so that it falls apart into ranges of one record

Figures are seconds for a record or an acknowledgement, and the broker's processor time. A ratio says how many times
ottla's figure Apache Kafka's is, so above 1 ottla does better. Java and Maven are needed; Linux only.
"""

import argparse
import asyncio
import statistics
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks import rounds
from benchmarks.broker.brokers import Broker, resident_bytes, under_load
from benchmarks.groups.loads import configure_group
from benchmarks.rounds import Figures
from benchmarks.runner import Size
from benchmarks.share import loads
from benchmarks.share.loads import Times

PACKAGES = ("confluent-kafka", "msgspec")
SETTINGS = {
    "auto.create.topics.enable": "false",
    "group.share.heartbeat.interval.ms": "5000",
    "group.share.min.heartbeat.interval.ms": "5000",
    "group.share.max.partition.max.record.locks": "10000",
    "offsets.topic.num.partitions": "50",
    "share.coordinator.state.topic.num.partitions": "50",
}
"""Kafka's defaults for both, but for the longest window; the interop fixtures' are quicker."""
CROWD_PARTITIONS = 10


class Scale(NamedTuple):
    records: int
    """For one consumer on one partition."""
    shared: int
    """For several."""
    acknowledgements: int
    in_flight: int


SCALES = {
    Size.FULL: Scale(2_400_000, 1_200_000, 2_000, 100_000),
    Size.QUICK: Scale(300_000, 150_000, 300, 20_000),
    Size.SMOKE: Scale(2_000, 2_000, 5, 200),
}
CROWDS = (1, 4, 16)
Load = Callable[[str, str, str, int, int], Times]
LOADS: dict[str, Load] = {"Java": loads.with_java, "our client": loads.with_ottla}


class Setup:
    """A broker, and the topics that were filled there so far."""

    def __init__(self, broker: Broker, options: argparse.Namespace) -> None:
        self.broker = broker
        self.scale: Scale = options.scale
        self.loads = {who: load for who, load in LOADS.items() if who != "Java" or not options.no_java}
        self.servers = f"127.0.0.1:{broker.port}"
        self._filled: set[str] = set()

    def topic(self, name: str, partitions: int, records: int) -> str:
        if name not in self._filled:
            self._filled.add(name)
            loads.fill(self.servers, name, partitions, records)
        return name

    def group(self, name: str, **settings: object) -> str:
        configure_group(self.broker.port, name, share_auto_offset_reset="earliest", **settings)
        return name


def measure_crowd(setup: Setup, consumers: int, partitions: int) -> Figures:
    scale = setup.scale
    count = scale.records if consumers == partitions == 1 else scale.shared
    topic = setup.topic(f"topic-{partitions}", partitions, scale.records)
    for who, load in setup.loads.items():
        group = setup.group(f"{who.split()[0]}-{consumers}-{partitions}")
        found: list[Times] = []
        consume = partial(_noted, found, partial(load, setup.servers, group, topic, consumers, count))
        seconds, cpu = under_load(setup.broker, consume)
        text = f"{consumers} consumer{'s' * (consumers > 1)}, {partitions} partition{'s' * (partitions > 1)}, {who}"
        yield f"record, {text}", seconds / count
        yield f"record, {text}: broker's processor time", cpu / count
        if consumers == partitions == 1:
            yield f"start to first record, {who}", found[0].to_first_s


def _noted(found: list[Times], load: Callable[[], Times]) -> float:
    found.append(load())
    return found[0].first_to_last_s


def measure_tool(setup: Setup) -> Figures:
    topic = setup.topic("topic-1", 1, setup.scale.records)
    rate = loads.with_performance_test(setup.servers, setup.group("tool"), topic, setup.scale.records)
    yield "record, kafka-share-consumer-perf-test, joining included", 1 / rate


def measure_latency(setup: Setup) -> Figures:
    topic = setup.topic("topic-1", 1, setup.scale.records)
    work = loads.acknowledge_in_turn(setup.servers, setup.group("latency"), topic, setup.scale.acknowledgements)
    yield "acknowledgement of one record", statistics.median(asyncio.run(work))


def measure_in_flight(setup: Setup) -> Figures:
    scale = setup.scale
    topic = setup.topic("topic-crowd", CROWD_PARTITIONS, scale.in_flight)
    group = setup.group("crowd", share_partition_max_record_locks=10_000)
    work = loads.acknowledge_in_a_crowd(setup.servers, group, topic, scale.in_flight, scale.acknowledgements)
    text = f"with {scale.in_flight:,} records in flight"
    yield f"acknowledgement {text}", statistics.median(asyncio.run(work))
    yield f"memory after that {text}", resident_bytes(setup.broker.pid)


PARTS: dict[str, Callable[[Setup], Figures]] = {
    **{
        f"records {consumers}x{partitions}": partial(measure_crowd, consumers=consumers, partitions=partitions)
        for partitions in (1, 4)
        for consumers in CROWDS
    },
    "tool": measure_tool,
    "latency": measure_latency,
    "in flight": measure_in_flight,
}


def measure_all(broker: Broker, _: Path, options: argparse.Namespace) -> Figures:
    rounds.boot(broker)
    yield from rounds.run_parts(PARTS, options, Setup(broker, options), with_java=("tool",))


def is_rate(case: str) -> bool:
    return case.startswith("record") and "time" not in case


def main(arguments: Sequence[str] | None = None) -> int:
    options = rounds.read_options(__doc__, f"part of one of: {', '.join(PARTS)}", arguments, SCALES)
    measures = [partial(measure_all, options=options)]
    return rounds.run("share", options, measures, PACKAGES, settings=SETTINGS, is_rate=is_rate)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
