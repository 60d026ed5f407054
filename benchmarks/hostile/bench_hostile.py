"""How long an honest client waits while others behave badly, at ottla and at Apache Kafka 4.3.1.

    python -m benchmarks hostile [--quick] [--rounds 1] [--only TEXT] [--brokers ottla] [--out FILE]

The honest client writes a record and asks for metadata every 5 ms, alone at first and then beside each kind of hostile
ones, which run in a process of their own. Figures are its waits (median, 99 of 100, longest) and the broker's memory
after each attack. Linux only.

No frame asks for AddRaftVoter: one whose listener has an empty name ends the process of Apache Kafka 4.3.1, since the
thread of its metadata quorum takes that for a fatal fault. Any client may send it where there is no authorizer.
"""

from __future__ import annotations

import multiprocessing
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from multiprocessing.synchronize import Event
from typing import Any, NamedTuple

from benchmarks import rounds, runner
from benchmarks.broker import raw
from benchmarks.broker.brokers import Broker, resident_bytes
from ottla.broker.handlers import add_raft_voter
from tests.hostile import attacks
from tests.hostile.neighbour import Neighbour, neighbour
from tests.unit.broker.desk import Topic

PACKAGES = ("msgspec",)
ANSWER_BYTES = 55 * 1000 * 1000
BATCH_ROOM = 1 << 20
READY_S = 120


class Scale(NamedTuple):
    frames: int
    half_open: int
    idle: int
    greedy: int
    slow: int
    seconds: float


FULL = Scale(100_000, 500, 2_000, 50, 20, 10.0)
QUICK = Scale(5_000, 50, 300, 5, 5, 2.0)
Figures = Iterator[tuple[str, float]]


class Place(NamedTuple):
    broker: Broker
    scale: Scale
    topic: Topic

    @property
    def address(self) -> tuple[str, int]:
        return "127.0.0.1", self.broker.port


def watched(place: Place, name: str, beside: Neighbour, began: int) -> Figures:
    """What the honest client has met since it had been served `began` times."""
    waits_s = sorted(each / 1000 for each in beside.waits_ms[began:])
    yield f"{name}: p50", statistics.median(waits_s)
    yield f"{name}: p99", waits_s[int(len(waits_s) * 0.99)]
    yield f"{name}: longest", waits_s[-1]
    yield f"memory after {name}", resident_bytes(place.broker.pid)


def hold(make: Callable[[], AbstractContextManager[Any]], ready: Event, end: Event) -> None:
    """In a process of its own: behave badly until told to end."""
    with make():
        ready.set()
        end.wait(READY_S)


@contextmanager
def elsewhere(make: Callable[[], AbstractContextManager[Any]]) -> Iterator[None]:
    context = multiprocessing.get_context("fork")
    ready, end = context.Event(), context.Event()
    process = context.Process(target=hold, args=(make, ready, end))
    process.start()
    try:
        if not ready.wait(READY_S):
            raise TimeoutError("the attack does not begin")
        yield
    finally:
        end.set()
        process.join()


def during(place: Place, make: Callable[[], AbstractContextManager[Any]], beside: Neighbour) -> None:
    with elsewhere(make):
        time.sleep(place.scale.seconds)


def shooting(place: Place, beside: Neighbour) -> None:
    process = multiprocessing.get_context("fork").Process(
        target=attacks.shoot,
        args=(place.address, 1, place.scale.frames),
        kwargs={"spared": add_raft_voter.API_KEY},
    )
    process.start()
    process.join()


def parts(place: Place) -> dict[str, Callable[[Neighbour], None]]:
    address, scale, topic = place.address, place.scale, place.topic
    held = {
        f"{scale.half_open:,} half-open connections": partial(attacks.half_open, address, scale.half_open),
        f"{scale.idle:,} idle connections": partial(attacks.idle, address, scale.idle),
        f"{scale.greedy} clients that never read": partial(
            attacks.never_reading, address, topic, scale.greedy, ANSWER_BYTES
        ),
        f"{scale.slow} slow readers of 55 MB": partial(attacks.slow_readers, address, topic, scale.slow, ANSWER_BYTES),
    }
    return {
        "alone": lambda _: time.sleep(scale.seconds),
        f"{scale.frames:,} hostile frames": partial(shooting, place),
        **{name: partial(during, place, make) for name, make in held.items()},
    }


def measure_all(broker: Broker, scale: Scale, only: str) -> Figures:
    broker.prepare()
    broker.exec()
    raw.first_produce(broker.port, "first")
    servers = f"127.0.0.1:{broker.port}"
    place = Place(broker, scale, attacks.large_topic(servers, ANSWER_BYTES + BATCH_ROOM))
    with neighbour(servers) as beside:
        time.sleep(scale.seconds)  # it does not count: what is loaded or compiled on first use
        for name, attack in parts(place).items():
            if only in name:
                sys.stderr.write(f"  {name}\n")
                began = len(beside.waits_ms)
                attack(beside)
                yield from watched(place, name, beside, began)


def shown(case: str, figure: float) -> str:
    return f"{figure / (1 << 20):,.0f} MiB" if case.startswith("memory") else runner.duration(figure)


def main(arguments: Sequence[str] | None = None) -> int:
    options = rounds.read_options("hostile", __doc__, "part of the name of an attack", arguments)
    scale = QUICK if options.quick else FULL
    found = rounds.run_rounds(options, lambda broker, _: measure_all(broker, scale, options.only))
    sys.stdout.write("\n".join(rounds.table(found, shown)) + "\n")
    rounds.save("hostile", found, options, PACKAGES)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
