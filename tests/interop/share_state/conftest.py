"""Each suite here runs against a fresh `ottla serve` and, to prove its expectations, against Apache Kafka.

`OTTLA_INTEROP_BROKERS=apache` (or `ottla`) runs against one of them alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.component.broker.raw_client import RawClient
from tests.interop.node.brokers import booting, running
from tests.interop.share_state.nodes import Node, new_node


@pytest.fixture(scope="session")
def broker(kind: str, apache_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    yield from running(new_node(kind, tmp_path_factory.mktemp(kind)))


@pytest.fixture
def boot(apache_jars: Path, tmp_path: Path) -> Iterator[Callable[..., Node]]:
    """Starts a node of its own for one test: `boot(kind=..., **settings)`. What still runs at its end is killed."""
    yield from booting(lambda number, kind, **settings: new_node(str(kind), tmp_path / f"{kind}-{number}", **settings))


@pytest.fixture
def client(broker: Node) -> Iterator[RawClient]:
    client = RawClient.at(broker.bootstrap_servers)
    yield client
    client.close()
