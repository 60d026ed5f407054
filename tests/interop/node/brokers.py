"""The broker under test: `ottla serve` as a program, or Apache Kafka, with the same face."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol, TypeVar

from tests.interop.apache import ApacheKafka
from tests.interop.serving import OttlaServe

OTTLA, APACHE = "ottla", "apache"
SWITCH = "OTTLA_INTEROP_BROKERS"
"""`apache`, `ottla` or both with a comma between them; both unless set."""


Node = ApacheKafka | OttlaServe


class Broker(Protocol):
    """What suites need to know of a broker."""

    @property
    def bootstrap_servers(self) -> str: ...

    @property
    def data_dir(self) -> Path: ...


class Startable(Protocol):
    """What `booting` needs to know of a broker."""

    @property
    def running(self) -> bool: ...
    def start(self) -> None: ...
    def kill(self) -> None: ...


B = TypeVar("B", bound=Startable)


def wanted() -> list[str]:
    named = [name.strip() for name in os.environ.get(SWITCH, f"{OTTLA},{APACHE}").split(",")]
    assert set(named) <= {OTTLA, APACHE}, f"{SWITCH} knows {OTTLA} and {APACHE}"
    return named


def node_of(kind: str, directory: Path, **settings: Any) -> Node:
    """A node that has not been started yet; both kinds know `data_dir`, and settings by their names."""
    make: Callable[..., Node] = ApacheKafka if kind == APACHE else OttlaServe
    return make(directory, **settings)


def running(node: Node) -> Iterator[Node]:
    """A fixture that runs a node for many tests, none of which may make it fail inside."""
    with node:
        yield node
        assert "Traceback" not in node.log, node.log


def booting(make: Callable[..., B]) -> Iterator[Callable[..., B]]:
    """A fixture that boots brokers for one test; `make` gets their number and what the test asks for. What still runs
    at its end is killed."""
    booted: list[B] = []

    def boot(**settings: object) -> B:
        broker = make(len(booted), **settings)
        booted.append(broker)
        broker.start()
        return broker

    yield boot
    for broker in booted:
        if broker.running:
            broker.kill()
