"""The settings of a share group, read together, and again only when some setting has changed.

A group's own value that has come to lie outside the broker's bounds counts as the nearest one inside.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ottla.core.coordinator.contract import World
from ottla.core.groups.modern.group import bounded_setting
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject

__all__ = ["ShareGroupSettings", "check_served", "is_served", "read_settings"]

SHARE_VERSION: Final = 1
"""The level of the feature share.version that has share groups."""


class ShareGroupSettings(NamedTuple):
    version: int
    """Of all settings, when these were read."""
    max_size: int
    session_timeout_ms: int
    heartbeat_interval_ms: int
    assignment_interval_ms: int
    initialize_retry_interval_ms: int


def read_settings(world: World, group_id: str) -> ShareGroupSettings:
    def bounded(name: str) -> int:
        return bounded_setting(world, group_id, "share", name)

    return ShareGroupSettings(
        version=world.settings_version,
        max_size=world.settings["group.share.max.size"],
        session_timeout_ms=bounded("session.timeout.ms"),
        heartbeat_interval_ms=bounded("heartbeat.interval.ms"),
        assignment_interval_ms=bounded("assignment.interval.ms"),
        initialize_retry_interval_ms=max(
            world.settings["group.share.initialize.retry.interval.ms"], world.settings["offsets.commit.timeout.ms"]
        ),
    )


def is_served(world: World) -> bool:
    return world.feature("share.version") >= SHARE_VERSION


def check_served(world: World) -> None:
    if not is_served(world):
        raise Reject(ErrorCode.UNSUPPORTED_VERSION)
