"""Share groups: each suite runs against `ottla serve` and, to prove its expectations, against Apache Kafka.

`OTTLA_INTEROP_BROKERS=apache` (or `ottla`) runs against one of them alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.interop.node.brokers import booting, running
from tests.interop.share.brokers import Cluster, Node, new_node
from tests.interop.share.workers import Workers


@pytest.fixture(scope="session")
def broker(kind: str, apache_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """One node for all suites of a kind. A test that stops it takes `boot`."""
    yield from running(new_node(kind, tmp_path_factory.mktemp(kind)))


@pytest.fixture(scope="session")
def workers(broker: Node) -> Iterator[Workers]:
    workers = Workers(broker.bootstrap_servers)
    yield workers
    workers.close()


@pytest.fixture(scope="session")
def cluster(broker: Node) -> Cluster:
    return Cluster(broker.bootstrap_servers)


@pytest.fixture
def boot(kind: str, apache_jars: Path, tmp_path: Path) -> Iterator[Callable[..., Node]]:
    """Starts a node of its own for one test. What still runs at its end is killed."""
    yield from booting(lambda number, **settings: new_node(kind, tmp_path / f"node-{number}", **settings))
