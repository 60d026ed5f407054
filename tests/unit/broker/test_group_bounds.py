"""Settings about groups that contradict each other."""

from __future__ import annotations

import pytest

from ottla.broker.config.node_config import NodeConfig
from ottla.core.metadata.config_defs import ConfigError

SHARE = {
    "session.timeout.ms": (45_000, 60_000),
    "heartbeat.interval.ms": (5_000, 15_000),
    "record.lock.duration.ms": (15_000, 60_000),
    "delivery.count.limit": (2, 10),
    "partition.max.record.locks": (100, 4_000),
    "assignment.interval.ms": (0, 15_000),
}


@pytest.mark.parametrize("name", SHARE)
def test_a_setting_lies_between_its_bounds(name: str):
    low, high = SHARE[name]
    for value in (low, high):
        NodeConfig({f"group.share.{name}": str(value)})
    if low > 2:
        with pytest.raises(ConfigError):
            NodeConfig({f"group.share.{name}": str(low - 1)})
    with pytest.raises(ConfigError):
        NodeConfig({f"group.share.{name}": str(high + 1)})


@pytest.mark.parametrize("family", ["consumer", "share", "streams"])
def test_a_session_outlasts_heartbeats(family: str):
    bounds = {f"group.{family}.min.session.timeout.ms": "1", f"group.{family}.max.heartbeat.interval.ms": "60000"}
    NodeConfig(bounds | {f"group.{family}.session.timeout.ms": "5001"})
    with pytest.raises(ConfigError, match=r"session\.timeout\.ms \(5000\) must be more than"):
        NodeConfig(bounds | {f"group.{family}.session.timeout.ms": "5000"})


def test_there_is_a_session_for_each_member():
    NodeConfig({"group.share.max.size": "300", "group.share.max.share.sessions": "300"})
    with pytest.raises(ConfigError, match="must not be less"):
        NodeConfig({"group.share.max.size": "300", "group.share.max.share.sessions": "299"})


@pytest.mark.parametrize("value", ["simple", "org.apache.kafka.coordinator.group.assignor.SimpleAssignor"])
def test_the_assignor_of_share_groups(value: str):
    NodeConfig({"group.share.assignors": value})


@pytest.mark.parametrize("value", ["simple,other", "other"])
def test_another_assignor_for_share_groups(value: str):
    with pytest.raises(ConfigError, match="the only one supported"):
        NodeConfig({"group.share.assignors": value})
