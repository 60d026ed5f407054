"""Each suite here runs against a fresh `ottla serve` and, to prove its expectations, against Apache Kafka."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.component.broker.raw_client import RawClient
from tests.interop.apache import ApacheKafka
from tests.interop.node.brokers import APACHE, Broker, wanted
from tests.interop.serving import OttlaServe


@pytest.fixture(scope="session", params=wanted())
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    if request.param == APACHE:
        kafka: ApacheKafka = request.getfixturevalue("apache_kafka")
        yield kafka
        return
    with OttlaServe(tmp_path_factory.mktemp("ottla")) as node:
        yield node
        node.stop()
        assert "Traceback" not in node.log, node.log


@pytest.fixture(scope="session")
def bootstrap_servers(broker: Broker) -> str:
    return broker.bootstrap_servers


@pytest.fixture
def client(broker: Broker) -> Iterator[RawClient]:
    client = RawClient.at(broker.bootstrap_servers)
    yield client
    client.close_all()
