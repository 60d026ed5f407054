"""The creation of internal topics: how many replicas they get, and until when requests wait for it."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.broker.coordinators.internal_topics import GROUPS, InternalTopics
from ottla.wire.errors import ErrorCode
from tests.unit.core.metadata.cluster import Cluster


class Channel:
    """The way to a cluster's controller. Requests are sent later if they are held."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.are_held = False
        self.held: list[Callable[[], None]] = []

    def send(self, request: Any, version: int, done: Callable[[Any], None], *, search_ms: int) -> None:
        self.held.append(lambda: done(self._cluster.submit(request, api_version=version)))
        if not self.are_held:
            self.held.pop()()


class Publisher:
    """Asks conditions when it is told to."""

    def __init__(self) -> None:
        self.conditions: dict[Callable[[], None], Callable[[], bool]] = {}

    def when(self, is_there: Callable[[], bool], then: Callable[[], None]) -> None:
        self.conditions[then] = is_there

    def forget(self, then: Callable[[], None]) -> None:
        del self.conditions[then]

    def publish(self) -> None:
        for then in [then for then, is_there in self.conditions.items() if is_there()]:
            then()


class Asking:
    """A node whose quorum has these voters, and what those are told who need the topic of groups."""

    def __init__(self, cluster: Cluster, *voters: int, wanted: int = 3) -> None:
        settings = {GROUPS.partitions: 2, GROUPS.replication: wanted, "offsets.topic.segment.bytes": 1 << 20}
        control = SimpleNamespace(voters=SimpleNamespace(ids=voters))
        self.channel, self.publisher = Channel(cluster), Publisher()
        node: Any = SimpleNamespace(
            image=cluster.image,
            settings=settings,
            publisher=self.publisher,
            controller_channel=self.channel,
            raft=SimpleNamespace(quorum=SimpleNamespace(control=control)),
        )
        self.topics = InternalTopics(node)
        self.answers: list[ErrorCode] = []

    def ensure(self) -> None:
        self.topics.ensure(GROUPS, self.answers.append)


def ensure(cluster: Cluster, *voters: int, wanted: int = 3) -> ErrorCode:
    asking = Asking(cluster, *voters, wanted=wanted)
    asking.ensure()
    assert not asking.publisher.conditions
    (answer,) = asking.answers
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


def test_requests_go_on_when_the_node_knows_the_topic_whoever_created_it() -> None:
    cluster = Cluster().with_brokers(1)
    asking = Asking(cluster, 1)
    asking.channel.are_held = True
    asking.ensure()
    asking.ensure()
    (send_late,) = asking.channel.held
    asking.publisher.publish()
    assert asking.answers == []
    assert ensure(cluster, 1) == ErrorCode.NONE
    asking.publisher.publish()
    assert asking.answers == [ErrorCode.NONE] * 2
    send_late()
    assert asking.answers == [ErrorCode.NONE] * 2
    assert not asking.publisher.conditions
