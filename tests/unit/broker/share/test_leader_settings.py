"""The settings of groups that leaders of share partitions go by."""

from __future__ import annotations

from typing import Any, cast

import pytest

from ottla.broker.share.leader import ShareLeader
from simulation.environment import Environment

GROUP = "g"


class SettingsEdge:
    """The part of a leader's edge that knows settings."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self.group_setting = environment.group_setting

    @property
    def settings_version(self) -> int:
        return self._environment.world.settings_version

    def setting(self, name: str) -> Any:
        return self._environment.settings[name]

    def share_version(self) -> int:
        return 1


@pytest.mark.parametrize(
    ("name", "own", "bound", "limit", "field"),
    [
        ("record.lock.duration.ms", 60_000, "max", 45_000, "lock_duration_ms"),
        ("delivery.count.limit", 3, "min", 4, "delivery_count_limit"),
        ("partition.max.record.locks", 4_000, "max", 3_000, "max_record_locks"),
    ],
)
def test_a_value_outside_the_brokers_bounds_counts_as_the_nearest_inside(
    name: str, own: int, bound: str, limit: int, field: str
) -> None:
    environment = Environment()
    leader = ShareLeader(cast(Any, SettingsEdge(environment)))
    environment.set_for_group(GROUP, f"share.{name}", str(own))
    assert getattr(leader.settings(GROUP), field) == own
    environment.settings.set(f"group.share.{bound}.{name}", str(limit))
    environment.world.settings_version += 1
    assert getattr(leader.settings(GROUP), field) == limit
