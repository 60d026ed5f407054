"""Answers with all topics: put together from what is remembered, and equal to what would be encoded anew."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.broker.controller import encoded_topics
from ottla.wire.types import CreatePartitionsRequest, DeleteTopicsRequest, MetadataRequest, MetadataResponse
from tests.component.broker.raw_client import RunningNode, running_node

VERSIONS = range(14)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningNode]:
    with running_node(tmp_path_factory.mktemp("topics")) as node:
        yield node


def all_topics(running: RunningNode, version: int) -> MetadataResponse:
    answer: MetadataResponse = running.client.ask(MetadataRequest(None if version else ()), version)
    return answer


def named_topics(running: RunningNode, version: int) -> MetadataResponse:
    """The same topics in the same order, asked for by name: those answers are encoded as a whole."""
    kind = MetadataRequest.MetadataRequestTopic
    names = tuple(kind(name=name) for name in running.node.image.topics_by_name)
    answer: MetadataResponse = running.client.ask(MetadataRequest(names), version)
    return answer


@pytest.mark.parametrize("version", VERSIONS)
def test_all_is_as_if_all_were_named(running: RunningNode, version: int) -> None:
    running.client.topic(partitions=3)
    for _ in range(2):  # built, then remembered
        assert all_topics(running, version) == named_topics(running, version)


def test_what_changes_is_told_anew(running: RunningNode) -> None:
    topic, gone = running.client.topic(), running.client.topic()
    assert {topic.name, gone.name} <= {each.name for each in all_topics(running, 12).topics}
    grown = CreatePartitionsRequest.CreatePartitionsTopic(topic.name, 4, None)
    running.client.ask(CreatePartitionsRequest((grown,), 1_000), 3)
    running.client.ask(
        DeleteTopicsRequest(topics=(DeleteTopicsRequest.DeleteTopicState(gone.name),), timeout_ms=1_000), 6
    )
    new = running.client.topic()
    found = {each.name: each for each in all_topics(running, 12).topics}
    assert len(found[topic.name].partitions) == 4
    assert gone.name not in found
    assert new.name in found


def test_much_of_it_is_done_in_slices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoded_topics, "AT_ONCE_SECONDS", 0)
    monkeypatch.setattr(encoded_topics, "_TOPICS_PER_STEP", 2)
    with running_node(tmp_path) as running:
        for _ in range(7):
            running.client.topic()
        assert all_topics(running, 12) == named_topics(running, 12)


def test_versions_beyond_the_bound_make_it_forget(running: RunningNode) -> None:
    for version in VERSIONS:
        all_topics(running, version)
        assert len(running.node.encoded_topics._forms) <= encoded_topics.FORMS_MAX
