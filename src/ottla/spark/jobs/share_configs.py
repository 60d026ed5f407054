"""Delivery limits and lock durations of share groups: a group's own, else the brokers', else the default."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from ottla.health.configs import DEFAULTS

__all__ = ["ConfigValues", "share_limits"]

LIMIT: Final = "share.delivery.count.limit"
LOCK: Final = "share.record.lock.duration.ms"
BROKER: Final = "broker"
_EVERY_GROUP: Final = ""


class ConfigValues(NamedTuple):
    """Values of some configs of a resource, as known at a time."""

    cluster: str
    at_ms: int
    resource: str
    name: str
    values: dict[str, Any]


def share_limits(told: Iterable[ConfigValues]) -> dict[tuple[str, str], tuple[int, int]]:
    """The last delivery count limit and lock duration in milliseconds of each group with configs; the empty name stands
    for all other groups."""
    known: dict[tuple[str, str], dict[str, int]] = {}
    for each in sorted(told, key=lambda each: each.at_ms):
        is_broker = each.resource == BROKER
        group = _EVERY_GROUP if is_broker else each.name
        if not is_broker and each.resource != "group":
            continue
        for key in (LIMIT, LOCK):
            value = each.values.get(f"group.{key}" if is_broker else key)
            if value is not None and str(value).isdecimal():
                known.setdefault((each.cluster, group), {})[key] = int(value)
    return {
        (cluster, group): _limits(values, known.get((cluster, _EVERY_GROUP), {}))
        for (cluster, group), values in known.items()
    }


def _limits(own: dict[str, int], brokers: dict[str, int]) -> tuple[int, int]:
    values = {**DEFAULTS, **brokers, **own}
    return values[LIMIT], values[LOCK]
