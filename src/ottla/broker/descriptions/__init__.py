"""The plugin for topology descriptions in a running node: its loader, its calls, its topic."""

from ottla.broker.descriptions.plugin_calls import DescriptionPlugin

__all__ = ["DescriptionPlugin"]
