"""UpdateFeatures, and share.version 2, which must be asked for: Apache Kafka 4.3.1 does not know it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.broker.node import StartError
from ottla.cli import run
from ottla.wire.errors import ErrorCode
from ottla.wire.types import ApiVersionsRequest
from tests.component.broker.feature_requests import BROKER, GROUP, SAFE_DOWNGRADE, TOPIC, set_config, update
from tests.component.broker.raw_client import RawClient, running_node
from tests.component.broker.starting import try_to_start


def levels(client: RawClient) -> tuple[dict[str, tuple[int, int]], dict[str, int]]:
    """What is supported, and what is finalized."""
    answer = client.ask(ApiVersionsRequest("tests", "1"), 4)
    supported = {each.name: (each.min_version, each.max_version) for each in answer.supported_features}
    return supported, {each.name: each.max_version_level for each in answer.finalized_features}


def test_a_feature_goes_down_and_up(tmp_path: Path) -> None:
    with running_node(tmp_path) as running:
        client = running.client
        assert update(client, "share.version", 0).error_code == ErrorCode.INVALID_UPDATE_VERSION
        assert update(client, "share.version", 0, SAFE_DOWNGRADE).error_code == 0
        assert "share.version" not in levels(client)[1]
        answer = update(client, "share.version", 1, version=1)
        assert [(each.feature, each.error_code) for each in answer.results] == [("share.version", 0)]
        assert levels(client)[1]["share.version"] == 1


def test_nobody_gets_dead_letters_by_chance(tmp_path: Path) -> None:
    with running_node(tmp_path) as running:
        client = running.client
        answer = update(client, "share.version", 2)
        assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
        assert "supports versions 0-1" in answer.error_message
        supported, finalized = levels(client)
        assert (supported["share.version"], finalized["share.version"]) == ((0, 1), 1)
        for kind, name, key in (
            (GROUP, "g", "errors.deadletterqueue.topic.name"),
            (TOPIC, client.topic().name, "errors.deadletterqueue.group.enable"),
            (BROKER, "", "errors.deadletterqueue.auto.create.topics.enable"),
        ):
            assert set_config(client, kind, name, key, "true") == ErrorCode.INVALID_CONFIG


def test_whoever_asks_for_them_gets_dead_letters(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with running_node(tmp_path, unstable_feature_versions_enable="true") as running:
        client = running.client
        assert levels(client)[1]["share.version"] == 1
        assert update(client, "share.version", 2).error_code == 0
        supported, finalized = levels(client)
        assert (supported["share.version"], finalized["share.version"]) == ((0, 2), 2)
        for kind, name, key, value in (
            (GROUP, "g", "errors.deadletterqueue.topic.name", "dlq.g"),
            (GROUP, "g", "errors.deadletterqueue.copy.record.enable", "true"),
            (TOPIC, client.topic().name, "errors.deadletterqueue.group.enable", "true"),
            (BROKER, "", "errors.deadletterqueue.auto.create.topics.enable", "true"),
        ):
            assert set_config(client, kind, name, key, value) == 0
            assert set_config(client, kind, name, key, None) == 0
    with pytest.raises(StartError, match=r"share.version is at level 2; this node runs with 0 to 1, unless unstable"):
        try_to_start(tmp_path)
    assert run(["storage", "check", str(tmp_path)]) == 1
    assert "problem: share.version is at 2; Apache Kafka 4.3.1 supports at most 1" in capsys.readouterr().out
    with running_node(tmp_path, unstable_feature_versions_enable="true") as running:
        assert update(running.client, "share.version", 1, SAFE_DOWNGRADE).error_code == 0
    assert run(["storage", "check", str(tmp_path)]) == 0


def test_a_directory_can_be_formatted_for_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "server.properties"
    config.write_text(f"log.dirs={tmp_path}/data\nunstable.feature.versions.enable=true\n")
    assert run(["storage", "format", "--config", str(config), "--feature", "share.version=2"]) == 0
    with running_node(tmp_path / "data", unstable_feature_versions_enable="true") as running:
        assert levels(running.client)[1]["share.version"] == 2
