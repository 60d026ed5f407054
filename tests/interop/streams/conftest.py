"""Each case runs on ottla and on Apache Kafka, with the same settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.interop.apache import ONE_NODE
from tests.interop.node.brokers import Node, node_of, running, wanted
from tests.interop.streams.apps import App

MakeApp = Callable[..., App]

SETTINGS = {key: value for key, value in ONE_NODE.items() if not key.startswith(("broker.", "share."))} | {
    "group.streams.min.session.timeout.ms": "6000",
    "group.streams.session.timeout.ms": "6000",
}
_serial = count(1)


def made(kind: str, directory: Path, **settings: object) -> Node:
    return node_of(kind, directory, **(SETTINGS | settings))


@pytest.fixture(scope="session", params=wanted())
def broker(
    request: pytest.FixtureRequest, apache_jars: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Node]:
    yield from running(made(request.param, tmp_path_factory.mktemp(request.param)))


@pytest.fixture
def servers(broker: Node) -> str:
    return broker.bootstrap_servers


@pytest.fixture
def prefix() -> str:
    """What the names of a test's topics and of its application begin with."""
    return f"s{next(_serial)}"


@pytest.fixture
def start(tmp_path: Path) -> Iterator[MakeApp]:
    """Starts instances: `start("count", prefix, servers)`. What still runs at the end is killed."""
    apps: list[App] = []

    def begin(topology: str, prefix: str, servers: str, **settings: object) -> App:
        app = App(topology, prefix, servers, tmp_path / f"instance-{len(apps)}", **settings)
        apps.append(app)
        return app

    yield begin
    for app in apps:
        app.kill()
