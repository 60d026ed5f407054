"""One node for the scenarios of a module; each scenario makes topics of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.component.broker.raw_client import RawClient, RunningNode, running_node


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningNode]:
    with running_node(tmp_path_factory.mktemp("node")) as running:
        yield running


@pytest.fixture(scope="module")
def client(running: RunningNode) -> RawClient:
    return running.client


@pytest.fixture
def controller_client(running: RunningNode) -> Iterator[RawClient]:
    """A client on the listener of controllers."""
    advertised = running.node.advertised["CONTROLLER"]
    client = RawClient(advertised.host, advertised.port)
    yield client
    client.close_all()
