"""The coordinators that can be simulated, with the cores of a broker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from ottla.broker.coordinators.core_factory import CORES, CorePartition
from ottla.broker.coordinators.internal_topics import GROUPS, SHARE_STATE, TRANSACTIONS
from ottla.core.coordinator.contract import Core

__all__ = ["KINDS", "CoordinatorKind", "MakeCore"]


MakeCore = Callable[[CorePartition], Core]


class CoordinatorKind(NamedTuple):
    """A kind of coordinator: the topic of its log, and a function that makes an empty core."""

    topic: str
    make_core: MakeCore
    is_compacted: bool = True
    """False if the log is pruned from its start instead."""


KINDS: Final = {
    "groups": CoordinatorKind(GROUPS.name, CORES[GROUPS.name]),
    "transactions": CoordinatorKind(TRANSACTIONS.name, CORES[TRANSACTIONS.name]),
    "share state": CoordinatorKind(SHARE_STATE.name, CORES[SHARE_STATE.name], is_compacted=False),
}
