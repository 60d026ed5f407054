"""Each suite here runs against a fresh `ottla serve` and, to prove its expectations, against Apache Kafka.

`OTTLA_INTEROP_BROKERS=apache` (or `ottla`) runs against one of them alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.interop.node.brokers import booting, wanted
from tests.interop.share_state.nodes import Node, desk_of, new_node
from tests.unit.broker.desk import Desk


@pytest.fixture(scope="session", params=wanted())
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="session")
def broker(kind: str, apache_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with new_node(kind, tmp_path_factory.mktemp(kind)) as node:
        yield node
        assert "Traceback" not in node.log, node.log


@pytest.fixture
def boot(apache_jars: Path, tmp_path: Path) -> Iterator[Callable[..., Node]]:
    """Starts a node of its own for one test: `boot(kind=..., **settings)`. What still runs at its end is killed."""
    yield from booting(lambda number, kind, **settings: new_node(str(kind), tmp_path / f"{kind}-{number}", **settings))


@pytest.fixture
def desk(broker: Node) -> Iterator[Desk]:
    desk = desk_of(broker)
    yield desk
    desk.close()
