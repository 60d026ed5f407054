"""How many replicas internal topics get."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ottla.broker.coordinators.internal_topics import GROUPS, InternalTopics
from ottla.wire.errors import ErrorCode
from tests.unit.core.metadata.cluster import Cluster


def ensure(cluster: Cluster, *voters: int, wanted: int = 3) -> ErrorCode:
    """Asks for the topic of groups on a node whose quorum has these voters."""

    class Channel:
        def send(self, request: Any, version: int, done: Any) -> None:
            done(cluster.submit(request, api_version=version))

    settings = {GROUPS.partitions: 2, GROUPS.replication: wanted, "offsets.topic.segment.bytes": 1 << 20}
    control = SimpleNamespace(voters=SimpleNamespace(ids=voters))
    node: Any = SimpleNamespace(
        image=cluster.image,
        settings=settings,
        controller_channel=Channel(),
        raft=SimpleNamespace(quorum=SimpleNamespace(control=control)),
    )
    answers: list[ErrorCode] = []
    InternalTopics(node).ensure(GROUPS, answers.append)
    (answer,) = answers
    return answer


def replicas(cluster: Cluster) -> set[int]:
    return {len(each.replicas) for each in cluster.image.topics_by_name[GROUPS.name].partitions.values()}


@pytest.fixture(autouse=True)
def any_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rules of these tests know few settings of topics."""
    monkeypatch.setattr("tests.unit.core.metadata.simple_rules.SimpleRules.check", lambda *_: None)


def test_a_node_that_is_alone_holds_the_only_replica() -> None:
    cluster = Cluster().with_brokers(1)
    assert ensure(cluster, 1) == ErrorCode.NONE
    assert replicas(cluster) == {1}


def test_a_client_that_is_faster_than_the_other_nodes_has_to_wait_for_them() -> None:
    cluster = Cluster().with_brokers(1)
    assert ensure(cluster, 1, 2, 3) == ErrorCode.INVALID_REPLICATION_FACTOR
    assert GROUPS.name not in cluster.image.topics_by_name
    cluster.with_brokers(2)
    assert ensure(cluster, 1, 2, 3) == ErrorCode.INVALID_REPLICATION_FACTOR
    cluster.register(3)
    assert ensure(cluster, 1, 2, 3) == ErrorCode.NONE
    assert replicas(cluster) == {3}


def test_no_more_replicas_than_the_setting_says() -> None:
    cluster = Cluster().with_brokers(1, 2, 3, 4, 5)
    assert ensure(cluster, 1, 2, 3) == ErrorCode.NONE
    assert replicas(cluster) == {3}


def test_brokers_that_are_no_voters_count() -> None:
    cluster = Cluster().with_brokers(1, 7)
    assert ensure(cluster, 1) == ErrorCode.NONE
    assert replicas(cluster) == {2}
