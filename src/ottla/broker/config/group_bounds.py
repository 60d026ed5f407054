"""Checks that the broker's settings for groups agree with each other; a node does not start if they do not.

A default for groups must lie between its minimum and maximum, and a session must last longer than the heartbeat
interval. Only kinds of groups with settings that were set are checked: the defaults agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from ottla.core.metadata.config_defs import ConfigError, broker_defs
from ottla.core.metadata.config_rules import check_session

__all__ = ["check_group_bounds"]

_FAMILIES: Final = ("consumer", "share", "streams")
_MIN: Final = "min."
_SIMPLE: Final = ("simple", "org.apache.kafka.coordinator.group.assignor.SimpleAssignor")
"""The assignor of share groups, under its name or as Apache Kafka's class."""


def check_group_bounds(names: Iterable[str], value: Callable[[str], Any]) -> None:
    """`names` are the settings that are set, `value` gives any."""
    set_families = {name.split(".")[1] for name in names if name.startswith("group.") and name.count(".") > 1}
    for family in _FAMILIES:
        if family in set_families:
            _check_family(f"group.{family}.", value)
    if "share" in set_families:
        _check_share(value)


def _check_family(prefix: str, value: Callable[[str], Any]) -> None:
    for low in (name for name in broker_defs() if name.startswith(prefix + _MIN)):
        rest = low.removeprefix(prefix + _MIN)
        own, high = prefix + rest, f"{prefix}max.{rest}"
        if own in broker_defs() and high in broker_defs() and not value(low) <= value(own) <= value(high):
            bounds = f"{low} ({value(low)}) and {high} ({value(high)})"
            raise ConfigError(f"{own} ({value(own)}) must lie between {bounds}")
    session, heartbeat = f"{prefix}session.timeout.ms", f"{prefix}heartbeat.interval.ms"
    check_session(session, value(session), heartbeat, value(heartbeat))


def _check_share(value: Callable[[str], Any]) -> None:
    sessions, size = value("group.share.max.share.sessions"), value("group.share.max.size")
    if sessions < size:
        least = f"group.share.max.size ({size})"
        raise ConfigError(f"group.share.max.share.sessions ({sessions}) must not be less than {least}")
    assignors = value("group.share.assignors")
    if len(assignors) != 1 or assignors[0] not in _SIMPLE:
        raise ConfigError(f"group.share.assignors must be simple, the only one supported, not {', '.join(assignors)}")
