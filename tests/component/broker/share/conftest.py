"""One node with a clock that stands still for the scenarios of a module; each has topics and groups of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ottla.broker.loop.clock import ManualClock
from tests.component.broker.raw_client import RawClient, RunningNode, running_node


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningNode]:
    directory = tmp_path_factory.mktemp("node")
    with running_node(directory, ManualClock(), share_coordinator_state_topic_num_partitions=1) as running:
        yield running


@pytest.fixture(scope="module")
def client(running: RunningNode) -> RawClient:
    return running.client
