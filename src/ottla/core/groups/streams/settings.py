"""The settings of a streams group, read together.

A heartbeat needs half a dozen of them, and they hardly ever change, so they are read again only when some setting has
changed. A group's own value that has come to lie outside the broker's bounds counts as the
nearest one inside.
"""

from __future__ import annotations

import logging
from typing import Any, Final, NamedTuple

from ottla.core.coordinator.contract import World
from ottla.core.groups.streams import highly_available, sticky
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject

__all__ = [
    "StreamsGroupSettings",
    "assignor_name",
    "check_served",
    "has_description_plugin",
    "is_served",
    "read_settings",
]

log = logging.getLogger(__name__)

_ASSIGNORS: Final = (sticky.NAME, highly_available.NAME)


class StreamsGroupSettings(NamedTuple):
    version: int
    """Of all settings, when these were read."""
    max_size: int
    session_timeout_ms: int
    heartbeat_interval_ms: int
    initial_rebalance_delay_ms: int
    assignment_interval_ms: int
    task_offset_interval_ms: int
    acceptable_recovery_lag: int
    num_standby_replicas: int
    num_warmup_replicas: int
    rack_tags: tuple[str, ...]
    assignor_name: str
    has_description_plugin: bool
    """And members may be asked for descriptions."""

    @property
    def assignment_configs(self) -> dict[str, str]:
        """What an assignment depends on, as the group's record keeps it."""
        configs = {"num.standby.replicas": str(self.num_standby_replicas)}
        if self.rack_tags:
            configs["rack.aware.assignment.tags"] = ",".join(self.rack_tags)
        return configs


def is_served(world: World) -> bool:
    """Whether this cluster and this broker serve streams groups."""
    return (
        world.feature("streams.version") >= 1 and "streams" in world.settings["group.coordinator.rebalance.protocols"]
    )


def check_served(world: World) -> None:
    if not is_served(world):
        raise Reject(ErrorCode.UNSUPPORTED_VERSION, "streams groups are disabled")


def assignor_name(world: World, group_id: str) -> str:
    """Which assignor computes the group's next target: its own choice, or the first of the broker's.

    While brokers of Kafka 4.3 are registered it is the one that they have.
    """
    if not world.serves_newest():
        return sticky.NAME
    offered = [name for name in world.settings["group.streams.assignors"] if name in _ASSIGNORS] or [sticky.NAME]
    default: str = offered[0]
    chosen: str | None = world.group_setting(group_id, "streams.assignor.name")
    if chosen is None or chosen in offered:
        return default if chosen is None else chosen
    log.warning("group %s requests the unknown assignor %s; using %s", group_id, chosen, default)
    return default


def has_description_plugin(world: World) -> bool:
    """Whether descriptions of topologies are kept (KIP-1331)."""
    return bool(world.settings["group.streams.topology.description.plugin.class"])


def read_settings(world: World, group_id: str) -> StreamsGroupSettings:
    def own(name: str) -> Any:  # noqa: ANN401
        return world.group_setting(group_id, f"streams.{name}")

    def bounded(name: str, low: str | None, high: str | None) -> int:
        value: int = own(name)
        if high is not None:
            value = min(value, world.settings[f"group.streams.{high}"])
        return value if low is None else max(value, world.settings[f"group.streams.{low}"])

    return StreamsGroupSettings(
        version=world.settings_version,
        max_size=world.settings["group.streams.max.size"],
        session_timeout_ms=bounded("session.timeout.ms", "min.session.timeout.ms", "max.session.timeout.ms"),
        heartbeat_interval_ms=bounded(
            "heartbeat.interval.ms", "min.heartbeat.interval.ms", "max.heartbeat.interval.ms"
        ),
        initial_rebalance_delay_ms=own("initial.rebalance.delay.ms"),
        assignment_interval_ms=bounded(
            "assignment.interval.ms", "min.assignment.interval.ms", "max.assignment.interval.ms"
        ),
        task_offset_interval_ms=bounded("task.offset.interval.ms", "min.task.offset.interval.ms", None),
        acceptable_recovery_lag=own("acceptable.recovery.lag"),
        num_standby_replicas=bounded("num.standby.replicas", None, "max.standby.replicas"),
        num_warmup_replicas=bounded("num.warmup.replicas", None, "max.warmup.replicas"),
        rack_tags=tuple(own("rack.aware.assignment.tags")),
        assignor_name=assignor_name(world, group_id),
        has_description_plugin=has_description_plugin(world) and world.serves_newest(),
    )
