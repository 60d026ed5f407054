"""Classes that settings name."""

from __future__ import annotations

from importlib import import_module
from typing import TypeVar

from ottla.broker.config.node_config import StartError

__all__ = ["PluginError", "plugin_class", "told"]

T = TypeVar("T")


class PluginError(StartError):
    """A plugin cannot be used, and without it the node does not start."""


def plugin_class(setting: str, name: str, base: type[T]) -> type[T]:
    """The class of a dotted name, which must be derived from a base. Raises PluginError."""
    module_name, _, class_name = name.rpartition(".")
    if not module_name:
        raise PluginError(f"{setting}: {name} is not a dotted name such as package.module.Class")
    try:
        found = getattr(import_module(module_name), class_name, None)
    except Exception as error:
        raise PluginError(f"{setting}: {module_name} cannot be imported: {told(error)}") from error
    if found is None:
        raise PluginError(f"{setting}: {module_name} has no {class_name}")
    if not (isinstance(found, type) and issubclass(found, base)):
        raise PluginError(f"{setting}: {name} is not derived from {base.__name__}")
    return found


def told(error: BaseException) -> str:
    """The text of an error, or its type if it has none."""
    return str(error) or type(error).__name__
