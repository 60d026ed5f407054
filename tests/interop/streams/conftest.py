"""Each case runs on ottla and on Apache Kafka, with the same settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.interop.apache import ONE_NODE, ApacheKafka
from tests.interop.serving import OttlaServe
from tests.interop.streams.apps import App

Broker = ApacheKafka | OttlaServe
MakeApp = Callable[..., App]

SETTINGS = {key: value for key, value in ONE_NODE.items() if not key.startswith(("broker.", "share."))} | {
    "group.streams.min.session.timeout.ms": "6000",
    "group.streams.session.timeout.ms": "6000",
}
_serial = count(1)


def made(kind: str, directory: Path, **settings: object) -> Broker:
    return (OttlaServe if kind == "ottla" else ApacheKafka)(directory, **(SETTINGS | settings))  # type: ignore[arg-type]


@pytest.fixture(scope="session", params=["ottla", "apache"])
def broker(
    request: pytest.FixtureRequest, apache_jars: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Broker]:
    with made(request.param, tmp_path_factory.mktemp(request.param)) as booted:
        yield booted


@pytest.fixture
def servers(broker: Broker) -> str:
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
