"""ottla and Apache Kafka as the broker; local Spark, and for some tests a cluster and Spark Connect.

`OTTLA_INTEROP_BROKERS=apache` (or `ottla`) runs against one of them alone, `OTTLA_INTEROP_SPARK=local` (or
`standalone`, `connect`) in one surrounding.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.interop.apache import ONE_NODE
from tests.interop.node.brokers import Node, booting, node_of, running, wanted
from tests.interop.spark.queries import Queries
from tests.interop.spark.sessions import CONNECT, LOCAL, STANDALONE, Sessions
from tests.interop.spark.topics import Topics

Broker = Node
SETTINGS = {key: value for key, value in ONE_NODE.items() if not key.startswith(("broker.", "share."))} | {
    # A member that was killed keeps its partitions until its session is over.
    "group.share.session.timeout.ms": "5000",
    "group.share.min.session.timeout.ms": "5000",
    "log.cleaner.backoff.ms": "200",
    "log.initial.task.delay.ms": "200",
    "log.segment.delete.delay.ms": "100",
}
HERE = Path(__file__).parent
_KINDS = wanted()
SURROUNDINGS = os.environ.get("OTTLA_INTEROP_SPARK", f"{LOCAL},{STANDALONE},{CONNECT}").split(",")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Bring these to the front, for they take longest. For each broker, all tests in this process come first, then
    those on a cluster, then those of Spark Connect: to go from one surrounding to another takes longer than a test."""
    items.sort(key=lambda item: _order(item) if HERE in item.path.parents else (len(_KINDS) + 1, 0))


def _order(item: pytest.Item) -> tuple[int, int]:
    given = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    kind = _KINDS.index(given["kind"]) if "kind" in given else len(_KINDS)
    return kind, [LOCAL, STANDALONE, CONNECT].index(given.get("any_spark", LOCAL))


def new_broker(kind: str, directory: Path, **settings: object) -> Broker:
    return node_of(kind, directory, **{**SETTINGS, **settings})


@pytest.fixture(scope="session")
def broker(kind: str, apache_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """One node for all tests of a kind. A test that stops it takes `boot`."""
    yield from running(new_broker(kind, tmp_path_factory.mktemp(kind)))


@pytest.fixture
def boot(kind: str, apache_jars: Path, tmp_path: Path) -> Iterator[Callable[..., Broker]]:
    """Starts a node of its own for one test. What still runs at its end is killed."""
    yield from booting(lambda number, **settings: new_broker(kind, tmp_path / f"node-{number}", **settings))


@pytest.fixture(scope="session")
def topics(broker: Broker) -> Iterator[Topics]:
    made = Topics(broker.bootstrap_servers)
    yield made
    made.close()


@pytest.fixture(scope="session")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sessions]:
    made = Sessions(tmp_path_factory.mktemp("spark"))
    yield made
    made.end()


@pytest.fixture
def spark(sessions: Sessions) -> Any:
    """Spark in this process."""
    return sessions.get(LOCAL)


@pytest.fixture(params=SURROUNDINGS)
def any_spark(request: pytest.FixtureRequest, sessions: Sessions) -> Any:
    """Spark in each of its surroundings."""
    return sessions.get(request.param)


@pytest.fixture
def queries(spark: Any, broker: Broker, tmp_path: Path) -> Queries:
    return Queries(spark, broker.bootstrap_servers, tmp_path)
