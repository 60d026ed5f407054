"""Administration: each suite runs against `ottla serve` and, to prove its expectations, against Apache Kafka.

`OTTLA_INTEROP_BROKERS=apache` (or `ottla`) runs against one of them alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.component.broker.raw_client import RawClient
from tests.interop.apache import ApacheKafka
from tests.interop.node.brokers import APACHE, Node, booting, node_of, running


@pytest.fixture(scope="session")
def broker(kind: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """One node for all suites of a kind. A test that stops it, or bends it for others, takes `boot`."""
    if kind == APACHE:
        kafka: ApacheKafka = request.getfixturevalue("apache_kafka")
        yield kafka
        return
    yield from running(node_of(kind, tmp_path_factory.mktemp("ottla")))


@pytest.fixture
def boot(kind: str, apache_jars: Path, tmp_path: Path) -> Iterator[Callable[..., Node]]:
    """Starts a node of its own for one test. What still runs at its end is killed."""
    yield from booting(lambda number, **settings: node_of(kind, tmp_path / f"node-{number}", **settings))


@pytest.fixture
def client(broker: Node) -> Iterator[RawClient]:
    client = RawClient.at(broker.bootstrap_servers)
    yield client
    client.close_all()


@pytest.fixture
def controller_client(broker: Node) -> Iterator[RawClient]:
    """Connections to the controllers' listener."""
    client = RawClient.at(broker.controller_servers)
    yield client
    client.close_all()
