"""Streams groups of ottla and of Apache Kafka 4.3.1, with real Kafka Streams applications and with raw clients.

    python -m benchmarks streams [--quick] [--rounds 3] [--only TEXT] [--brokers ottla] [--out FILE]

start      from the application's start to RUNNING: a word count with one repartition topic, with the default initial
           delay of three seconds and with none; the application's own start-up is part of it, on both sides alike
scaling    from one instance to three and to two, until every instance runs and the group is stable
heartbeats of a thousand members in ten groups, one outstanding on each of many connections
assignor   five hundred members and ten thousand tasks, beside Kafka's own class in a Java virtual machine that is warm

A ratio says how many times ottla's figure Apache Kafka's is. Java and Maven are needed; Linux only.
"""

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks import runner
from benchmarks.broker import raw
from benchmarks.broker.brokers import Apache, Broker, Ottla, cpu_seconds
from benchmarks.groups import loads
from benchmarks.groups.lines import Line, in_turn
from benchmarks.runner import Case, Measurement
from benchmarks.streams.members import settled_members
from ottla.groups.streams.sticky import MemberInput, assign
from ottla.wire.types import StreamsGroupDescribeRequest
from tests.interop import process
from tests.interop.apache import free_ports
from tests.interop.jars import APACHE_KAFKA, libraries
from tests.interop.streams.apps import App, compiled
from tests.interop.streams.feeding import create, feed

PACKAGES = ("msgspec",)
SUBJECTS = ("ottla", "Apache Kafka")
SETTINGS = {
    "auto.create.topics.enable": "false",
    "group.streams.heartbeat.interval.ms": "5000",
    "group.streams.min.heartbeat.interval.ms": "5000",
    "group.streams.initial.rebalance.delay.ms": "3000",
    "offsets.topic.num.partitions": "50",
}
"""Kafka's defaults for both; the interop fixtures' are quicker."""
CONNECTIONS = 64
MEMBERS, TASKS_OF_EACH, SUBTOPOLOGIES = 500, 100, 100


class Scale(NamedTuple):
    heartbeats: int
    groups: int
    group_size: int


FULL = Scale(100_000, 10, 100)
QUICK = Scale(10_000, 4, 25)

Figures = Iterator[tuple[str, float]]


def servers(broker: Broker) -> str:
    return f"127.0.0.1:{broker.port}"


def measure_start(broker: Broker, scale: Scale, directory: Path) -> Figures:
    for delay_ms, prefix in ((3_000, "waits"), (0, "hurries")):
        set_delay(broker, prefix, delay_ms)
        create(servers(broker), f"{prefix}-words", f"{prefix}-out", partitions=4)
        feed(servers(broker), f"{prefix}-words", [("1", "tea milk tea")])
        app = App("count", prefix, servers(broker), directory / prefix)
        try:
            app.wait_for("STATE REBALANCING")
            start = time.monotonic()
            app.running()
            yield f"start to RUNNING, initial delay {delay_ms} ms", time.monotonic() - start
            app.close()
        finally:
            app.kill()


def set_delay(broker: Broker, prefix: str, delay_ms: int) -> None:
    command = [sys.executable, "-m", "ottla", "configs", "alter", "group", f"{prefix}-app"]
    setting = f"streams.initial.rebalance.delay.ms={delay_ms}"
    subprocess.run([*command, "--set", setting, "--bootstrap-server", servers(broker)], check=True, capture_output=True)


def measure_scaling(broker: Broker, scale: Scale, directory: Path) -> Figures:
    prefix, address = "scale", servers(broker)
    set_delay(broker, prefix, 0)
    create(address, f"{prefix}-words", f"{prefix}-out", partitions=6)
    apps = [App("count", prefix, address, directory / "one").running()]
    line = Line(broker.port)
    try:
        wait_until_stable(line, f"{prefix}-app", 1)
        start = time.monotonic()
        apps += [App("count", prefix, address, directory / name) for name in ("two", "three")]
        for app in apps[1:]:
            app.running()
        wait_until_stable(line, f"{prefix}-app", 3)
        yield "stable after scaling 1 to 3", time.monotonic() - start
        start = time.monotonic()
        apps.pop().close()
        wait_until_stable(line, f"{prefix}-app", 2)
        yield "stable after scaling 3 to 2", time.monotonic() - start
    finally:
        for app in apps:
            app.kill()
        line.close()


def wait_until_stable(line: Line, group: str, members: int) -> None:
    deadline = time.monotonic() + 120
    while True:
        (row,) = line.call(StreamsGroupDescribeRequest((group,)), 0).groups
        if row.group_state == "Stable" and len(row.members) == members:
            return
        assert time.monotonic() < deadline, row
        time.sleep(0.02)


def measure_heartbeats(broker: Broker, scale: Scale, directory: Path) -> Figures:
    loads.create_topic(broker.port, "beats", 1)
    set_up = Line(broker.port)
    for group in range(scale.groups):
        set_delay(broker, f"bench-{group:02}", 0)
    members = settled_members(set_up, "beats", scale.groups, scale.group_size)
    lines = [Line(broker.port) for _ in range(CONNECTIONS)]
    frames = [[member.frame() for member in members[at::CONNECTIONS]] for at in range(CONNECTIONS)]
    lines, frames = lines[: len(members)], frames[: len(members)]
    in_turn(lines, frames, scale.heartbeats // 4)  # what is compiled or remembered at run time is by then
    before = cpu_seconds(broker.pid)
    seconds = in_turn(lines, frames, scale.heartbeats)
    yield "heartbeat of one of 1,000 members", seconds / scale.heartbeats
    yield "heartbeat: broker's processor time", (cpu_seconds(broker.pid) - before) / scale.heartbeats
    for line in (set_up, *lines):
        line.close()


def measure_assignor(broker: Broker, scale: Scale, directory: Path) -> Figures:
    """Independent of a running broker; it stands here to appear beside the others."""
    name = f"assignor: {MEMBERS} members, {SUBTOPOLOGIES * TASKS_OF_EACH:,} tasks, one standby"
    yield name, our_assignor_s() if broker.name == "ottla" else their_assignor_s()


def our_assignor_s() -> float:
    members = [MemberInput(f"m{each:04}", f"p{each // 2:04}") for each in range(MEMBERS)]
    counts = {str(each): TASKS_OF_EACH for each in range(SUBTOPOLOGIES)}
    found = []
    for _ in range(5):
        start = time.perf_counter()
        assign(members, counts, frozenset(counts), 1)
        found.append(time.perf_counter() - start)
    return min(found)


def their_assignor_s() -> float:
    classpath = f"{compiled()}:{libraries(APACHE_KAFKA)}/*"
    arguments = (str(MEMBERS), str(SUBTOPOLOGIES), str(TASKS_OF_EACH))
    command = process.java(classpath, "streams.AssignorTime", *arguments, heap="1g")
    lines = process.run(command).splitlines()
    return float(next(line for line in lines if line.startswith("SECONDS")).split()[1])


PARTS = {
    "start": measure_start,
    "scaling": measure_scaling,
    "heartbeats": measure_heartbeats,
    "assignor": measure_assignor,
}


def measure_all(broker: Broker, scale: Scale, only: str, directory: Path) -> Figures:
    broker.prepare()
    broker.exec()
    raw.first_produce(broker.port, "first")
    loads.create_topic(broker.port, "first", 1)
    loads.await_coordinator(broker.port, "first")
    for name, part in PARTS.items():
        if only in name:
            print(f"  {name}", file=sys.stderr, flush=True)
            yield from part(broker, scale, directory)


def run_round(name: str, directory: Path, scale: Scale, only: str) -> dict[str, float]:
    port = free_ports(1)[0]
    broker: Broker = Ottla(directory, port, SETTINGS) if name == "ottla" else Apache(directory, SETTINGS)
    try:
        return dict(measure_all(broker, scale, only, directory / "apps"))
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
    lines = [f"{'median of the rounds':60}{'ottla':>12}{'Apache Kafka':>14}{'ratio':>8}"]
    for case, by_broker in found.items():
        medians = {name: statistics.median(figures) for name, figures in by_broker.items()}
        cells = [shown(case, medians[name]) if name in medians else "" for name in SUBJECTS]
        ratio = f"{medians[SUBJECTS[1]] / medians[SUBJECTS[0]]:.2f}x" if len(medians) == len(SUBJECTS) else ""
        lines.append(f"{case:60}{cells[0]:>12}{cells[1]:>14}{ratio:>8}")
    return lines


def shown(case: str, figure: float) -> str:
    return f"{1 / figure:,.0f}/s" if case.startswith("heartbeat of") else runner.duration(figure)


def save(found: dict[str, dict[str, list[float]]], options: argparse.Namespace) -> Path:
    options.window = 0.0
    done = []
    for case, by_broker in found.items():
        ours_first = sorted(by_broker.items(), key=lambda item: SUBJECTS.index(item[0]))
        done.append((Case(case, []), [Measurement(case, name, 1, tuple(figures)) for name, figures in ours_first]))
    return runner.save("streams", done, options, PACKAGES)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, help="how often each broker is measured (3; 1 with --quick)")
    parser.add_argument("--quick", action="store_true", help="less of everything: a look, not a claim")
    parser.add_argument("--only", default="", help=f"part of one of: {', '.join(PARTS)}")
    parser.add_argument("--brokers", default="", help="only the broker whose name contains this text")
    parser.add_argument("--out", type=Path, help="file for the results (benchmarks/results/streams.json)")
    options = parser.parse_args(arguments)
    options.rounds = options.rounds or (1 if options.quick else 3)
    found = run_rounds(options)
    print("\n".join(table(found)), flush=True)
    save(found, options)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
