"""Lets the logs of `__share_group_state` begin later, as their coordinators ask."""

from __future__ import annotations

from collections.abc import Callable

from ottla.broker.coordinators.edge import Perform
from ottla.broker.coordinators.runtime import Runtime
from ottla.core.coordinator.contract import COMMITTED, Outcome
from ottla.core.share.state import PruneLog

__all__ = ["performers"]


def performers(share_state: Runtime) -> dict[type, Perform]:
    """What share coordinators ask for."""

    def prune(effect: PruneLog, done: Callable[[Outcome], None]) -> None:
        share_state.prune(effect.partition, effect.offset)
        done(COMMITTED)

    return {PruneLog: prune}
