"""The broker under test: `ottla serve` as a program, Apache Kafka, or three nodes of ottla, with the same face."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pytest

from tests.interop.apache import ApacheKafka
from tests.interop.moving import MovingCluster
from tests.interop.serving import OttlaServe

OTTLA, APACHE, MOVING = "ottla", "apache", "moving"
SWITCH = "OTTLA_INTEROP_BROKERS"
"""`apache`, `ottla` or both with a comma between them; both unless set. `moving`: three nodes whose leaders move."""


Node = ApacheKafka | OttlaServe | MovingCluster


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
    assert set(named) <= {OTTLA, APACHE, MOVING}, f"{SWITCH} knows {OTTLA}, {APACHE} and {MOVING}"
    return named


def node_of(kind: str, directory: Path, **settings: Any) -> Node:
    """A node that has not been started yet; both kinds know `data_dir`, and settings by their names."""
    makers: dict[str, Callable[..., Node]] = {OTTLA: OttlaServe, APACHE: ApacheKafka, MOVING: MovingCluster}
    if kind == MOVING and settings.pop("data_dir", None) is not None:
        pytest.skip("three nodes have three directories")
    return makers[kind](directory, **settings)


def running(node: Node) -> Iterator[Node]:
    """A fixture that runs a node for many tests, none of which may make it fail inside."""
    with node:
        yield node
        assert "Traceback" not in node.log, node.log
        if isinstance(node, MovingCluster):
            node.check()


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
