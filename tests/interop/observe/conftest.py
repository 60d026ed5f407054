"""Observers: each suite runs against `ottla serve` and against Apache Kafka, one with groups of all kinds.

`OTTLA_INTEROP_BROKERS=apache` (or `ottla`) runs against one of them alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.interop.apache import ONE_NODE
from tests.interop.node.brokers import Node, booting, node_of, running
from tests.interop.observe.watching import Watched
from tests.interop.spark import group_history as history
from tests.interop.spark.topics import Topics

SETTINGS = {key: value for key, value in ONE_NODE.items() if not key.startswith("broker.")} | history.LONG_SESSIONS


def new_node(kind: str, directory: Path, **settings: object) -> Node:
    return node_of(kind, directory, **{**SETTINGS, **settings})


@pytest.fixture(scope="session")
def broker(kind: str, apache_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """One node for all suites of a kind, with groups of all kinds and transactions in all states."""
    for node in running(new_node(kind, tmp_path_factory.mktemp(kind))):
        topics = Topics(node.bootstrap_servers)
        history.make_history(topics)
        yield node
        history.let_go()
        topics.close()


@pytest.fixture(scope="session")
def watched(broker: Node) -> Watched:
    """What an observer has seen of it."""
    return Watched.of(broker.bootstrap_servers, for_s=3)


@pytest.fixture
def boot(kind: str, apache_jars: Path, tmp_path: Path) -> Iterator[Callable[..., Node]]:
    """Starts a node of its own for one test. What still runs at its end is killed."""
    yield from booting(lambda number, **settings: new_node(kind, tmp_path / f"node-{number}", **settings))
