"""The state of share partitions frame by frame against the original: what our own tests expect is what it does."""

from __future__ import annotations

import pytest

from ottla.wire.types import DescribeConfigsRequest, FindCoordinatorRequest
from tests.component.broker.raw_client import RawClient
from tests.interop.rerun import shared_tests
from tests.interop.share_state.nodes import STATE_TOPIC, text_of

MODULE = "test_share_state_apis"
SHARED = shared_tests(MODULE)
for name in ("nothing_to_do", "versions", "epochs_fence_over_the_network"):
    globals()[f"test_{name}"] = SHARED[f"{MODULE}_{name}"]


@pytest.fixture(autouse=True)
def coordinator(client: RawClient) -> None:
    """Apache Kafka makes the topic when somebody looks for a coordinator."""
    for _ in range(1000):
        (found,) = client.ask(
            FindCoordinatorRequest(key_type=2, coordinator_keys=(key("g", bytes(16)),)), 6
        ).coordinators
        if found.error_code == 0:
            return
    raise AssertionError("no coordinator")


def key(group: str, topic_id: bytes) -> str:
    return f"{group}:{text_of(topic_id)}:0"


@pytest.mark.parametrize(
    ("bad", "version", "code"),
    [
        ("g", 6, 42),
        ("g:0", 6, 42),
        ("g:short:0", 6, 42),
        (":AAAAAAAAAAAAAAAAAAAAAA:0", 6, 42),
        (key("g", bytes(16)), 5, 42),
    ],
)
def test_keys_that_are_none(client: RawClient, bad: str, version: int, code: int) -> None:
    (found,) = client.ask(FindCoordinatorRequest(key_type=2, coordinator_keys=(bad,)), version).coordinators
    assert found.error_code == code


def test_groups_with_colons(client: RawClient) -> None:
    (found,) = client.ask(FindCoordinatorRequest(key_type=2, coordinator_keys=(key("a:b", bytes(16)),)), 6).coordinators
    assert found.error_code == 0


def test_the_topic_is_made_alike(client: RawClient) -> None:
    asked = DescribeConfigsRequest.DescribeConfigsResource(2, STATE_TOPIC)
    (answer,) = client.ask(DescribeConfigsRequest((asked,)), 4).results
    assert {each.name: each.value for each in answer.configs if each.config_source == 1} == {
        "cleanup.policy": "delete",
        "compression.type": "producer",
        "min.insync.replicas": "1",
        "retention.ms": "-1",
        "segment.bytes": "104857600",
    }
