"""Groups, offsets and transactions of ottla and of Apache Kafka 4.3.1, with the same raw clients.

    python -m benchmarks groups [--quick] [--rounds 3] [--only TEXT] [--brokers ottla] [--out FILE]

Each round starts every broker anew in an empty directory; the order turns from round to round. Figures are seconds for
a commit, a heartbeat, a rebalance or a transaction, and the broker's processor time for each. A ratio says how many
times ottla's figure Apache Kafka's is, so above 1 ottla does better. Java and Maven are needed; Linux only.
"""

import argparse
import shutil
import statistics
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks import runner
from benchmarks.broker import raw
from benchmarks.broker.brokers import Apache, Broker, Ottla, cpu_seconds
from benchmarks.groups import loads, transactions
from benchmarks.groups.loads import CLASSIC, CONNECTIONS, CONSUMER, DEPTH, Kind
from benchmarks.runner import Case, Measurement
from tests.interop.apache import free_ports

PACKAGES = ("confluent-kafka", "msgspec")
SUBJECTS = ("ottla", "Apache Kafka")
SETTINGS = {
    "auto.create.topics.enable": "false",
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.max.session.timeout.ms": "1800000",
    "group.consumer.min.session.timeout.ms": "6000",
    "group.consumer.session.timeout.ms": "1800000",
    "group.initial.rebalance.delay.ms": "0",
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


FULL = Scale(20_000, 40_000, 100, 10, 50, 500, 3, (0, 1_000, 10_000), 500)
QUICK = Scale(2_000, 4_000, 10, 10, 10, 100, 1, (0, 100, 1_000), 100)
RECORDS = 100
"""In a transaction."""

Figures = Iterator[tuple[str, float]]
"""Case and one figure of one broker in one round."""


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
    for event, seconds in loads.rebalances(kind, broker.port, WIDE_TOPIC, partitions, size, scale.rebalances):
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
    before = cpu_seconds(broker.pid)
    seconds = load()
    yield name, seconds / count
    yield f"{name}: broker's processor time", max(cpu_seconds(broker.pid) - before, 1e-9) / count


def measure_all(broker: Broker, scale: Scale, only: str) -> Figures:
    broker.prepare()
    broker.exec()
    raw.first_produce(broker.port, "first")
    loads.create_topic(broker.port, TOPIC, 1)
    loads.create_topic(broker.port, WIDE_TOPIC, scale.partitions)
    loads.await_coordinator(broker.port, TOPIC)
    for name, part in PARTS.items():
        if only in name:
            print(f"  {name}", file=sys.stderr, flush=True)
            yield from part(broker, scale)


# --- rounds and results


def run_round(name: str, directory: Path, scale: Scale, only: str) -> dict[str, float]:
    port = free_ports(1)[0]
    broker: Broker = Ottla(directory, port, SETTINGS) if name == "ottla" else Apache(directory, SETTINGS)
    try:
        return dict(measure_all(broker, scale, only))
    finally:
        broker.stop()
        shutil.rmtree(directory, ignore_errors=True)


def run_rounds(options: argparse.Namespace) -> dict[str, dict[str, list[float]]]:
    """Case -> broker -> one figure of each round."""
    found: dict[str, dict[str, list[float]]] = {}
    turn = deque(name for name in SUBJECTS if options.brokers in name)
    scale = QUICK if options.quick else FULL
    with tempfile.TemporaryDirectory(prefix="ottla-bench-") as base:
        for number in range(options.rounds):
            for name in turn:
                print(f"round {number + 1}: {name}", file=sys.stderr, flush=True)
                figures = run_round(name, Path(base) / f"{number}-{name.split()[0]}", scale, options.only)
                for case, figure in figures.items():
                    found.setdefault(case, {}).setdefault(name, []).append(figure)
            turn.rotate(-1)
    return found


def table(found: dict[str, dict[str, list[float]]]) -> list[str]:
    lines = [f"{'median of the rounds':84}{'ottla':>12}{'Apache Kafka':>14}{'ratio':>8}"]
    for case, by_broker in found.items():
        medians = {name: statistics.median(figures) for name, figures in by_broker.items()}
        cells = [shown(case, medians[name]) if name in medians else "" for name in SUBJECTS]
        ratio = f"{medians[SUBJECTS[1]] / medians[SUBJECTS[0]]:.2f}x" if len(medians) == len(SUBJECTS) else ""
        lines.append(f"{case:84}{cells[0]:>12}{cells[1]:>14}{ratio:>8}")
    return lines


def shown(case: str, figure: float) -> str:
    is_time = "rebalance" in case or case.endswith("processor time")
    return runner.duration(figure) if is_time else f"{1 / figure:,.0f}/s"


def save(found: dict[str, dict[str, list[float]]], options: argparse.Namespace) -> Path:
    options.window = 0.0
    done = []
    for case, by_broker in found.items():
        ours_first = sorted(by_broker.items(), key=lambda item: SUBJECTS.index(item[0]))
        done.append((Case(case, []), [Measurement(case, name, 1, tuple(figures)) for name, figures in ours_first]))
    return runner.save("groups", done, options, PACKAGES)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, help="how often each broker is measured (3; 1 with --quick)")
    parser.add_argument("--quick", action="store_true", help="less of everything: a look, not a claim")
    parser.add_argument("--only", default="", help=f"part of one of: {', '.join(PARTS)}")
    parser.add_argument("--brokers", default="", help="only the broker whose name contains this text")
    parser.add_argument("--out", type=Path, help="file for the results (benchmarks/results/groups.json)")
    options = parser.parse_args(arguments)
    options.rounds = options.rounds or (1 if options.quick else 3)
    found = run_rounds(options)
    print("\n".join(table(found)), flush=True)
    save(found, options)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
