"""Deletes old records of `__share_group_state` when its share coordinators ask for it."""

from __future__ import annotations

from collections.abc import Callable

from ottla.broker.coordinators.edge import Perform
from ottla.broker.coordinators.runtime import Runtime
from ottla.core.coordinator.contract import COMMITTED, Outcome
from ottla.core.share.state import PruneLog

__all__ = ["performers"]


def performers(share_state: Runtime) -> dict[type, Perform]:
    """The performers of the effects of share coordinators."""

    def prune(effect: PruneLog, done: Callable[[Outcome], None]) -> None:
        share_state.prune(effect.partition, effect.offset)
        done(COMMITTED)

    return {PruneLog: prune}
