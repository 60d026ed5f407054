"""Loads the assignors that `group.consumer.assignors` names beside Kafka's own, when a node starts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ottla.broker.config.plugins import PluginError
from ottla.core.groups.assignors import ASSIGNORS, JAVA_CLASSES

__all__ = ["load_own_assignors"]

SETTING: Final = "group.consumer.assignors"


def load_own_assignors(entries: Iterable[str]) -> dict[str, str]:
    """Dotted name -> the name that clients use, for all that are not Kafka's. Raises PluginError."""
    own = [entry for entry in entries if entry not in ASSIGNORS and entry not in JAVA_CLASSES]
    if not own:
        return {}
    from ottla.assignors import AssignorError, load_assignor

    found: dict[str, str] = {}
    for entry in own:
        try:
            name = load_assignor(entry).name
        except AssignorError as error:
            raise PluginError(f"{SETTING}: {error}") from error
        if name in ASSIGNORS or name in found.values():
            raise PluginError(f"{SETTING}: the name of {entry}, {name}, is that of another assignor, too")
        found[entry] = name
    return found
