"""Which way groups may change: group.consumer.migration.policy."""

from __future__ import annotations

from ottla.core.coordinator.contract import World

__all__ = ["may_downgrade", "may_mix", "may_upgrade"]


def may_upgrade(world: World) -> bool:
    return _policy(world) in ("upgrade", "bidirectional")


def may_downgrade(world: World) -> bool:
    return _policy(world) in ("downgrade", "bidirectional")


def may_mix(world: World) -> bool:
    """Whether members of both protocols may be in one group."""
    return may_upgrade(world) or may_downgrade(world)


def _policy(world: World) -> str:
    return str(world.settings["group.consumer.migration.policy"]).lower()
