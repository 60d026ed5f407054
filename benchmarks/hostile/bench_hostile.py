"""How long an honest client waits while others behave badly, at ottla and at Apache Kafka 4.3.1.

    python -m benchmarks hostile [--quick] [--rounds 1] [--only TEXT] [--brokers ottla] [--out FILE]

The honest client writes a record and asks for metadata every 5 ms, alone at first and then beside each kind of hostile
ones, which run in a process of their own. Figures are its waits (median, 99 of 100, longest) and the broker's memory
after each attack. Linux only.

No frame asks for AddRaftVoter: one whose listener has an empty name ends the process of Apache Kafka 4.3.1, since the
thread of its metadata quorum takes that for a fatal fault. Any client may send it where there is no authorizer.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import rounds
from benchmarks.broker.brokers import Broker, resident_bytes
from benchmarks.rounds import Figures
from benchmarks.runner import Size
from ottla.broker.handlers import add_raft_voter
from tests.component.broker.raw_client import Topic
from tests.hostile import attacks
from tests.hostile.neighbour import Neighbour, neighbour

PACKAGES = ("msgspec",)
BATCH_ROOM = 1 << 20
READY_S = 120
FORK = multiprocessing.get_context("fork")


class Scale(NamedTuple):
    frames: int
    half_open: int
    idle: int
    greedy: int
    slow: int
    answer_bytes: int
    seconds: float


SCALES = {
    Size.FULL: Scale(100_000, 500, 2_000, 50, 20, 55_000_000, 10.0),
    Size.QUICK: Scale(5_000, 50, 300, 5, 5, 55_000_000, 2.0),
    Size.SMOKE: Scale(20, 2, 2, 2, 2, 2_000_000, 0.2),
}


class Setup(NamedTuple):
    broker: Broker
    scale: Scale
    topic: Topic
    beside: Neighbour
    """The honest client."""

    @property
    def address(self) -> tuple[str, int]:
        return "127.0.0.1", self.broker.port


def watched(setup: Setup, name: str, attack: Callable[[], None]) -> Figures:
    """What the honest client meets from an attack's beginning until it is served after its end."""
    beside = setup.beside
    began = len(beside.waits_ms)
    attack()
    beside.await_served(began + 1)
    waits_s = sorted(each / 1000 for each in beside.waits_ms[began:])
    yield f"{name}: p50", statistics.median(waits_s)
    yield f"{name}: p99", waits_s[int(len(waits_s) * 0.99)]
    yield f"{name}: longest", waits_s[-1]
    yield f"memory after {name}", resident_bytes(setup.broker.pid)


def hold(make: Callable[[], AbstractContextManager[Any]], ready: Event, end: Event) -> None:
    """In a process of its own: behave badly until told to end."""
    with make():
        ready.set()
        end.wait(READY_S)


@contextmanager
def elsewhere(target: Callable[..., object], *arguments: object) -> Iterator[None]:
    """Something in a process of its own, which has to come to a good end."""
    process = FORK.Process(target=target, args=arguments)
    process.start()
    try:
        yield
    finally:
        process.join()
    if process.exitcode:
        raise RuntimeError(f"the attack failed: exit code {process.exitcode}")


def during(setup: Setup, make: Callable[[], AbstractContextManager[Any]]) -> None:
    ready, end = FORK.Event(), FORK.Event()
    with elsewhere(hold, make, ready, end):
        try:
            if not ready.wait(READY_S):
                raise TimeoutError("the attack does not begin")
            time.sleep(setup.scale.seconds)
        finally:
            end.set()


def shooting(setup: Setup) -> None:
    shoot = partial(attacks.shoot, spared=add_raft_voter.API_KEY)
    with elsewhere(shoot, setup.address, 1, setup.scale.frames):
        pass


def parts(setup: Setup) -> dict[str, Callable[[], Figures]]:
    address, scale, topic = setup.address, setup.scale, setup.topic
    held: dict[str, Callable[[], AbstractContextManager[Any]]] = {
        f"{scale.half_open:,} half-open connections": partial(attacks.half_open, address, scale.half_open),
        f"{scale.idle:,} idle connections": partial(attacks.idle, address, scale.idle),
        f"{scale.greedy} clients that never read": partial(
            attacks.never_reading, address, topic, scale.greedy, scale.answer_bytes
        ),
        f"{scale.slow} slow readers of {scale.answer_bytes // 1_000_000} MB": partial(
            attacks.slow_readers, address, topic, scale.slow, scale.answer_bytes
        ),
    }
    attempts: dict[str, Callable[[], None]] = {
        "alone": lambda: time.sleep(scale.seconds),
        f"{scale.frames:,} hostile frames": partial(shooting, setup),
        **{name: partial(during, setup, make) for name, make in held.items()},
    }
    return {name: partial(watched, setup, name, attack) for name, attack in attempts.items()}


def measure_all(broker: Broker, _: Path, options: argparse.Namespace) -> Figures:
    rounds.boot(broker)
    servers = f"127.0.0.1:{broker.port}"
    scale: Scale = options.scale
    topic = attacks.large_topic(servers, scale.answer_bytes + BATCH_ROOM)
    with neighbour(servers) as beside:
        time.sleep(scale.seconds)  # it does not count: what is loaded or compiled on first use
        yield from rounds.run_parts(parts(Setup(broker, scale, topic, beside)), options)


def main(arguments: Sequence[str] | None = None) -> int:
    options = rounds.read_options(__doc__, "part of the name of an attack", arguments, SCALES)
    return rounds.run("hostile", options, [partial(measure_all, options=options)], PACKAGES)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
