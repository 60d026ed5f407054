"""What an honest client meets while others attack in a process of their own."""

from __future__ import annotations

import multiprocessing
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from multiprocessing.synchronize import Event
from typing import Any

from benchmarks.broker.brokers import resident_bytes
from benchmarks.rounds import Figures
from tests.hostile.neighbour import Neighbour

READY_S = 120
FORK = multiprocessing.get_context("fork")


def watched(pid: int, beside: Neighbour, name: str, attack: Callable[[], None]) -> Figures:
    """Its waits from an attack's beginning until it is served after its end, and then the memory of the broker."""
    began = len(beside.waits_ms)
    attack()
    beside.await_served(began + 1)
    waits_s = sorted(each / 1000 for each in beside.waits_ms[began:])
    yield f"{name}: p50", statistics.median(waits_s)
    yield f"{name}: p99", waits_s[int(len(waits_s) * 0.99)]
    yield f"{name}: longest", waits_s[-1]
    yield f"memory after {name}", resident_bytes(pid)


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


def run_elsewhere(target: Callable[..., object], *arguments: object) -> None:
    with elsewhere(target, *arguments):
        pass


def hold_elsewhere(make: Callable[[], AbstractContextManager[Any]], seconds: float) -> None:
    """Behave badly for some seconds."""
    ready, end = FORK.Event(), FORK.Event()
    with elsewhere(_hold, make, ready, end):
        try:
            if not ready.wait(READY_S):
                raise TimeoutError("the attack does not begin")
            time.sleep(seconds)
        finally:
            end.set()


def _hold(make: Callable[[], AbstractContextManager[Any]], ready: Event, end: Event) -> None:
    with make():
        ready.set()
        end.wait(READY_S)
