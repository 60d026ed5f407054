"""Lets the logs of `__share_group_state` begin later, as their coordinators ask."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ottla.core.coordinator.contract import COMMITTED, Outcome
from ottla.core.share.state import PruneLog

if TYPE_CHECKING:
    from ottla.broker.node import Node

__all__ = ["attach"]


def attach(node: Node) -> None:
    """Let this node perform what its share coordinators ask for."""

    def prune(effect: PruneLog, done: Callable[[Outcome], None]) -> None:
        node.share_state.prune(effect.partition, effect.offset)
        done(COMMITTED)

    node.share_state.performers[PruneLog] = prune
