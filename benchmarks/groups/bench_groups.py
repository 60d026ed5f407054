"""Groups, offsets and transactions of ottla and of Apache Kafka 4.3.1, with the same raw clients.

    python -m benchmarks groups [--quick] [--rounds 3] [--only TEXT] [--brokers ottla] [--out FILE]

Each round starts every broker anew in an empty directory; the order turns from round to round. Figures are seconds for
a commit, a heartbeat, a rebalance or a transaction, and the broker's processor time for each. A ratio says how many
times ottla's figure Apache Kafka's is, so above 1 ottla does better. Java and Maven are needed; Linux only.
"""

import argparse
import statistics
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks import rounds
from benchmarks.broker.brokers import Broker, under_load
from benchmarks.groups import loads, transactions
from benchmarks.groups.loads import CLASSIC, CONNECTIONS, CONSUMER, DEPTH, Kind
from benchmarks.rounds import Figures
from benchmarks.runner import Size

PACKAGES = ("confluent-kafka", "msgspec")
SETTINGS = {
    "auto.create.topics.enable": "false",
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.heartbeat.interval.ms": "100",
    "group.consumer.max.session.timeout.ms": "1800000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "1800000",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "offsets.topic.num.partitions": "50",
    "transaction.state.log.num.partitions": "50",
}
"""The same for both: nobody waits for members that may come, or loses one that is only slow to ask."""
TOPIC, WIDE_TOPIC = "small", "wide"


class Scale(NamedTuple):
    """How much is done."""

    commits: int
    heartbeats: int
    groups: int
    group_size: int
    members: int
    partitions: int
    rebalances: int
    others: tuple[int, ...]
    transactions: int
    session_ms: int


SCALES = {
    Size.FULL: Scale(20_000, 40_000, 100, 10, 50, 500, 3, (0, 1_000, 10_000), 500, 6_000),
    Size.QUICK: Scale(2_000, 4_000, 10, 10, 10, 100, 1, (0, 100, 1_000), 100, 6_000),
    Size.SMOKE: Scale(100, 100, 2, 3, 2, 4, 1, (0, 2), 2, 1_000),
}
RECORDS = 100
"""In a transaction."""


# --- one broker, one round


def measure_commits(broker: Broker, scale: Scale) -> Figures:
    port, count = broker.port, scale.commits
    loads.commits_pipelined(port, TOPIC, count)
    loads.commits_in_turn(port, TOPIC, count, 1)
    yield from each(broker, "commit, one outstanding", count, lambda: loads.commits_in_turn(port, TOPIC, count, 1))
    name = f"commit, {CONNECTIONS} connections with one outstanding"
    yield from each(broker, name, count, lambda: loads.commits_in_turn(port, TOPIC, count, CONNECTIONS))
    yield from each(broker, f"commit, {DEPTH} pipelined", count, lambda: loads.commits_pipelined(port, TOPIC, count))


def measure_heartbeats(broker: Broker, scale: Scale, kind: Kind) -> Figures:
    port, count = broker.port, scale.heartbeats
    own = loads.heartbeat_frames(kind, port, TOPIC, 1, 1, 1)
    loads.heartbeats_in_turn(port, own, count)
    loads.heartbeats_pipelined(port, own, count)
    name = f"{kind.name} heartbeat, {CONNECTIONS} connections with one outstanding"
    yield from each(broker, name, count, lambda: loads.heartbeats_in_turn(port, own, count))
    name = f"{kind.name} heartbeat, {DEPTH} pipelined"
    yield from each(broker, name, count, lambda: loads.heartbeats_pipelined(port, own, count))
    many = loads.heartbeat_frames(kind, port, TOPIC, 1, scale.groups, scale.group_size)
    name = f"{kind.name} heartbeat, {len(many)} members in {scale.groups} groups"
    yield from each(broker, name, count, lambda: loads.heartbeats_in_turn(port, many, count))


def measure_rebalances(broker: Broker, scale: Scale, kind: Kind) -> Figures:
    found: dict[str, list[float]] = {}
    size, partitions = scale.members, scale.partitions
    shape = loads.Rebalancing(kind, WIDE_TOPIC, partitions, size, scale.session_ms)
    for event, seconds in loads.rebalances(broker.port, shape, scale.rebalances):
        found.setdefault(event, []).append(seconds)
    for event, times in found.items():
        yield (
            f"{kind.name} rebalance, {size} members, {partitions} partitions, after a {event}",
            statistics.median(times),
        )


def measure_crowd(broker: Broker, scale: Scale) -> Figures:
    """Whether a heartbeat costs more where there are many other groups."""
    port, count = broker.port, scale.heartbeats
    own = loads.heartbeat_frames(CLASSIC, port, TOPIC, 1, 1, 2)
    there = 0
    for others in scale.others:
        loads.other_groups(port, TOPIC, there, others)
        there = others
        name = f"classic heartbeat beside {others} other groups"
        yield from each(broker, name, count, lambda: loads.heartbeats_in_turn(port, own, count))


def measure_transactions(broker: Broker, scale: Scale) -> Figures:
    port, count = broker.port, scale.transactions
    transactions.with_raw_frames(port, TOPIC, count, 1)
    name = "transaction of one batch and one record, raw frames"
    yield from each(broker, name, count, lambda: transactions.with_raw_frames(port, TOPIC, count, 1))
    name = f"transaction of one batch and {RECORDS} records, raw frames"
    yield from each(broker, name, count, lambda: transactions.with_raw_frames(port, TOPIC, count, RECORDS))
    name = f"transaction of {RECORDS} records, librdkafka"
    yield from each(broker, name, count, lambda: transactions.with_librdkafka(port, TOPIC, count, RECORDS))


PARTS: dict[str, Callable[[Broker, Scale], Figures]] = {
    "commits": measure_commits,
    "heartbeats classic": lambda broker, scale: measure_heartbeats(broker, scale, CLASSIC),
    "heartbeats consumer": lambda broker, scale: measure_heartbeats(broker, scale, CONSUMER),
    "rebalances classic": lambda broker, scale: measure_rebalances(broker, scale, CLASSIC),
    "rebalances consumer": lambda broker, scale: measure_rebalances(broker, scale, CONSUMER),
    "transactions": measure_transactions,
    "crowd": measure_crowd,  # last: it leaves many groups behind
}


def each(broker: Broker, name: str, count: int, load: Callable[[], float]) -> Figures:
    """Seconds of one of so many, and the broker's processor time for it."""
    seconds, cpu = under_load(broker, load)
    yield name, seconds / count
    yield f"{name}: broker's processor time", cpu / count


def measure_all(broker: Broker, _: Path, options: argparse.Namespace) -> Figures:
    rounds.boot(broker)
    loads.create_topic(broker.port, TOPIC, 1)
    loads.create_topic(broker.port, WIDE_TOPIC, options.scale.partitions)
    loads.await_coordinator(broker.port, TOPIC)
    yield from rounds.run_parts(PARTS, options, broker, options.scale)


def is_rate(case: str) -> bool:
    return "rebalance" not in case and not case.endswith("processor time")


def main(arguments: Sequence[str] | None = None) -> int:
    options = rounds.read_options(__doc__, f"part of one of: {', '.join(PARTS)}", arguments, SCALES)
    measures = [partial(measure_all, options=options)]
    return rounds.run("groups", options, measures, PACKAGES, settings=SETTINGS, is_rate=is_rate)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
