"""Each suite here runs against a fresh `ottla serve` and, to prove its expectations, against Apache Kafka.

Both are formatted with either transaction version, which decides what Java's producers do.
`OTTLA_INTEROP_BROKERS=apache` (or `ottla`) runs against one of them alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.component.broker.raw_client import RawClient
from tests.interop.node.brokers import booting, running
from tests.interop.transactions.nodes import Node, new_node


@pytest.fixture(scope="session", params=[2, 1], ids=["tv2", "tv1"])
def txn_version(request: pytest.FixtureRequest) -> int:
    """The transaction version of the cluster."""
    return int(request.param)


@pytest.fixture(scope="session")
def broker(kind: str, txn_version: int, apache_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    yield from running(new_node(kind, tmp_path_factory.mktemp(f"{kind}-tv{txn_version}"), txn_version))


@pytest.fixture(scope="session")
def bootstrap_servers(broker: Node) -> str:
    return broker.bootstrap_servers


@pytest.fixture
def boot(kind: str, txn_version: int, apache_jars: Path, tmp_path: Path) -> Iterator[Callable[..., Node]]:
    """Starts a node of its own for one test. What still runs at its end is killed."""
    yield from booting(lambda number, **settings: new_node(kind, tmp_path / f"node-{number}", txn_version, **settings))


@pytest.fixture
def client(broker: Node) -> Iterator[RawClient]:
    client = RawClient.at(broker.bootstrap_servers)
    yield client
    client.close()
