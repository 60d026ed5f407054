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
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks import rounds
from benchmarks.broker.brokers import Broker, under_load
from benchmarks.groups import loads
from benchmarks.groups.connections import Connection, in_turn
from benchmarks.rounds import Figures
from benchmarks.runner import Size
from benchmarks.streams.members import settled_members
from ottla.core.groups.streams.sticky import MemberInput, assign
from ottla.wire.types import StreamsGroupDescribeRequest
from tests.interop import process
from tests.interop.jars import APACHE_KAFKA, libraries
from tests.interop.streams.apps import App, compiled
from tests.interop.streams.feeding import create, feed

PACKAGES = ("msgspec",)
SETTINGS = {
    "auto.create.topics.enable": "false",
    "group.streams.heartbeat.interval.ms": "5000",
    "group.streams.min.heartbeat.interval.ms": "5000",
    "group.streams.initial.rebalance.delay.ms": "3000",
    "offsets.topic.num.partitions": "50",
}
"""Kafka's defaults for both; the interop fixtures' are quicker."""
CONNECTIONS = 64
TIMES = 5


class Scale(NamedTuple):
    heartbeats: int
    groups: int
    group_size: int
    members: int
    subtopologies: int
    tasks_of_each: int


SCALES = {
    Size.FULL: Scale(100_000, 10, 100, 500, 100, 100),
    Size.QUICK: Scale(10_000, 4, 25, 500, 100, 100),
    Size.SMOKE: Scale(100, 2, 2, 5, 2, 5),
}


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
    loads.configure_group(broker.port, f"{prefix}-app", streams_initial_rebalance_delay_ms=delay_ms)


def measure_scaling(broker: Broker, scale: Scale, directory: Path) -> Figures:
    prefix, address = "scale", servers(broker)
    set_delay(broker, prefix, 0)
    create(address, f"{prefix}-words", f"{prefix}-out", partitions=6)
    apps = [App("count", prefix, address, directory / "one").running()]
    connection = Connection(broker.port)
    try:
        wait_until_stable(connection, f"{prefix}-app", 1)
        start = time.monotonic()
        apps += [App("count", prefix, address, directory / name) for name in ("two", "three")]
        for app in apps[1:]:
            app.running()
        wait_until_stable(connection, f"{prefix}-app", 3)
        yield "stable after scaling 1 to 3", time.monotonic() - start
        start = time.monotonic()
        apps.pop().close()
        wait_until_stable(connection, f"{prefix}-app", 2)
        yield "stable after scaling 3 to 2", time.monotonic() - start
    finally:
        for app in apps:
            app.kill()
        connection.close()


def wait_until_stable(connection: Connection, group: str, members: int) -> None:
    deadline = time.monotonic() + 120
    while True:
        (row,) = connection.call(StreamsGroupDescribeRequest((group,)), 0).groups
        if row.group_state == "Stable" and len(row.members) == members:
            return
        assert time.monotonic() < deadline, row
        time.sleep(0.02)


def measure_heartbeats(broker: Broker, scale: Scale, directory: Path) -> Figures:
    loads.create_topic(broker.port, "beats", 1)
    set_up = Connection(broker.port)
    for group in range(scale.groups):
        set_delay(broker, f"bench-{group:02}", 0)
    members = settled_members(set_up, "beats", scale.groups, scale.group_size)
    connections = [Connection(broker.port) for _ in range(CONNECTIONS)]
    frames = [[member.frame() for member in members[at::CONNECTIONS]] for at in range(CONNECTIONS)]
    connections, frames = connections[: len(members)], frames[: len(members)]
    in_turn(connections, frames, scale.heartbeats // 4)  # what is compiled or remembered at run time is by then
    seconds, cpu = under_load(broker, lambda: in_turn(connections, frames, scale.heartbeats))
    yield f"heartbeat of one of {len(members):,} members", seconds / scale.heartbeats
    yield "heartbeat: broker's processor time", cpu / scale.heartbeats
    for connection in (set_up, *connections):
        connection.close()


def measure_assignor(broker: Broker, scale: Scale, directory: Path) -> Figures:
    """Independent of a running broker; it stands here to appear beside the others."""
    name = f"assignor: {scale.members} members, {scale.subtopologies * scale.tasks_of_each:,} tasks, one standby"
    yield name, our_assignor_s(scale) if broker.name == "ottla" else their_assignor_s(scale)


def our_assignor_s(scale: Scale) -> float:
    members = [MemberInput(f"m{each:04}", f"p{each // 2:04}") for each in range(scale.members)]
    counts = {str(each): scale.tasks_of_each for each in range(scale.subtopologies)}
    found = []
    for _ in range(TIMES):
        start = time.perf_counter()
        assign(members, counts, frozenset(counts), 1)
        found.append(time.perf_counter() - start)
    return min(found)


def their_assignor_s(scale: Scale) -> float:
    classpath = f"{compiled()}:{libraries(APACHE_KAFKA)}/*"
    arguments = (str(scale.members), str(scale.subtopologies), str(scale.tasks_of_each))
    command = process.java(classpath, "streams.AssignorTime", *arguments, heap="1g")
    lines = process.run(command).splitlines()
    return float(next(line for line in lines if line.startswith("SECONDS")).split()[1])


PARTS: dict[str, Callable[[Broker, Scale, Path], Figures]] = {
    "start": measure_start,
    "scaling": measure_scaling,
    "heartbeats": measure_heartbeats,
    "assignor": measure_assignor,
}


def measure_all(broker: Broker, directory: Path, options: argparse.Namespace) -> Figures:
    rounds.boot(broker)
    loads.await_coordinator(broker.port, "first")
    given = (broker, options.scale, directory / "apps")
    yield from rounds.run_parts(PARTS, options, *given, with_java=("start", "scaling"))


def is_rate(case: str) -> bool:
    return case.startswith("heartbeat of")


def main(arguments: Sequence[str] | None = None) -> int:
    options = rounds.read_options(__doc__, f"part of one of: {', '.join(PARTS)}", arguments, SCALES)
    measures = [partial(measure_all, options=options)]
    return rounds.run("streams", options, measures, PACKAGES, settings=SETTINGS, is_rate=is_rate)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
