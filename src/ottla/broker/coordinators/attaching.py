"""Who performs the effects of cores. Nothing is imported before a node has a use for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.broker.node import Node

__all__ = ["attach"]


def attach(node: Node) -> None:
    """Register performers: `node.groups.performers[Effect] = function(effect, done)`, a line for each."""
    from ottla.broker.coordinators import streams_topics
    from ottla.broker.transactions import markers

    markers.attach(node)
    streams_topics.attach(node)
