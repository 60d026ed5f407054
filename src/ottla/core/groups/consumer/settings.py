"""The settings of a consumer group, read together, and again only when some setting has changed.

A group's own value that has come to lie outside the broker's bounds counts as the nearest one inside.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from ottla.core.coordinator.contract import World
from ottla.core.groups.assignors import ASSIGNORS, JAVA_CLASSES
from ottla.core.groups.modern.group import bounded_setting
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject

__all__ = ["ConsumerGroupSettings", "check_served", "read_settings"]

PROTOCOL: Final = "consumer"
GROUP_VERSION: Final = 1
"""The level of the feature group.version that has consumer groups."""


class ConsumerGroupSettings(NamedTuple):
    version: int
    """Of all settings, when these were read."""
    max_size: int
    session_timeout_ms: int
    heartbeat_interval_ms: int
    assignment_interval_ms: int
    regex_refresh_interval_ms: int
    assignors: tuple[str, ...]
    """Those that members may name, the default first."""
    own_assignors: Mapping[str, str]
    """Those among them that are not Kafka's: name -> dotted name of the class."""


def read_settings(world: World, group_id: str) -> ConsumerGroupSettings:
    def bounded(name: str) -> int:
        return bounded_setting(world, group_id, PROTOCOL, name)

    return ConsumerGroupSettings(
        version=world.settings_version,
        max_size=world.settings["group.consumer.max.size"],
        session_timeout_ms=bounded("session.timeout.ms"),
        heartbeat_interval_ms=bounded("heartbeat.interval.ms"),
        assignment_interval_ms=bounded("assignment.interval.ms"),
        regex_refresh_interval_ms=world.settings["group.consumer.regex.refresh.interval.ms"],
        assignors=_assignors(world),
        own_assignors={name: dotted for dotted, name in world.own_assignors.items()},
    )


def _assignors(world: World) -> tuple[str, ...]:
    """What is neither Kafka's nor loaded cannot run here and is left out."""
    known = {**{name: name for name in ASSIGNORS}, **JAVA_CLASSES, **world.own_assignors}
    names = [known[name] for name in world.settings["group.consumer.assignors"] if name in known]
    return tuple(names) or ("uniform",)


def check_served(world: World) -> None:
    is_switched_on = PROTOCOL in world.settings["group.coordinator.rebalance.protocols"]
    if not is_switched_on or world.feature("group.version") < GROUP_VERSION:
        raise Reject(
            ErrorCode.UNSUPPORTED_VERSION,
            "Consumer groups are disabled: see group.coordinator.rebalance.protocols and the feature group.version",
        )
