"""Groups: each suite runs against `ottla serve` and, to prove its expectations, against Apache Kafka.

`OTTLA_INTEROP_BROKERS=apache` (or `ottla`) runs against one of them alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.interop.apache import ApacheKafka
from tests.interop.groups.brokers import Node, new_node
from tests.interop.node.brokers import APACHE, booting, running


@pytest.fixture(scope="session")
def broker(kind: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """One node for all suites of a kind. A test that stops it takes `boot`."""
    if kind == APACHE:
        kafka: ApacheKafka = request.getfixturevalue("apache_kafka")
        yield kafka
        return
    yield from running(new_node(kind, tmp_path_factory.mktemp("ottla")))


@pytest.fixture(scope="session")
def bootstrap_servers(broker: Node) -> str:
    return broker.bootstrap_servers


@pytest.fixture
def boot(kind: str, apache_jars: Path, tmp_path: Path) -> Iterator[Callable[..., Node]]:
    """Starts a node of its own for one test: `boot(group_max_size=2)`. What still runs at its end is killed."""
    yield from booting(lambda number, **settings: new_node(kind, tmp_path / f"node-{number}", **settings))
