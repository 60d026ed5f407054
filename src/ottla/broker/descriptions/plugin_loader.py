"""Loads the plugin that the settings name."""

from __future__ import annotations

from typing import Final

from ottla.broker.config.plugins import PluginError, plugin_class, told
from ottla.topology_descriptions import InMemoryPlugin, TopologyDescriptionPlugin

__all__ = ["SETTING", "load_plugin"]

SETTING: Final = "group.streams.topology.description.plugin.class"
_KAFKA_IN_MEMORY: Final = "org.apache.kafka.server.streams.InMemoryTopologyDescriptionPlugin"


def load_plugin(name: str) -> TopologyDescriptionPlugin:
    """An instance of the class that the setting names."""
    is_kafkas = name == _KAFKA_IN_MEMORY
    kind = InMemoryPlugin if is_kafkas else plugin_class(SETTING, name, TopologyDescriptionPlugin)  # type: ignore[type-abstract]
    try:
        plugin = kind()
    except Exception as error:
        raise PluginError(f"{SETTING}: {name} cannot be created: {told(error)}") from error
    return plugin
