"""Levels of features with the original's own tool; and share.version 2, on which the original refuses to start."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.component.broker.feature_requests import update
from tests.component.broker.raw_client import RawClient
from tests.interop import process
from tests.interop.apache import tool
from tests.interop.node.brokers import APACHE, OTTLA
from tests.interop.process import ProgramFailed
from tests.interop.share_state.nodes import Node, new_node

FEATURES = "org.apache.kafka.tools.FeatureCommand"


def features(node: Node, *arguments: str, check: bool = True) -> str:
    return tool(FEATURES, "--bootstrap-server", node.bootstrap_servers, *arguments, check=check)


def level(node: Node, name: str) -> str:
    described = features(node, "describe")
    return re.findall(rf"Feature: {re.escape(name)}\s.*FinalizedVersionLevel: (\S+)", described)[0]


def test_levels_go_down_and_up(broker: Node) -> None:
    features(broker, "downgrade", "--feature", "share.version=0")
    assert level(broker, "share.version") == "0"
    features(broker, "upgrade", "--feature", "share.version=1")
    assert level(broker, "share.version") == "1"
    refused = features(broker, "upgrade", "--feature", "share.version=2", check=False)
    assert "Could not upgrade" in refused
    assert level(broker, "share.version") == "1"


def test_apache_kafka_refuses_what_storage_check_says(apache_jars: Path, tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    ottla = new_node(OTTLA, tmp_path / "ottla", data_dir=data_dir, unstable_feature_versions_enable="true")
    with ottla:
        client = RawClient.at(ottla.bootstrap_servers)
        assert update(client, "share.version", 2).error_code == 0
        client.close()
        ottla.stop()
    said = process.run([sys.executable, "-m", "ottla", "storage", "check", str(data_dir)], check=False)
    assert "share.version is at 2; Apache Kafka 4.3.1 supports at most 1 and refuses to start" in said
    apache = new_node(APACHE, tmp_path / "apache", data_dir=data_dir)
    try:
        with pytest.raises(ProgramFailed):
            apache.start()
        assert "share.version" in apache.log
    finally:
        if apache.running:
            apache.kill()
