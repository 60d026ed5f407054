"""Loads the plugin that the settings name."""

from __future__ import annotations

from importlib import import_module
from typing import Final

from ottla.broker.config.node_config import StartError
from ottla.topology_descriptions import InMemoryPlugin, TopologyDescriptionPlugin

__all__ = ["SETTING", "PluginError", "load_plugin", "told"]

SETTING: Final = "group.streams.topology.description.plugin.class"
_KAFKA_IN_MEMORY: Final = "org.apache.kafka.server.streams.InMemoryTopologyDescriptionPlugin"


class PluginError(StartError):
    """The plugin cannot be used, and without it the node does not start."""


def load_plugin(name: str) -> TopologyDescriptionPlugin:
    """An instance of the class that the setting names."""
    kind = InMemoryPlugin if name == _KAFKA_IN_MEMORY else _find(name)
    try:
        plugin = kind()
    except Exception as error:
        raise PluginError(f"{SETTING}: {name} cannot be made: {told(error)}") from error
    return plugin


def _find(name: str) -> type[TopologyDescriptionPlugin]:
    module_name, _, class_name = name.rpartition(".")
    if not module_name:
        raise PluginError(f"{SETTING}: {name} is not a dotted name such as package.module.Class")
    try:
        found = getattr(import_module(module_name), class_name, None)
    except Exception as error:
        raise PluginError(f"{SETTING}: {module_name} cannot be imported: {told(error)}") from error
    if found is None:
        raise PluginError(f"{SETTING}: {module_name} has no {class_name}")
    if not (isinstance(found, type) and issubclass(found, TopologyDescriptionPlugin)):
        raise PluginError(f"{SETTING}: {name} is not derived from TopologyDescriptionPlugin")
    return found


def told(error: BaseException) -> str:
    """The text of an error, or its type if it has none."""
    return str(error) or type(error).__name__
