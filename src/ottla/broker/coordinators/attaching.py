"""Who performs the effects of cores. Nothing is imported before a node has a use for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ottla.broker.coordinators.internal_topics import GROUPS, SHARE_STATE, TRANSACTIONS

if TYPE_CHECKING:
    from ottla.broker.node import Node

__all__ = ["PERFORMERS"]


def _attach_groups(node: Node) -> None:
    from ottla.broker.coordinators import streams_topics
    from ottla.broker.share import effects as share_effects

    streams_topics.attach(node)
    share_effects.attach(node)
    if node.descriptions is not None:
        from ottla.broker import descriptions

        descriptions.attach(node)


def _attach_transactions(node: Node) -> None:
    from ottla.broker.transactions import markers

    markers.attach(node)


def _attach_share_state(node: Node) -> None:
    from ottla.broker.share import pruning

    pruning.attach(node)


PERFORMERS: Final[dict[str, Callable[[Node], None]]] = {
    GROUPS.name: _attach_groups,
    TRANSACTIONS.name: _attach_transactions,
    SHARE_STATE.name: _attach_share_state,
}
"""Topic -> what registers the performers of its cores, before the first of them is made.

For instance: `node.groups.performers[Effect] = function(effect, done)`.
"""
