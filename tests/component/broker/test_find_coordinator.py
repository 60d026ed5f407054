"""FindCoordinator in every version: one key or many, three kinds, and who may ask."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.wire.access import Operation, ResourceType
from ottla.wire.errors import ErrorCode
from ottla.wire.types import FindCoordinatorRequest
from tests.component.broker.raw_client import RawClient, RunningNode, running_node

SHARE_KEY = "g:AAAAAAAAAAAAAAAAAAAAAA:0"


def deny_some(request: Any, operation: Operation, resource_type: ResourceType, name: str) -> bool:
    if resource_type is ResourceType.CLUSTER:
        return request.client_id != "stranger"
    return name != "secret"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningNode]:
    with running_node(tmp_path_factory.mktemp("node"), authorizer=deny_some) as running:
        yield running


@pytest.fixture(scope="module")
def client(running: RunningNode) -> RawClient:
    return running.client


@pytest.mark.parametrize("version", range(4))
@pytest.mark.parametrize("key_type", [0, 1])
def test_one_key(running: RunningNode, client: RawClient, version: int, key_type: int) -> None:
    if version == 0 and key_type:
        pytest.skip("version 0 knows groups only")
    answer = client.ask(FindCoordinatorRequest(key="g", key_type=key_type), version)
    port = running.node.advertised["PLAINTEXT"].port
    assert (answer.error_code, answer.node_id, answer.host, answer.port) == (0, 1, "127.0.0.1", port)
    assert answer.error_message == ("NONE" if version else "")


@pytest.mark.parametrize("version", range(1, 4))
def test_a_failure_names_no_node(client: RawClient, version: int) -> None:
    answer = client.ask(FindCoordinatorRequest(key="g", key_type=2), version)
    assert (answer.error_code, answer.node_id, answer.host, answer.port) == (42, -1, "", -1)
    assert answer.error_message


@pytest.mark.parametrize("version", [4, 5, 6])
def test_many_keys_each_on_its_own(running: RunningNode, client: RawClient, version: int) -> None:
    answer = client.ask(FindCoordinatorRequest(coordinator_keys=("a", "secret", "b", "a")), version)
    port = running.node.advertised["PLAINTEXT"].port
    found = [(one.key, one.error_code, one.node_id, one.host, one.port) for one in answer.coordinators]
    fine = (0, 1, "127.0.0.1", port)
    denied = (ErrorCode.GROUP_AUTHORIZATION_FAILED, -1, "", -1)
    assert found == [("a", *fine), ("secret", *denied), ("b", *fine), ("a", *fine)]
    assert {one.error_message for one in answer.coordinators} == {""}


def test_no_key_at_all(client: RawClient) -> None:
    assert client.ask(FindCoordinatorRequest(), 6).coordinators == ()


def test_a_transactional_id_that_is_denied(client: RawClient) -> None:
    (one,) = client.ask(FindCoordinatorRequest(key_type=1, coordinator_keys=("secret",)), 6).coordinators
    assert one.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


@pytest.mark.parametrize(("version", "code"), [(4, 42), (5, 42), (6, 0)])
def test_share_partitions_are_known_from_6_on(client: RawClient, version: int, code: int) -> None:
    (one,) = client.ask(FindCoordinatorRequest(key_type=2, coordinator_keys=(SHARE_KEY,)), version).coordinators
    assert one.error_code == code


@pytest.mark.parametrize(
    "key", ["", "g", "g:0", ":AAAAAAAAAAAAAAAAAAAAAA:0", "g::0", "g:short:0", "g:AAAAAAAAAAAAAAAAAAAAAA:x"]
)
def test_share_keys_that_are_none(client: RawClient, key: str) -> None:
    (one,) = client.ask(FindCoordinatorRequest(key_type=2, coordinator_keys=(key,)), 6).coordinators
    assert one.error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("group", ["a:b", ":", "a\nb"])
def test_share_keys_are_read_from_their_end(client: RawClient, group: str) -> None:
    key = f"{group}:AAAAAAAAAAAAAAAAAAAAAA:12"
    (one,) = client.ask(FindCoordinatorRequest(key_type=2, coordinator_keys=(key,)), 6).coordinators
    assert (one.key, one.error_code) == (key, 0)


def test_share_partitions_are_for_brokers(client: RawClient) -> None:
    connection = client.connect("stranger")
    (one,) = connection.ask(FindCoordinatorRequest(key_type=2, coordinator_keys=(SHARE_KEY,)), 6).coordinators
    assert one.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_an_unknown_kind(client: RawClient) -> None:
    found = client.ask(FindCoordinatorRequest(key_type=9, coordinator_keys=("g", "")), 6).coordinators
    assert [(one.key, one.error_code, one.node_id, one.host, one.port) for one in found] == [
        ("g", ErrorCode.INVALID_REQUEST, -1, "", -1),
        ("", ErrorCode.INVALID_REQUEST, -1, "", -1),
    ]
    assert all("type 9" in one.error_message for one in found)
    one = client.ask(FindCoordinatorRequest(key_type=9, key="g"), 3)
    assert (one.error_code, one.node_id) == (ErrorCode.INVALID_REQUEST, -1)
    assert "type 9" in one.error_message


def test_who_may_not_ask_creates_nothing(tmp_path: Path) -> None:
    with running_node(tmp_path, authorizer=deny_some) as running:
        running.client.ask(FindCoordinatorRequest(coordinator_keys=("secret",)), 6)
        assert running.node.image.topics_by_name == {}


def test_a_topic_that_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running_node(tmp_path) as running:
        monkeypatch.setattr(
            running.node.internal_topics, "ensure", lambda topic, done: done(ErrorCode.INVALID_REPLICATION_FACTOR)
        )
        (one,) = running.client.ask(FindCoordinatorRequest(coordinator_keys=("g",)), 6).coordinators
        assert one.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
