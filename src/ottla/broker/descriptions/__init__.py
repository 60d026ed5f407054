"""The plugin that keeps topology descriptions, in a running node: loading it, calling it, giving it a topic."""

from ottla.broker.descriptions.calling import Descriptions

__all__ = ["Descriptions"]
