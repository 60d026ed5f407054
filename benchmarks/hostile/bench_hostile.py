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
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import rounds
from benchmarks.broker.brokers import Broker
from benchmarks.hostile.beside import hold_elsewhere, run_elsewhere, watched
from benchmarks.rounds import Figures
from benchmarks.runner import Size
from ottla.broker.handlers import add_raft_voter
from tests.component.broker.raw_client import Topic
from tests.hostile import attacks
from tests.hostile.neighbour import Neighbour, neighbour

PACKAGES = ("msgspec",)
BATCH_ROOM = 1 << 20


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


def parts(setup: Setup) -> dict[str, Callable[[], Figures]]:
    address, scale, topic = setup.address, setup.scale, setup.topic
    shoot = partial(attacks.shoot, spared=add_raft_voter.API_KEY)
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
        f"{scale.frames:,} hostile frames": partial(run_elsewhere, shoot, address, 1, scale.frames),
        **{name: partial(hold_elsewhere, make, scale.seconds) for name, make in held.items()},
    }
    return {name: partial(watched, setup.broker.pid, setup.beside, name, attack) for name, attack in attempts.items()}


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
