from collections.abc import Iterator

import pytest

from tests.unit.core.metadata.cluster import Cluster


@pytest.fixture
def empty_cluster() -> Iterator[Cluster]:
    """A cluster with its first records and no broker. The law is checked when the test is over."""
    cluster = Cluster()
    yield cluster
    cluster.check_law()


@pytest.fixture
def cluster(empty_cluster: Cluster) -> Cluster:
    """A cluster of one broker."""
    return empty_cluster.with_brokers(1)


@pytest.fixture
def three(empty_cluster: Cluster) -> Cluster:
    """A cluster of three brokers."""
    return empty_cluster.with_brokers(1, 2, 3)
